"""Edits of one function that are in force in a process of their own, and what notices them."""
