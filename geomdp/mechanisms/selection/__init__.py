"""Private choice of a query with a nearly largest answer: `base`, and one file per noise."""
