"""Memory of conversations: turns are remembered as they are said, and recalled by what they mean and say.

`recollect.memory.service.Memory` is the way in; it needs a store, which is why it is not imported here.
"""

from recollect.memory.patterns import QueryPatternTracker
from recollect.memory.terms import TurnLexicon

__all__ = ["QueryPatternTracker", "TurnLexicon"]
