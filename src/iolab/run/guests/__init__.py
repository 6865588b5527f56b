"""Guests that iolab boots itself: what they are made of, their machines, and the fleet of them."""
