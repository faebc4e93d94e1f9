"""The fault matrix: every kind of pipeline with background work or files, combined with every kind of fault.

    rows.py        the pipelines: how each is built, and which elements it returns
    columns.py     the faults: the programs that test each fault, where it applies, and the name of the outcome
    programs.py    the programs: they inject the fault and check the promised outcome
    functions.py   the user function of all pipelines, and the faults that it can show
    checks.py      helpers of the programs: the watchdog, outcomes, checks for leftover files
    runner.py      runs one cell in separate processes
    page.py        docs/reliability.md: the declared table, written after a run
    test_faults.py a test per cell

``pytest tests/faults -k "prefetch and sigint"`` runs a cell. A failure prints its seed; ``SEED=... pytest ...``
repeats it. ``make faults`` runs all cells, each with many seeds, and writes the page.
"""
