"""Plant an edit of one function in a separate process, and find tests and claims that then fail."""
