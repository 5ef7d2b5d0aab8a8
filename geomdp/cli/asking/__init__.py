"""The command `ask`: adaptive questions about a table."""
