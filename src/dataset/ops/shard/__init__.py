"""Sharding operators: shard and shard_by_process."""
