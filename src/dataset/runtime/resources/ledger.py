"""The memory budget: one ledger for all background buffers of an iteration, with an account for each.

A stage *reserves* memory before it begins elements, *settles* once they are there, with what they really take, and
*releases* what is taken out. How much each may hold is the rule of dynamic thresholds (A. K. Choudhury and E. L. Hahne,
Dynamic queue length thresholds for shared-memory packet switches, IEEE/ACM Transactions on Networking 6, 1998): an
account may grow while it holds no more than what is free. So n busy accounts get budget / (n + 1) each, one that comes
later finds room, and nobody has to divide the memory.

**Nobody waits here.** Who is refused asks again when something was taken from his buffer. That is enough, because an
account that holds nothing is never refused one element: whatever the others hold, a consumer that waits for an empty
buffer gets its element, even one that is larger than the budget.

**The bound.** So that such an element finds room, one of the size that an account expects is set aside for it, and no
other may use that room. As long as the budget has room for these, and no element is larger than the largest before it
in its account, what is held and what is being made never exceed the budget. Larger ones that come now and then find the
free rest. So all accounts together hold no more than the budget and one element of each account.

**Unknown sizes.** Nothing is known of the first element of an account. Where the budget was set by the user, or is
small, it is made alone: the next begins when the size of the first is known. Where the budget is a default and large,
each worker makes one at a time meanwhile, for that takes a small part of it with any usual elements.

**No deadlock.** A refused worker leaves, and holds no lock, no thread and no place in the pool while it is away. What
the consumer waits for is always under way or may begin: an account that holds nothing is never refused; tasks that must
come out in order begin in order, so the next one in order began before all those that hold memory; and a dataset whose
turn it is has the spare element. An account waits for its own first element alone, which waits for other accounts only
through the operators below it, and those have the same promise; so there is no cycle. The worker that settles the
first element looks for the next one itself, and calls the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

UNBOUNDED = 1 << 62
"""The budget where there is none: more bytes than any machine has."""

SMALL_BYTES = 1 << 28
"""A smaller budget is not risked for elements of unknown size, even if the user has not set it."""

_DECAY_BITS = 8
"""After each settling, the largest size is remembered as a 256th less: half of it is forgotten after 177."""


class Ledger:
    """Who holds how much of the budget.

    One lock guards all fields, and those of the accounts. It is held for a few steps only.

    Args:
        budget: bytes that all accounts together may hold; a function is called for it when it is first needed.
        is_binding: whether the user has set it, so that the first elements of an account are made one by one.
    """

    def __init__(self, budget: int | Callable[[], int] = UNBOUNDED, *, is_binding: bool = False) -> None:
        self._is_binding = is_binding
        self.lock = threading.RLock()  # reentrant: the garbage collector may close an operator in a thread that has it
        self.charged = 0  # bytes held, being made and set aside
        self.accounts: set[Account] = set()  # those that are open
        self._budget = budget

    @property
    def budget(self) -> int:
        """Bytes that all accounts together may hold."""
        if not isinstance(self._budget, int):
            self._budget = self._budget()
        return self._budget

    @property
    def waits_for_sizes(self) -> bool:
        """Whether an account makes its first element alone."""
        return self._is_binding or self.budget < SMALL_BYTES

    @property
    def held(self) -> int:
        """Bytes that are held or expected of what is being made, all accounts together."""
        with self.lock:
            return sum(account.held for account in self.accounts)

    def account(self, *, spare: int = 0) -> Account:
        """A new one, for one buffer.

        Args:
            spare: elements to set aside beside what it holds, for urgent reservations.
        """
        account = Account(self, spare)
        with self.lock:
            self.accounts.add(account)
        return account


class Account:
    """What one buffer holds.

    Attributes:
        is_refused: whether the last reservation was.
        refusals: how often no more was begun for want of memory.
    """

    __slots__ = (
        "_begun",
        "_bytes",
        "_charge",
        "_expected",
        "_largest",
        "_ledger",
        "_lock",
        "_measured",
        "_spare",
        "is_refused",
        "refusals",
    )

    def __init__(self, ledger: Ledger, spare: int = 0) -> None:
        self._ledger = ledger
        self._lock = ledger.lock
        self._spare = spare
        self._bytes = 0  # of the elements that are there
        self._begun = 0  # elements in the making
        self._largest = 0  # bytes of an element, lately
        self._measured = 0  # elements ever
        self._expected = 0  # bytes that one in the making is counted with; 0 while nothing is known
        self._charge = 0  # our part of the ledger's sum
        self.is_refused = False
        self.refusals = 0

    @property
    def held(self) -> int:
        """Bytes of the elements that are there, and expected of those in the making."""
        return self._bytes + self._begun * self._expected

    @property
    def expected(self) -> int:
        """Bytes that an element is expected to take; 0 while nothing is known."""
        return self._expected

    def reserve(self, count: int, *, urgent: bool = False) -> int:
        """How many of ``count`` elements may be begun now; 0 for none, but never where nothing is held.

        Args:
            count: how many are wanted, at least 1.
            urgent: whether one must be given in any case: the spare one. It must be taken before another reservation is
                urgent. None is given while the first element of all is made alone.
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
        """For how many more elements there is room."""
        expected, ledger = self._expected, self._ledger
        if not expected:
            return 0 if self._begun and ledger.waits_for_sizes else 1
        held = self._bytes + self._begun * expected
        others = ledger.charged - self._charge
        most = (ledger.budget - others) // 2 - self._spare * expected  # half of it, where it equals the free rest
        if held + expected <= most:
            return (most - held) // expected
        return 0 if held else 1

    def settle(self, begun: int, made: int, nbytes: int, input_nbytes: int = 0) -> None:
        """Of the elements that were reserved, ``begun`` are not in the making any more.

        Args:
            begun: how many; some may not have come to be, at the end or where one failed.
            made: how many of them say what one takes.
            nbytes: of what is held now because of them.
            input_nbytes: of what was held while they were made, and is not any more.
        """
        with self._lock:
            self._begun -= begun
            self._bytes += nbytes
            if made:
                self._learn(made, nbytes + input_nbytes)
            self._recharge()

    def _learn(self, made: int, nbytes: int) -> None:
        """Expect the largest of the last ones, and more while few are known.

        Of m numbers drawn evenly from 0 to an unknown bound, the largest is on average too small for the bound by an
        m-th of itself (the German tank problem).
        """
        remembered = self._largest - (self._largest >> _DECAY_BITS)
        self._largest = largest = max(1, remembered, -(-nbytes // made))
        self._measured += made
        self._expected = largest + largest // self._measured

    def hold(self, nbytes: int) -> None:
        """Count ``nbytes`` that are held without having been reserved."""
        self.release(-nbytes)

    def release(self, nbytes: int) -> None:
        """``nbytes`` are not held any more."""
        if nbytes:
            with self._lock:
                self._bytes -= nbytes
                self._recharge()

    def release_all(self) -> None:
        """Nothing that was there is held any more."""
        with self._lock:
            self.release(self._bytes)

    def close(self) -> None:
        """The buffer is gone. May be called twice; nothing is reserved afterwards."""
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
        return f"Account({self._bytes:,} bytes, and {self._begun} elements of about {self._expected:,} in the making)"
