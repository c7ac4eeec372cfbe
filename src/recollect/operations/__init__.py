"""What is done with each kind of thing, declared once: the pipeline does it, and every other surface is bound to it."""
