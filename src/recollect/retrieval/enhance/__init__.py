"""What can be done to a query before a search, and to a ranking after its first round."""
