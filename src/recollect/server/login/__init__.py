"""Logging in with a browser: with an API key, or with an issuer (OpenID Connect); a cookie is what it leaves behind."""
