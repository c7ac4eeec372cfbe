"""Data sets with judgements, the measures of retrieval quality, and the runner that joins them."""
