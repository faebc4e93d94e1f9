"""Grouping operators: group elements by a key with group_by_window and bucket_by_sequence_length."""
