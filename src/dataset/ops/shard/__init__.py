"""One part of several: shard, and shard_by_process."""
