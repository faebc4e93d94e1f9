"""Checks for those who write ops, rules and pipelines. Public: use them in your own tests.

``check_operator`` holds an op to the whole contract, ``check_laziness`` to asking for no more than it needs,
``check_rule`` holds a rule of the optimizer to changing nothing but cost.
"""

from dataset.testing.check_operator import check_laziness, check_operator
from dataset.testing.check_rule import check_rule
from dataset.testing.elements import assert_elements_equal, outcomes
from dataset.testing.leaks import no_leaks

__all__ = ["assert_elements_equal", "check_laziness", "check_operator", "check_rule", "no_leaks", "outcomes"]
