"""The installed command, real fio, real file systems."""
