"""Replay skip: after a restore, skips the elements that were given before the state was saved."""

from __future__ import annotations

from dataset.runtime.contract import State
from dataset.runtime.functions.call_loop import CallLoop
from dataset.runtime.parallel.tasks import passed_over
from dataset.runtime.resources.exceptions import concerns_iteration

_SKIPPED_MAX = 1024  # elements computed at a time to be dropped


class ReplaySkip(CallLoop):
    """Call loop that skips the runs in ``given``; it calls the function only if its results were given in part."""

    def pass_given(self, n: int) -> int:
        if not self.given or self.outbox:
            return n
        start, inputs, outputs = self.given[0]
        if start > self.position:
            return min(n, start - self.position)
        if not inputs:
            self.given.popleft()
            self._pass_outputs(outputs)
            return 0
        passed = self._pass_inputs(inputs)
        if passed:
            self.given[0] = self.position, inputs - passed, outputs
        else:  # the input has become shorter; the next read finds its end
            self.given.clear()
        return 0

    def _pass_inputs(self, n: int) -> int:
        """Skip 1 to ``n`` inputs without calling the function; return how many, 0 at the end."""
        if self._todo:
            chunk = self._todo.give(n)
            passed = 0 if chunk is None else chunk.length
        elif isinstance(self.source, ReplaySkip) and self.source.one_to_one:
            passed = self.source.pass_unmade(n)
        else:
            passed = passed_over(self.source, n)
        self.position += passed
        return passed

    def pass_unmade(self, n: int) -> int:
        """Skip 1 to ``n`` outputs without computing them; return how many, 0 at the end."""
        if not self.outbox:
            n = self.after_given(n)  # which may leave more elements ready than have to be skipped
        return self._pass_ready(n) if self.outbox else self._pass_inputs(n)

    def _pass_ready(self, n: int) -> int:
        try:
            chunk = self.outbox.give(n)
        except Exception as error:
            if concerns_iteration(error):
                raise
            return 1  # it was raised before the state was saved
        return 0 if chunk is None else chunk.length

    def _pass_outputs(self, n: int) -> None:
        """Compute ``n`` elements again and drop them; fewer at the end."""
        while n:
            try:
                chunk = CallLoop.pull(self, min(n, _SKIPPED_MAX))
            except Exception as error:
                if concerns_iteration(error):
                    raise
                n -= 1  # it was raised before the state was saved
                continue
            except BaseException:  # such as KeyboardInterrupt: no element is lost or repeated
                n -= len(self.outbox)
                self.outbox.clear()
                self.given.appendleft((self.position, 0, n))
                raise
            if chunk is None:
                return
            if chunk.length > n:
                self.outbox.put_first(chunk.slice(n, chunk.length))
            n -= min(n, chunk.length)

    def advance(self, state: State, count: int) -> State | None:
        return self.after_inputs(state, count) if self.one_to_one else None
