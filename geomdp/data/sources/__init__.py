"""Where records live: files and folders, data frames, queries of a database."""
