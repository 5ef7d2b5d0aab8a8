"""Edits of one function, each in a separate process, and the tests and claims that fail with it."""
