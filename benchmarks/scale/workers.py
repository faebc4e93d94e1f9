"""Simulates distribute() with 1 to 1,000 workers in virtual time: throughput, and the load of the driver.

python benchmarks/scale/workers.py [--batch-ms 100] [--driver-us 700] [--json build/benchmarks/workers.json]

Worker r of n computes the batches r, r + n, r + 2n ..., and may be eight batches ahead of the driver, which takes them
in order. The cost of a batch varies by a quarter, and one in a hundred takes five times as long. A worker dies every
minute, takes two seconds to be replaced, and repeats its batch. The costs are arguments:
benchmarks/studies/distribute.py measures the driver's. Nothing sleeps: the times follow from each other batch by batch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
AHEAD = 8
BATCHES = 200  # per worker
STRAGGLERS, SLOWER = 0.01, 5.0
RESTART_SECONDS = 2.0
DEATHS_PER_SECOND = 1 / 60


def simulate(workers: int, batch_seconds: float, driver_seconds: float, *, seed: int = 0) -> dict[str, Any]:
    """Return batches per second, the part that is of the ideal, and the part of the time that the driver works."""
    rng = np.random.default_rng(seed)
    count = BATCHES * workers
    costs = batch_seconds * np.maximum(0.1, rng.normal(1, 0.25, count))
    costs *= np.where(rng.random(count) < STRAGGLERS, SLOWER, 1.0)
    die = rng.random(count) < DEATHS_PER_SECOND * costs / workers
    costs += np.where(die, RESTART_SECONDS + costs, 0)
    free = np.zeros(workers)  # when each worker has finished its last batch
    delivered = np.zeros(count)
    last = 0.0
    for batch in range(count):
        worker = batch % workers
        room = delivered[batch - AHEAD * workers] if batch >= AHEAD * workers else 0.0
        free[worker] = max(free[worker], room) + costs[batch]
        last = delivered[batch] = max(free[worker], last) + driver_seconds
    ideal = min(workers / (batch_seconds * (1 + STRAGGLERS * (SLOWER - 1))), 1 / driver_seconds)
    return {
        "workers": workers,
        "batches_per_second": count / last,
        "of_ideal": count / last / ideal,
        "driver_load": count * driver_seconds / last,
        "deaths": int(die.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-ms", type=float, default=100.0)
    parser.add_argument("--driver-us", type=float, default=700.0)
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks/workers.json"))
    arguments = parser.parse_args()
    batch, driver = arguments.batch_ms / 1e3, arguments.driver_us / 1e6
    points = [simulate(workers, batch, driver) for workers in WORKERS]
    print(f"{'workers':>8} {'batches/s':>10} {'of ideal':>9} {'driver load':>12} {'deaths':>7}")
    for point in points:
        print(
            f"{point['workers']:8} {point['batches_per_second']:10.1f} {point['of_ideal']:9.0%} "
            f"{point['driver_load']:12.0%} {point['deaths']:7}"
        )
    print(f"one driver saturates at {batch / driver:.0f} workers")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(points, indent=1))
    draw(points, arguments.json.with_suffix(".svg"))


def draw(points: list[dict[str, Any]], path: Path) -> None:
    """Write the plot, if matplotlib is installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("matplotlib is not installed: no plot")
        return
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    workers = [point["workers"] for point in points]
    left.loglog(workers, [point["batches_per_second"] for point in points], "o-", color="#0072b2")
    left.set(xlabel="workers", ylabel="batches per second")
    right.semilogx(workers, [point["driver_load"] for point in points], "o-", color="#d55e00")
    right.set(xlabel="workers", ylabel="part of the time that the driver works", ylim=(0, 1.05))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
