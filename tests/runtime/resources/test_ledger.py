"""Tests of the memory budget: the limits of buffers, their sum, and that there are no deadlocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset.amounts import ENDLESS
from dataset.runtime.resources.ledger import Ledger

pytestmark = pytest.mark.usefixtures("switch_interval")


def known(ledger, size, *, spare=0):
    """Return an empty account that has seen many elements of one size."""
    account = ledger.account(spare=spare)
    account.reserve(1)
    account.settle(1, 1000, 1000 * size)
    account.release(1000 * size)
    return account


# Guarantees

STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["reserve", "settle", "fail", "release"]), st.integers(1, 30))
)


class Buffer:
    """Simulates stages with elements that are not larger than the largest one before."""

    def __init__(self, ledger, first):
        self.account = ledger.account()
        self.largest = first
        self.begun = 0
        self.finished = []
        assert self.account.reserve(5) == 1  # no sizes are known yet
        self.account.settle(1, 1, first)
        self.account.release(first)

    def do(self, step, number):
        if step == "reserve":
            self.begun += self.account.reserve(number)
        elif step == "settle" and self.begun:
            size = self.account._largest * number // 30
            self.account.settle(1, 1, size)
            self.finished.append(size)
            self.begun -= 1
        elif step == "fail" and self.begun:
            self.account.settle(1, 0, 0)
            self.begun -= 1
        elif step == "release" and self.finished:
            self.account.release(self.finished.pop(number % len(self.finished)))

    def is_as_counted(self):
        return self.account.held == sum(self.finished) + self.begun * self.account.expected


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4), st.integers(0, 20_000), STEPS)
def test_the_budget_holds_while_no_element_is_larger_than_the_largest_before(sizes, free, steps):
    ledger = Ledger(sum(2 * max(1, size) for size in sizes) + free)
    buffers = [Buffer(ledger, size) for size in sizes]
    for index, step, number in steps:
        buffers[index].do(step, number)
        assert ledger.held <= ledger.budget
        assert buffers[index].is_as_counted()
    for buffer in buffers:
        buffer.account.close()
        buffer.account.close()
    assert ledger.charged == ledger.held == len(ledger.accounts) == 0


@given(st.integers(0, 500), st.integers(0, 5000), st.lists(st.integers(1, 9)))
def test_it_holds_with_an_urgent_element_too(size, free, wanted):
    ledger = Ledger(6 * max(1, size) + free)
    other, account = Buffer(ledger, size), known(ledger, size, spare=1)
    for count in wanted:
        account.reserve(count)
        other.do("reserve", count)
        granted = account.reserve(count, urgent=True)
        assert granted >= 1
        assert ledger.held <= ledger.budget
        account.settle(granted, granted, granted * size)
        account.release(granted * size)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 10**9)), max_size=40), st.integers(1, 1000)
)
def test_who_holds_nothing_is_never_refused_whatever_the_others_hold(steps, budget):
    ledger = Ledger(budget)
    accounts = [ledger.account() for _ in range(3)]
    for index, count, nbytes in steps:
        granted = accounts[index].reserve(count)
        if granted:
            accounts[index].settle(granted, granted, nbytes)
        else:
            assert accounts[index].held
            accounts[index].release_all()
            granted = accounts[index].reserve(count)
            assert granted
            accounts[index].settle(granted, 0, 0)
    assert ledger.held == sum(account.held for account in accounts)
    newcomer = ledger.account()
    assert newcomer.reserve(9) == 1


def test_an_element_larger_than_the_budget_passes_alone():
    account = known(Ledger(100), 1000)
    assert account.reserve(5) == 1
    assert account.reserve(5) == 0
    assert account.refusals == 1
    account.settle(1, 1, 1000)
    assert account.reserve(1) == 0
    account.release(1000)
    assert account.reserve(5) == 1


# Distribution


@pytest.mark.parametrize("count", [1, 2, 7])
def test_busy_accounts_get_equal_shares_and_one_share_stays_free(count):
    ledger = Ledger(1_000_000)
    accounts = [known(ledger, 1000) for _ in range(count)]
    while sum(account.reserve(1) for account in accounts):
        pass
    share = ledger.budget / (count + 1)
    assert all(abs(account.held - share) <= 2 * account.expected for account in accounts)


@pytest.mark.parametrize(("sizes", "rel"), [((1000, 1000), 0.01), ((10_000, 100), 0.05)])
def test_one_that_comes_later_finds_room_and_soon_has_as_many_bytes_as_the_others(sizes, rel):
    ledger = Ledger(1_000_000)
    accounts = [known(ledger, size) for size in sizes]
    for account, share in zip(accounts, (500_000, 250_000), strict=True):
        assert account.reserve(10_000) * account.expected == pytest.approx(share, rel=rel)
    for _ in range(1000):
        for account, size in zip(accounts, sizes, strict=True):
            account.settle(1, 1, size)
            account.release(size)
            account.reserve(max(2, 10_000 // size))
    assert [account.held for account in accounts] == pytest.approx([333_333, 333_333], rel=rel)


def test_while_no_size_is_known_each_worker_begins_one_element_at_a_time():
    account = Ledger(10**9).account()
    assert [account.reserve(100) for _ in range(3)] == [1, 1, 1]
    account.settle(1, 0, 0)  # a failure says nothing about sizes
    assert account.held == account.expected == 0
    assert account.reserve(100) == 1
    account.settle(1, 1, 8)
    assert account.held == 8 + 2 * account.expected
    assert account.reserve(100) == 100


def test_one_giant_does_not_throttle_for_ever():
    account = known(Ledger(10_000_000), 1000)
    account.settle(0, 1, 4_000_000)
    account.release(4_000_000)
    assert account.reserve(100) == 1
    account.settle(1, 0, 0)
    for _ in range(2500):
        account.settle(0, 1, 1000)
        account.release(1000)
    assert account.reserve(100) == 100


# Construction


def test_without_a_budget_no_account_is_refused_and_it_says_what_it_holds():
    assert Ledger().budget == ENDLESS
    assert known(Ledger(), 10**12).reserve(10**6) == 10**6
    account = known(Ledger(), 1000)
    account.reserve(2)
    account.hold(5000)
    assert repr(account) == "Account(5,000 bytes, and 2 elements of about 1,001 in progress)"


def test_the_default_is_found_once_and_not_before_it_is_needed():
    calls = []
    ledger = Ledger(lambda: calls.append(1) or 1000)
    account = ledger.account()
    account.reserve(1)
    assert not calls
    account.settle(1, 1, 10)
    account.reserve(1)
    account.reserve(1)
    assert ledger.budget == 1000
    assert calls == [1]
