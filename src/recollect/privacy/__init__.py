"""Personal data in texts: found, counted, and taken out, with offsets that stay right."""
