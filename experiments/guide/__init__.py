"""The guide: pages for readers, and the reference made from docstrings."""
