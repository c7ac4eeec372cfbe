"""The web interface: pages for people who would rather look than type, on the same server and under the same rights.

Pages are made here, of templates; what they show comes from the caller's own view, as for every other door. A page has
an address that can be shared, and the process keeps nothing of its visitors: any worker or replica serves any of them.
"""

from recollect.ui.pages import install

__all__ = ["install"]
