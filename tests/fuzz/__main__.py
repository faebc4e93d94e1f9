"""The command line of the fuzzer."""

# ruff: noqa: T201  # a program that prints what it finds

from __future__ import annotations

import argparse
import sys

from support.seeds import fresh_seed

from .driver import fuzz
from .planted import PLANTED
from .targets import TARGETS


def main() -> int:
    """Run the fuzzer; return the exit status, which is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try mutated inputs.")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together (default: 60)")
    parser.add_argument("--seed", type=int, help="default: a fresh one")
    parser.add_argument("--target", action="append", choices=[*TARGETS, *PLANTED], help="default: all")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one input of the target")
    parser.add_argument("--faults", type=int, default=5, metavar="N", help="stop a target after N (default: 5)")
    arguments = parser.parse_args()
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    targets = arguments.target or list(TARGETS)
    numbers = {} if arguments.only is None else {"start": arguments.only, "count": 1}
    print(f"seed {seed}", flush=True)
    faults = 0
    for target in targets:
        found = fuzz(target, seed, arguments.seconds / len(targets), arguments.faults, **numbers)
        share = found.taken / max(found.tried, 1)
        print(f"{target:16} {found.tried:9,} inputs, {share:4.0%} taken, {len(found.faults)} faults", flush=True)
        for fault in found.faults:
            print(f"\n{fault}\n", flush=True)
        faults += len(found.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
