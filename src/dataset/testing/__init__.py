"""Public checks for tests of ops, rules and pipelines.

``check_operator`` checks the whole contract of an op, ``check_laziness`` that it requests no more than it needs, and
``check_rule`` that a rule of the optimizer changes only the cost.
"""

from dataset.testing.check_operator import check_laziness, check_operator
from dataset.testing.check_rule import check_rule
from dataset.testing.elements import assert_elements_equal, outcomes
from dataset.testing.leaks import no_leaks

__all__ = ["assert_elements_equal", "check_laziness", "check_operator", "check_rule", "no_leaks", "outcomes"]
