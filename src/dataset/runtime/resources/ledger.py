"""Memory ledger: the memory budget of an iteration, with an account for each background buffer.

A stage *reserves* memory before it begins elements, *settles* with their actual size when they are computed, and
*releases* what is taken out. The limit of each account follows the dynamic threshold rule (A. K. Choudhury and E. L.
Hahne, Dynamic queue length thresholds for shared-memory packet switches, IEEE/ACM Transactions on Networking 6, 1998):
an account may grow while it holds no more than what is free. So n busy accounts get budget / (n + 1) each, an account
that is opened later finds room, and no fixed partition is needed.

**No waiting.** If a reservation is refused, the stage tries again after something was taken from its buffer. This is
sufficient, because an account that holds nothing is never refused one element. Whatever the other accounts hold, a
consumer that waits for an empty buffer gets its element, even one that is larger than the budget.

**The bound.** To have room for such an element, the expected size of one element is set aside for each account. Other
accounts may not use it. The budget is never exceeded as long as it has room for these and each element is at most as
large as the largest before it in its account. Occasional larger elements use the remaining free memory. So all accounts
together hold at most the budget plus one element per account.

**Unknown sizes.** The size of the first element of an account is unknown. If the user has set the budget, or if it is
small, the first element is computed alone: the next one begins when the size of the first is known. If the budget is a
large default, each worker computes one element at a time meanwhile, which takes a small part of the budget for usual
elements.

**No deadlock.** A refused worker leaves. It holds no lock, no thread and no place in the pool meanwhile. Whatever the
consumer waits for is in progress or may begin. An account that holds nothing is never refused. Ordered tasks begin in
order, so the next one began before all those that hold memory. A dataset whose turn it is may use the spare element. An
account waits only for its own first element. That element waits for other accounts only through the operators below it,
which have the same guarantee, so cycles are impossible. The worker that settles the first element continues with the
next one itself, and calls the other workers.
"""

from __future__ import annotations

from collections.abc import Callable

from dataset.amounts import ENDLESS
from dataset.world import threading

SMALL_BYTES = 1 << 28
"""A smaller budget is not risked for elements of unknown size, even if it is a default."""

_DECAY_BITS = 8
"""After each settling, the remembered largest size shrinks by 1/256: by half after 177 settlings."""


class Ledger:
    """The distribution of the memory budget.

    One lock guards all fields, including those of the accounts. It is held only briefly.

    Args:
        budget: bytes that all accounts together may hold, or a function that returns it when first needed.
        is_binding: whether the user has set it, so that the first element of an account is computed alone.
    """

    def __init__(self, budget: int | Callable[[], int] = ENDLESS, *, is_binding: bool = False) -> None:
        self._is_binding = is_binding
        self.lock = threading.RLock()  # reentrant: the garbage collector may close an operator in a holding thread
        self.charged = 0  # bytes held, expected for elements in progress, and set aside
        self.accounts: set[Account] = set()  # the open accounts
        self._budget = budget

    @property
    def budget(self) -> int:
        """The bytes that all accounts together may hold."""
        if not isinstance(self._budget, int):
            self._budget = self._budget()
        return self._budget

    @property
    def waits_for_sizes(self) -> bool:
        """Whether an account computes its first element alone."""
        return self._is_binding or self.budget < SMALL_BYTES

    @property
    def held(self) -> int:
        """The bytes held, or expected for elements in progress, over all accounts."""
        with self.lock:
            return sum(account.held for account in self.accounts)

    def account(self, *, spare: int = 0) -> Account:
        """Open a new account, for one buffer.

        Args:
            spare: the number of elements to set aside, besides what the account holds, for urgent reservations.
        """
        account = Account(self, spare)
        with self.lock:
            self.accounts.add(account)
        return account


