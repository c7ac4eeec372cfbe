"""The HTTP server: routes translate, authorise and call a view, nothing else: ``pip install 'recollect[server]'``."""
