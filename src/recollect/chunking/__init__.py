"""Documents to chunks with exact offsets: one file a strategy, usable alone in a notebook."""
