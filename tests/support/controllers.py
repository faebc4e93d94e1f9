"""Controllers that decide without measuring who does the work: the workers, or the consumer."""

import math

from dataset.runtime.choice import INLINE
from dataset.runtime.parallel.controller import THREADS, Controller


class OnlyWorkers(Controller):
    """Leaves all work to the workers."""

    way = THREADS

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.use(self.way)

    def use(self, way):
        if way in self.choice.ways:
            self._is_judged = True
            self.choice.accept(way)

    def _look(self, now, count):
        pass


class AlwaysInline(OnlyWorkers):
    """Leaves all work to the consumer, from the beginning on."""

    way = INLINE


class TakingTurns(OnlyWorkers):
    """Leaves the work to the workers for two tasks and then to the consumer for two pulls, again and again."""

    turns = 0

    def add(self, *task):
        self.turns += 1
        if self.turns % 2 == 0 and not self.inline:
            self.use(INLINE)

    def end_inline(self, *pull):
        seconds = super().end_inline(*pull)
        self.turns += 1
        if self.turns % 2 == 0 and self.inline:
            self.use(THREADS)
        return seconds


class Starting(Controller):
    """Leaves the first pulls to the consumer, and all others to the workers."""

    pulls = math.inf

    def _note_start(self, *pull):
        self.pulls -= 1
        if self.pulls <= 0:
            self._is_judged = True
            self.choice.accept(THREADS)

    def _look(self, now, count):
        pass
