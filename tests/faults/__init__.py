"""The fault matrix: every kind of pipeline that works in the background or keeps files, times every kind of fault.

    rows.py        the pipelines: how each is built, and what it gives
    columns.py     the faults: which programs show each of them, where it applies, and what the outcome is called
    programs.py    those programs: they inject the fault, and assert all that is promised
    functions.py   the user's function in all pipelines, and what it may do instead of returning
    checks.py      what the programs share: the watchdog, outcomes, what may be left
    runner.py      runs one cell, in processes of its own
    page.py        docs/reliability.md: the declared table, written from a run
    test_faults.py a test per cell

``pytest tests/faults -k "prefetch and sigint"`` runs a cell. A failure prints the seed; ``FAULTS_SEED=... pytest ...``
repeats it. ``make faults`` runs all cells, each with many seeds, and writes the page.
"""
