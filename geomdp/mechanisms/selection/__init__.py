"""Private choice of a query with a nearly largest answer."""
