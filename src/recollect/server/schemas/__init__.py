"""What requests hold, one file a resource; the names are those of the command's options."""
