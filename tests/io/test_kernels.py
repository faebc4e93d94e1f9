"""Each native kernel gives what its twin in Python gives, for the inputs that the fuzzer draws."""

import pytest

from dataset.native import library
from fuzz.kernels import TRIALS
from support.seeds import rng


@pytest.mark.skipif(library.kernels() is None, reason="the kernels are compared with their twins")
@pytest.mark.parametrize("kernel", TRIALS)
def test_a_kernel_agrees_with_its_twin(kernel):
    draws = rng(kernel)
    for trial in range(500):
        assert TRIALS[kernel](draws), f"trial {trial}"
