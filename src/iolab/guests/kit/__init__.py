"""What guests boot from, made of packages of Debian on this machine."""
