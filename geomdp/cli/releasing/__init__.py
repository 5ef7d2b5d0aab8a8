"""The command `release`, what its flags ask for together, and the privacy record it writes."""
