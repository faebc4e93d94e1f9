"""One of two processes of a torch.distributed group, run by test_ranks.py: each step is a collective operation."""

import sys

import torch
import torch.distributed as dist

from dataset import Dataset, TextLineDataset
from dataset.adapters.ranks import process_rank


def summed(dataset):
    """Return the elements of this process; each step sums those of all processes."""
    steps = []
    for element in dataset:
        total = torch.tensor(int(element))
        dist.all_reduce(total)
        steps.append(int(element))
    return steps


def main():
    rank, store, *files = sys.argv[1:]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    numbers = Dataset.range(11).filter(lambda x: True).map(lambda x: x)
    steps = {
        remainder: summed(numbers.shard_by_process(remainder=remainder)) for remainder in ("drop", "pad", "repeat")
    }
    for remainder in ("drop", "pad"):
        lines = TextLineDataset(files).map(lambda line: int(line or 0)).shuffle(3)
        steps[f"files, {remainder}"] = summed(lines.shard_by_process(remainder=remainder, by="files"))
    found = {"rank": process_rank("test"), "steps": steps}
    sys.stdout.write(f"{found}\n")
    dist.barrier()  # the threads of one process may still use the connections that the other one closes
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
