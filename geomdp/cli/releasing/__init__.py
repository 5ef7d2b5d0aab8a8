"""The command `release`: its flags, the request they make, and the privacy record it writes."""
