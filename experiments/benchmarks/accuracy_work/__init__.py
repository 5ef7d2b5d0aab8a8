"""What the script `accuracy_table` compares: places, predictions, verdicts, goals, the figure."""
