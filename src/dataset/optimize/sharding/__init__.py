"""Splitting a plan between processes: what ``shard_by_process`` does with what is below it.

Unlike the rules, this changes what one process gives; all of them together give what the plan did. So it is done when
the method is called, and for good. ``elements.py`` deals out elements as far down as that comes to the same,
``agreement.py`` has the processes agree on what is random.
"""
