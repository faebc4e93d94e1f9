"""The arithmetic of dealing out, against cards dealt out one by one."""

from hypothesis import given
from hypothesis import strategies as st

from dataset.plan.block_cyclic_shard import REMAINDERS, BlockCyclicShard, places_in


def batches(numbers, size, *, drop_remainder):
    found = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return [batch for batch in found if len(batch) == size or not drop_remainder]


sizes = st.integers(1, 4)


@given(st.integers(0, 60), sizes, sizes, sizes, st.booleans(), st.booleans(), st.sampled_from(REMAINDERS))
def test_counts_and_places_are_those_of_turns_dealt_out_one_by_one(n, world_size, outer, inner, drop, drop_inner, how):
    inner_batches = batches(list(range(n)), inner, drop_remainder=drop_inner)
    turns = [
        [number for batch in turn for number in batch] for turn in batches(inner_batches, outer, drop_remainder=drop)
    ]
    whole = len(turns) // world_size * world_size
    for rank in range(world_size):
        deal = BlockCyclicShard(world_size, rank, how).below_batch(outer, drop_remainder=drop)
        deal = deal.below_batch(inner, drop_remainder=drop_inner)
        own = turns[rank:whole:world_size] if how == "drop" else turns[rank::world_size]
        if how == "repeat" and turns and whole < len(turns) and rank >= len(turns) - whole:
            own.append(turns[(whole + rank) % len(turns)])
        if how == "pad" and turns and whole < len(turns) and rank >= len(turns) - whole:
            assert deal.count(n) == sum(map(len, own)) + outer * inner
            continue
        mine = [number for turn in own for number in turn]
        assert abs(deal.count(n) - len(mine)) < inner  # a batch that is dropped above may leave elements over
        if how in ("drop", "keep"):
            assert [deal.places(i) for i in range(len(mine))] == mine


def test_shares_of_shares_stand_where_they_stand_among_all():
    first, second = BlockCyclicShard(3, 1, "keep", turn=2), BlockCyclicShard(2, 1, "keep")
    mine = [number for number in range(60) if number // 2 % 3 == 1]
    assert [places_in((first, second), number) for number in range(10)] == mine[1::2]
