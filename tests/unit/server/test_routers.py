"""How the server's routes are put together."""

from __future__ import annotations

from recollect.server.app import _routes


def test_no_router_is_included_in_one_that_is_included():
    """With each request FastAPI asks an included router, and all that are included in it, for their routes anew."""
    included = [route.original_router for route in _routes() if hasattr(route, "original_router")]
    assert included
    for router in included:
        assert not [route for route in router.routes if hasattr(route, "original_router")]
