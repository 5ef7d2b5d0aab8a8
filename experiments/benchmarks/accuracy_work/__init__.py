"""Parts of the script `accuracy_table`: grid, predictions, verdicts, goals, advice and figure."""
