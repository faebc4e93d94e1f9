"""Settings of a pipeline, and the constant that leaves a number to the library. Values only."""

from __future__ import annotations

import copy
import difflib
from typing import Any, ClassVar, Self

AUTOTUNE = -1
"""Leave a buffer size or a parallelism to the library; tf.data's value, so that either constant works."""


class _Settings:
    """Named fields, None where not set; unknown names are refused, and a frozen object cannot be changed."""

    _defaults: ClassVar[dict[str, Any]]
    _frozen: bool

    def __init__(self) -> None:
        object.__setattr__(self, "_frozen", False)
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value() if isinstance(value, type) else value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            close = difflib.get_close_matches(name, self._defaults, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(self._defaults))}"
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; {hint}")
        if self._frozen:
            raise ValueError(
                f"these options belong to a dataset and cannot be changed: set {name!r} on a new Options()"
            )
        self._check(name, value)
        object.__setattr__(self, name, value)

    def _check(self, name: str, value: Any) -> None:
        nested = self._defaults[name]
        if isinstance(nested, type):
            if not isinstance(value, nested):
                raise TypeError(f"{type(self).__name__}.{name} must be {nested.__name__}, got {value!r}")
        elif value is not None and not isinstance(value, bool):
            raise TypeError(f"{type(self).__name__}.{name} must be True, False or None, got {value!r}")

    def names(self) -> list[str]:
        """The names of the options."""
        return list(self._defaults)

    def merge(self, other: Self) -> Self:
        """A copy of these settings in which those that ``other`` sets take precedence."""
        merged = copy.deepcopy(self)
        object.__setattr__(merged, "_frozen", False)
        for name in self._defaults:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Settings):
                setattr(merged, name, mine.merge(theirs))
            elif theirs is not None:
                setattr(merged, name, theirs)
        return merged

    def freeze(self) -> Self:
        """A copy that cannot be changed."""
        frozen = copy.deepcopy(self)
        for name in self._defaults:
            value = getattr(frozen, name)
            if isinstance(value, _Settings):
                object.__setattr__(frozen, name, value.freeze())
        object.__setattr__(frozen, "_frozen", True)
        return frozen

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._defaults)

    __hash__ = None  # type: ignore[assignment]  # can be changed

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self._defaults}
        unset = [None, *(nested() for nested in self._defaults.values() if isinstance(nested, type))]
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value not in unset)
        return f"{type(self).__name__}({shown})"


class OptimizationOptions(_Settings):
    """Which rewritings of the plan are made. None means the default, which is on.

    Attributes:
        enabled: False switches all of them off.
        noop_elimination: leave out operations that do nothing, such as ``take(-1)``.
        shuffle_before_gather: shuffle the indices of in-memory arrays, and take the rows afterwards.
        map_vectorization: run simple arithmetic functions on whole columns.
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "enabled": None,
        "noop_elimination": None,
        "shuffle_before_gather": None,
        "map_vectorization": None,
    }
    enabled: bool | None
    noop_elimination: bool | None
    shuffle_before_gather: bool | None
    map_vectorization: bool | None

    def allows(self, rule: str) -> bool:
        """Whether a rule may be used."""
        return self.enabled is not False and getattr(self, rule) is not False


class Options(_Settings):
    """Settings for ``Dataset.with_options``; they hold for the whole pipeline, and later ones win.

    Attributes:
        deterministic: whether order must be kept where work runs in parallel. Today every op keeps it, whatever this
            says.
        optimization: see OptimizationOptions.

    >>> options = Options()
    >>> options.optimization.enabled = False
    >>> options
    Options(optimization=OptimizationOptions(enabled=False))
    >>> options.determinstic = True
    Traceback (most recent call last):
        ...
    AttributeError: Options has no option 'determinstic'; did you mean 'deterministic'?
    """

    _defaults: ClassVar[dict[str, Any]] = {"deterministic": None, "optimization": OptimizationOptions}
    deterministic: bool | None
    optimization: OptimizationOptions
