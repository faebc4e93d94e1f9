"""A source of dear pulls is read in long steps, none of them longer than what has been given."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.read_ahead import ReadAheadOperator

NODE = Dataset.range(1).plan
ENDS = [37, 250]  # pulls stop short here, as at the end of one of several inputs


class Source(BufferedOperator):
    """Numbers, of which every hundredth fails. Notes what it was asked for."""

    def __init__(self, count):
        super().__init__(NODE)
        self.count = count
        self.asked = []

    def produce(self, n):
        self.asked.append(n)
        if self.at >= self.count:
            return None
        if self.at % 100 == 99:
            self.at += 1
            raise ValueError(self.at - 1)
        stop = min(self.at - self.at % 100 + 99, self.at + n, self.count)
        stop = min([stop, *(end for end in ENDS if end > self.at)])
        chunk = Chunk(LEAF, stop - self.at, [np.arange(self.at, stop)])
        self.at = stop
        return chunk


class Build:
    def __init__(self, input_is_replayable=True):
        self.input_is_replayable = input_is_replayable


def bulk(source, build=None, elements_max=64, bytes_max=1 << 20):
    return ReadAheadOperator(source, build or Build(), elements_max=elements_max, bytes_max=bytes_max, is_steady=False)


def taken(operator, count, n=1):
    """Up to ``count`` outcomes; a failure as minus its number."""
    found = []
    while len(found) < count:
        try:
            chunk = operator.pull(min(n, count - len(found)))
        except ValueError as error:
            found.append(-error.args[0])
            continue
        if chunk is None:
            break
        found += chunk.columns()[0].tolist()
    return found


def expected(count):
    return [-x if x % 100 == 99 else x for x in range(count)]


@pytest.mark.parametrize("n", [1, 7, 64, 500])
def test_gives_what_the_source_gives_in_far_fewer_pulls(n):
    source = Source(1000)
    assert taken(bulk(source), 2000, n) == expected(1000)
    assert len(source.asked) < (150 if n < 64 else 50)


def test_never_reads_more_ahead_than_was_given():
    source = Source(5000)
    operator = bulk(source, elements_max=1000)
    for given in range(1, 3000):
        taken(operator, 1)
        assert source.at <= 2 * given


def test_holds_no_more_elements_and_bytes_than_it_may():
    source = Source(1000)
    taken(bulk(source, elements_max=20), 1000)
    assert max(source.asked) == 20
    source = Source(1000)
    taken(bulk(source, bytes_max=8 * 12), 1000)
    assert max(source.asked) == 12
    source = Source(1000)
    taken(bulk(source, bytes_max=1), 1000, n=30)
    assert max(source.asked) == 30


@pytest.mark.parametrize("repeats", [True, False])
def test_goes_on_from_every_place_and_from_there_again(repeats):
    walking = bulk(Source(330), Build(repeats))
    for place in range(331):
        if place % 10 > 2:
            taken(walking, 1)
            continue
        first = bulk(Source(330), Build(repeats))
        first.load(walking.save())
        assert taken(first, 5) == expected(330)[place : place + 5]
        second = bulk(Source(330), Build(repeats))
        second.load(first.save())
        assert taken(second, 400) == expected(330)[place + 5 :]
        assert not repeats or not walking.save().held
        taken(walking, 1)


def test_what_is_held_when_the_source_turns_out_not_to_repeat_itself_is_saved_by_value():
    build = Build()
    operator = bulk(Source(98), build)
    assert taken(operator, 8) == list(range(8))
    build.input_is_replayable = False
    source = Source(98)
    again = bulk(source, build)
    again.load(operator.save())
    assert taken(again, 100) == list(range(8, 98))
