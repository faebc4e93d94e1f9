"""Elements grouped by a key: group_by_window and bucket_by_sequence_length."""
