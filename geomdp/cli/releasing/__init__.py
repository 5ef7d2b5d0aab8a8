"""The command `release`: flags, computation, and privacy record."""
