"""Worker processes that died: words for how they ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from dataset.errors import WorkerDiedError

_ENDED_ITSELF = "the function, or a library that it uses, has ended the process"
_OUT_OF_MEMORY = "often the system was out of memory: fewer num_parallel_calls or smaller elements need less"
_HINTS: dict[int, str] = {
    signal.SIGKILL: _OUT_OF_MEMORY,
    signal.SIGSEGV: "native code that the function calls has crashed; the stack is on stderr",
    signal.SIGABRT: "native code that the function calls has given up; the reason is often on stderr",
    signal.SIGBUS: _OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class Ending:
    """How a worker process ended.

    Attributes:
        code: its exit code, negative for a signal; None if there was no process, or the launcher had ended before.
        launcher_code: the exit code of the launcher, if it had ended before.
        reason: why there was no process.
    """

    code: int | None = None
    launcher_code: int | None = None
    reason: str = ""

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended the worker or the launcher, so that others may do the same work."""
        code = self.code if self.launcher_code is None else self.launcher_code
        return code is not None and code < 0


def worker_died(label: str, when: str, ending: Ending) -> WorkerDiedError:
    """The error for a worker of the operation ``label``.

    Args:
        label: such as ``map(decode) from train.py:41``.
        when: such as ``while it worked on element 7``.
        ending: how it ended.
    """
    if ending.reason:
        return WorkerDiedError(f"{label}: {ending.reason}", exit_code=None)
    if ending.launcher_code is not None:
        how = ending_words(ending.launcher_code)
        message = f"{label}: the process that starts the workers {how}, and with it a worker {when}"
        hint = _HINTS.get(-ending.launcher_code, "")
    else:
        assert ending.code is not None  # there are three kinds
        message = f"{label}: a worker process {ending_words(ending.code)} {when}"
        hint = _ENDED_ITSELF if ending.code >= 0 else _HINTS.get(-ending.code, "")
    return WorkerDiedError(f"{message}; {hint}" if hint else message, exit_code=ending.code)


def ending_words(code: int) -> str:
    """How a process with this exit code ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
