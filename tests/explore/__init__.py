"""The search for failures with fresh seeds, and the corpus of what it has found.

    make explore SECONDS=600                      all parts for ten minutes
    python -m tests.explore --seconds 600 --only resume --seed 7

See ``python -m tests.explore --help`` and CONTRIBUTING.md.
"""
