"""Tests of element_spec against tf.data's, for every kind of element and op."""

from cases import ELEMENTS
from compare import assert_both_raise, same

# The other tests compare it for all other ops.
test_elements = same(
    [
        "from_tensors(element).enumerate()",
        "zip((from_tensors(element), {'b': from_tensors(element), 'a': from_tensors(element)}))",
        "from_tensors(element).concatenate(from_tensors(element))",
        "from_tensors(element).map(lambda *args: {'b': args[0], 'a': (args[-1],)})",
    ],
    element=ELEMENTS,
)


def test_it_is_a_property_that_cannot_be_set():
    assert_both_raise(lambda lib: setattr(lib.range(3), "element_spec", None), AttributeError)
