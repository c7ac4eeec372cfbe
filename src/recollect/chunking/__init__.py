"""Documents to chunks with exact offsets, by strategies with names; usable alone in a notebook."""
