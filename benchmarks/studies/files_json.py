"""Measures the reader of JSON Lines beside a loop over json.loads, one over orjson.loads, and Hugging Face datasets.

    python benchmarks/studies/files_json.py [--runs 9] [--only TEXT]

The rows have an integer, a float, a text, a list of integers and an object. The loops only parse; what they return are
Python values, not arrays. datasets reads the file in every pass, as streaming=True does, without its cache of Arrow.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from side_by_side import Suite

ROWS = 100_000
LOOPED = 30_000
BATCH = 1024


def make_data(folder: Path) -> None:
    rng = random.Random(1)
    lines = [
        json.dumps(
            {
                "id": number,
                "score": rng.random(),
                "text": rng.randbytes(rng.randrange(20, 100)).hex(),
                "tokens": [rng.randrange(50_000) for _ in range(rng.randrange(20))],
                "meta": {"source": "web", "rank": number % 7},
            }
        )
        for number in range(ROWS)
    ]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "few.jsonl").write_text("\n".join(lines[:LOOPED]) + "\n")


SUITE = Suite(__doc__, make_data)
workload = SUITE.workload
BATCHES = "from_json_lines(5 columns).batch(1024)"
LOOP = "for row in from_json_lines"


@workload(BATCHES, "dataset")
def batches_dataset(folder: Path) -> int:
    from dataset import Dataset

    return sum(len(batch["id"]) for batch in Dataset.from_json_lines(folder / "a.jsonl").batch(BATCH))


@workload(BATCHES, "datasets, streaming")
def batches_huggingface(folder: Path) -> int:
    import datasets

    rows = datasets.load_dataset("json", data_files=str(folder / "a.jsonl"), split="train", streaming=True)
    return sum(len(batch["id"]) for batch in rows.with_format("arrow").iter(batch_size=BATCH))


@workload(BATCHES, "json.loads of each line")
def batches_json(folder: Path) -> int:
    with (folder / "a.jsonl").open("rb") as file:
        return sum(1 for row in map(json.loads, file) if row)


@workload(BATCHES, "orjson.loads of each line")
def batches_orjson(folder: Path) -> int:
    import orjson

    with (folder / "a.jsonl").open("rb") as file:
        return sum(1 for row in map(orjson.loads, file) if row)


@workload(LOOP, "dataset")
def loop_dataset(folder: Path) -> int:
    from dataset import Dataset

    return sum(1 for _ in Dataset.from_json_lines(folder / "few.jsonl"))


@workload(LOOP, "datasets, streaming")
def loop_huggingface(folder: Path) -> int:
    import datasets

    rows = datasets.load_dataset("json", data_files=str(folder / "few.jsonl"), split="train", streaming=True)
    return sum(1 for _ in rows)


@workload(LOOP, "json.loads of each line")
def loop_json(folder: Path) -> int:
    with (folder / "few.jsonl").open("rb") as file:
        return sum(1 for row in map(json.loads, file) if row)


if __name__ == "__main__":
    SUITE.main()
