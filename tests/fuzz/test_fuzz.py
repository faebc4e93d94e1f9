"""Each target takes the inputs of tests/seed without findings; planted faults are found. See ``make fuzz``."""

import subprocess
import sys

import pytest

from dataset.native.library import KERNELS
from support.seeds import SEED

from .driver import ROOT, fuzz
from .kernels import TRIALS
from .planted import PLANTED
from .targets import TARGETS

INPUTS = 100  # of each target
KERNEL_INPUTS = 100  # of each kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by what /proc tells")


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs_are_taken_or_refused_as_documented(target):
    found = fuzz(target, SEED, count=INPUTS)
    assert not found.faults, "\n\n".join(found.faults)
    assert found.tried == INPUTS


def test_every_kernel_agrees_with_its_twin_under_sanitizers():
    limits = ["--count", str(KERNEL_INPUTS), "--seconds", "600", "--seed", str(SEED)]
    command = [sys.executable, "-m", "tests.fuzz.kernels", *limits]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=700, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_kernel_is_fuzzed():
    assert set(TRIALS) == {*KERNELS, "row_loop"}


FOUND = {
    "allocates": "Unable to allocate 1.00 GiB",
    "hangs": "one input took too long",
    "dies": "the process died: SIGABRT",
}


@pytest.mark.parametrize("target", FOUND)
def test_a_planted_fault_is_found(target):
    (fault,) = fuzz(target, 1, faults_max=1).faults
    assert FOUND[target] in fault


def test_a_planted_exception_is_found_and_the_command_line_repeats_its_input():
    (fault,) = fuzz("raises", 1, faults_max=1).faults
    assert "KeyError: 'planted'" in fault
    command = [sys.executable, *fault.split("\n", 1)[0].split()[1:]]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "KeyError: 'planted'" in run.stdout
    assert set(PLANTED).isdisjoint(TARGETS)
