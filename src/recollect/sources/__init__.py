"""What is outside and changes: folders that are watched, buckets and repositories that are listed and fetched from."""
