"""Fuzzer: feeds mutated bytes to all code that reads bytes which the library did not write itself.

    python -m tests.fuzz --seconds 60                       all targets, with a fresh seed that is printed
    python -m tests.fuzz --target states --seed 7 --only 91    repeats one input

A target has valid samples, mutates one of them, and checks that the library accepts the input or raises one of the
documented exceptions. Everything else is a finding: another exception, a MemoryError, an input that takes more than
five seconds of processor time, a process that dies. Each input is determined by the seed, the target and its number.
The inputs are tried in worker processes with a memory limit: see driver.py. The native kernels are also tried on their
own, with sanitizers: see kernels.py.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]  # with the modules of tests/support, for the programs
