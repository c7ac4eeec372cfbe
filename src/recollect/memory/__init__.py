"""Memory of conversations: turns are remembered as they are said, and recalled by what they mean and say."""

from recollect.memory.patterns import QueryPatternTracker
from recollect.memory.service import Memory
from recollect.memory.terms import TurnLexicon

__all__ = ["Memory", "QueryPatternTracker", "TurnLexicon"]
