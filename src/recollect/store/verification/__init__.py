"""Whether the parts of a store agree with one another, and what makes them agree again."""
