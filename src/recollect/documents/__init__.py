"""Files to documents: which files there are, and what they say."""

from recollect.documents.reader import read_bytes, read_file
from recollect.documents.walk import FoundFile, SkippedFile, walk

__all__ = ["FoundFile", "SkippedFile", "read_bytes", "read_file", "walk"]