class Account:
    """Account of one buffer.

    Attributes:
        is_refused: whether the last reservation was refused.
        refusals: how often a reservation was refused.
    """

    def __init__(self, ledger: Ledger, spare: int = 0) -> None:
        self._ledger = ledger
        self._lock = ledger.lock
        self._spare = spare
        self._bytes = 0  # bytes of the finished elements
        self._begun = 0  # elements in progress
        self._largest = 0  # the largest recent size of an element
        self._measured = 0  # the number of elements measured
        self._expected = 0  # expected bytes of an element in progress; 0 if unknown
        self._charge = 0  # this account's part of the ledger's sum
        self.is_refused = False
        self.refusals = 0

    @property
    def held(self) -> int:
        """The bytes of the finished elements, and the expected bytes of those in progress."""
        return self._bytes + self._begun * self._expected

    @property
    def expected(self) -> int:
        """The expected bytes of an element; 0 if unknown."""
        return self._expected

    def reserve(self, count: int, *, urgent: bool = False) -> int:
        """Return how many of ``count`` elements may be begun now. May be 0, but not if nothing is held.

        Args:
            count: how many elements are wanted, at least 1.
            urgent: whether to grant one in any case, the spare one. It must be released before the next urgent
                reservation. Not granted while the very first element is computed alone.
        """
        with self._lock:
            granted = self._room()
            if granted > count:
                granted = count
            elif not granted and urgent and self._expected:
                granted = 1
            if granted:
                self.is_refused = False
                self._begun += granted
                self._recharge()
            else:
                self.is_refused = True
                self.refusals += 1
            return granted

    def _room(self) -> int:
        """Return how many more elements there is room for."""
        expected, ledger = self._expected, self._ledger
        if not expected:
            return 0 if self._begun and ledger.waits_for_sizes else 1
        held = self._bytes + self._begun * expected
        others = ledger.charged - self._charge
        most = (ledger.budget - others) // 2 - self._spare * expected  # where it equals the free bytes
        if held + expected <= most:
            return (most - held) // expected
        return 0 if held else 1

    def settle(self, begun: int, made: int, nbytes: int, input_nbytes: int = 0) -> None:
        """Settle a reservation: ``begun`` reserved elements are no longer in progress.

        Args:
            begun: how many; some may not have been computed, because of the end of data or a failure.
            made: how many of them have a known size.
            nbytes: the bytes that are held now for these elements.
            input_nbytes: the bytes that were held for their computation and are not held any more.
        """
        with self._lock:
            self._begun -= begun
            self._bytes += nbytes
            if made:
                self._learn(made, nbytes + input_nbytes)
            self._recharge()

    def _learn(self, made: int, nbytes: int) -> None:
        """Expect the largest recent size, plus a margin while few elements are known.

        The largest of m numbers drawn uniformly from 0 to an unknown bound is on average too small for the bound by an
        m-th of itself (the German tank problem).
        """
        remembered = self._largest - (self._largest >> _DECAY_BITS)
        self._largest = largest = max(1, remembered, -(-nbytes // made))
        self._measured += made
        self._expected = largest + largest // self._measured

    def hold(self, nbytes: int) -> None:
        """Count ``nbytes`` that are held without a reservation."""
        self.release(-nbytes)

    def release(self, nbytes: int) -> None:
        """Note that ``nbytes`` are not held any more."""
        if nbytes:
            with self._lock:
                self._bytes -= nbytes
                self._recharge()

    def release_all(self) -> None:
        """Note that no finished element is held any more."""
        with self._lock:
            self.release(self._bytes)

    def close(self) -> None:
        """Close the account with its buffer. May be called twice; nothing is reserved afterwards."""
        with self._lock:
            self._bytes = self._begun = self._spare = self._expected = 0
            self._recharge()
            self._ledger.accounts.discard(self)

    def _recharge(self) -> None:
        expected = self._expected
        held = self._bytes + self._begun * expected
        charge = max(held, expected) + self._spare * expected
        self._ledger.charged += charge - self._charge
        self._charge = charge

    def __repr__(self) -> str:
        return f"Account({self._bytes:,} bytes, and {self._begun} elements of about {self._expected:,} in progress)"
