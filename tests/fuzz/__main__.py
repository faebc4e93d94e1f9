"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.seeds import fresh_seed

from .driver import fuzz
from .planted import PLANTED
from .targets import TARGETS
from .worker import input_of, limit_memory, scratch, shown, try_one


def say(words: str) -> None:
    """Write a line and flush it."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the fuzzer; return the exit status, which is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try mutated inputs.")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together (default: 60)")
    parser.add_argument("--seed", type=int, help="default: a fresh one")
    parser.add_argument("--target", action="append", choices=[*TARGETS, *PLANTED], help="default: all")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one input of the target, in this process")
    parser.add_argument("--faults", type=int, default=5, metavar="N", help="stop a target after N (default: 5)")
    arguments = parser.parse_args()
    seed = fresh_seed() if arguments.seed is None else arguments.seed
    targets = arguments.target or list(TARGETS)
    if arguments.only is not None:
        return sum(_try_only(target, seed, arguments.only) for target in targets)
    say(f"seed {seed}")
    faults = 0
    for target in targets:
        found = fuzz(target, seed, arguments.seconds / len(targets), arguments.faults)
        share = found.taken / max(found.tried, 1)
        say(f"{target:16} {found.tried:9,} inputs, {share:4.0%} taken, {len(found.faults)} faults")
        for fault in found.faults:
            say(f"\n{fault}\n")
        faults += len(found.faults)
    return 1 if faults else 0


def _try_only(name: str, seed: int, number: int) -> int:
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch()) as folder:
        target = (TARGETS | PLANTED)[name](Path(folder))
        data = input_of(target, seed, number)
        say(f"input: {shown(data)}")
        target.warm_up()
        limit_memory()
        taken, words = try_one(target, data)
    say(words or ("taken" if taken else "refused"))
    return 1 if words else 0


if __name__ == "__main__":
    sys.exit(main())
