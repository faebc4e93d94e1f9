"""Sharding: splits a plan between processes for ``shard_by_process``.

Unlike the optimizer's rules, this changes the elements of each process; all processes together produce the elements of
the plan. So the plan is rewritten once, when the method is called. ``by_files.py`` distributes files,
``by_elements.py`` distributes elements as far upstream as possible, and ``agreement.py`` makes all processes draw the
same random numbers.
"""
