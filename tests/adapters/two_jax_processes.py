"""One of two processes of jax.distributed, run by test_ranks.py; the first one listens on a given port."""

import sys

import jax

from dataset import Dataset
from dataset.adapters.ranks import process_rank

if __name__ == "__main__":
    jax.distributed.initialize(sys.argv[2], num_processes=2, process_id=int(sys.argv[1]))
    sys.stdout.write(f"{process_rank('test')} {[int(x) for x in Dataset.range(7).shard_by_process()]}\n")
    jax.distributed.shutdown()
