"""Work in the background: which tasks there are, how they are run, tried again and stopped, and the worker."""
