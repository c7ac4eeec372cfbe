"""Documents into the store: read, cut, embed, write, with a report of what became of each."""
