"""Results as JSON: the shape of each, and the function that makes it.

What ``--json`` prints and what the server replies with is the same. ``<Thing>Json`` is the shape of a `Thing`, and
``<thing>_json`` makes one of it; both stand in the file of their subject. Shapes are types: a type checker holds the
functions to them, and pydantic makes schemas of them, though nothing here imports it.
"""
