"""Memory of conversations: turns are remembered as they are said, and recalled by what they mean and say.

`recollect.memory.service.Memory` is the way in; it needs a store, which is why it is not imported here.
"""

from recollect.memory.patterns import QueryPatternTracker

__all__ = ["QueryPatternTracker"]
