"""The HTTP server: routes translate, authorise and call a view, nothing else. It needs the extra ``server``."""
