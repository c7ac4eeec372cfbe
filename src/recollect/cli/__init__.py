"""The command line: one file a command group, and what they share."""
