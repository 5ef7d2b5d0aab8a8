"""Sources of records: files and folders, data frames, and queries of a database."""
