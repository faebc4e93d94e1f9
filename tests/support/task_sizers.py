"""Task sizers that decide without measuring who does the work: the workers, or the consumer."""

from dataset.runtime.parallel.task_sizer import TaskSizer


class AlwaysInline(TaskSizer):
    """Leaves all work to the consumer, from the beginning on."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        if self.may_inline:
            self._go_inline(float("inf"))

    def _leave_inline(self):
        pass


class TakingTurns(TaskSizer):
    """Leaves the work to the workers for two tasks and then to the consumer for two pulls, again and again."""

    turns = 0

    def add(self, *task):
        self.turns += 1
        if self.turns % 2 == 0 and self.may_inline and not self.inline:
            self._go_inline(float("inf"))

    def add_inline(self, *pull):
        super().add_inline(*pull)
        self.turns += 1
        if self.turns % 2 == 0 and self.inline:
            self._leave_inline()
