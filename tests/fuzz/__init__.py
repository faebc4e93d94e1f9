"""Fuzzing: mutated bytes into everything that reads bytes which the library did not write itself.

    python -m tests.fuzz --seconds 60                       all targets, with a fresh seed that is printed
    python -m tests.fuzz --target states --seed 7 --only 91    one input again, in this process

A target has valid samples, mutates one of them, and checks what the library makes of it: it takes the input, or raises
one of the documented exceptions. Everything else is a finding: another exception, a MemoryError, an input that takes
more than five seconds of processor time, a process that dies. Each input follows from the seed, the target and its
number alone. The inputs are tried in worker processes with a limit of memory: see driver.py.
"""
