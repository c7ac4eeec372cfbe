"""What somebody may read, across collections."""
