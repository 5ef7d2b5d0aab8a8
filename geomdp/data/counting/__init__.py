"""Count the tables that determine a workload's answers, exactly and in one scan of the records."""
