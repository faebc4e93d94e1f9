"""Records of steps: which source records the elements after a saved state are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dataset.dataset import Dataset, tracing_iterator
from dataset.plan.plain import unwrapped
from dataset.runtime.chunks.source_records import Provenance


def records(
    state: Mapping[str, Any],
    dataset: Dataset[Any],
    steps: int | Iterable[int] = 1,
    *,
    from_start: bool = False,
    moved: Callable[[str], str] | Mapping[str, str] | None = None,
) -> dict[int, Provenance]:
    """Return the source records of steps after a saved state, such as the batches in which a loss became NaN.

    The steps are computed again from the state, with the functions of the pipeline, as on a resume. The dataset does
    not count this as an iteration.

    The iterator that saved the state need not have recorded provenance. If it did not, the records of elements that the
    state holds by value are unknown, such as those in the buffer of a ``shuffle`` after ``map``; then use
    ``from_start``. An op with ``deterministic=False`` need not compute the same steps again: only
    ``iterator.provenance()`` tells its records.

    Args:
        state: the result of ``state_dict()`` or ``to_json()``.
        dataset: the Dataset whose iterator saved the state.
        steps: how many steps, or their numbers. Step ``i`` is the ``i``-th result of ``next`` in the whole iteration,
            counted from 0, so the first step after the state is the number of elements that were taken before.
        from_start: whether to compute the whole iteration in which the state was saved, from its beginning. This takes
            longer. All records are known then, and those of steps before the state, too. The number of processes must
            not have changed since.
        moved: the new names of renamed data files, as in ``load_state_dict``.

    Returns:
        The records by step. Steps after the end of the data are missing. A step that fails has no records.

    Raises:
        StateError: the state does not fit the dataset, or is damaged.
        ValueError: a step is before the state.

    >>> from dataset import Dataset, checkpoint
    >>> letters = Dataset.from_tensor_slices([b"a", b"b", b"c", b"d", b"e"], name="letters").batch(2)
    >>> iterator = iter(letters)
    >>> batch = next(iterator)
    >>> found = checkpoint.records(iterator.state_dict(), letters, 2)
    >>> list(found)
    [1, 2]
    >>> print(found[1])
    letters:2
    letters:3
    """
    found: dict[int, Provenance] = {}
    with tracing_iterator(dataset, dict(state), moved, from_start=from_start) as iterator:
        at: int = unwrapped(dict(state))["elements"]
        wanted = range(at, at + steps) if isinstance(steps, int) else sorted(set(steps))
        at = 0 if from_start else at
        if wanted and wanted[0] < at:
            raise ValueError(
                f"checkpoint.records(): step {wanted[0]} is before the state, which was saved after {at} steps: use an "
                "earlier state, or from_start=True"
            )
        for step in wanted:
            at += iterator.skip(step - at)
            try:
                next(iterator)
            except StopIteration:
                break
            except Exception:  # noqa: BLE001  # a failed step has no records
                found[step] = Provenance(())
            else:
                found[step] = iterator.provenance()
            at += 1
    return found
