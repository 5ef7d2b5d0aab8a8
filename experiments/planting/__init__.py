"""Edits of one function, each in force in a separate process, and what notices an edit."""
