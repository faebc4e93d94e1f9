"""Tests of element_spec against tf.data's, for every kind of element and op."""

from cases import ELEMENTS
from compare import assert_both_raise, same


def start(lib, element):
    return lib.from_tensors(element(lib))


# The other tests compare it for all other ops.
test_elements = same(
    [
        lambda lib, e: start(lib, e).enumerate(),
        lambda lib, e: lib.zip((start(lib, e), {"b": start(lib, e), "a": start(lib, e)})),
        lambda lib, e: start(lib, e).concatenate(start(lib, e)),
        lambda lib, e: start(lib, e).map(lambda *args: {"b": args[0], "a": (args[-1],)}),
    ],
    ELEMENTS,
)


def test_it_is_a_property_that_cannot_be_set():
    assert_both_raise(lambda lib: setattr(lib.range(3), "element_spec", None), AttributeError)
