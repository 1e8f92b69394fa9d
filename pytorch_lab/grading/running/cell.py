"""One cell of a student's notebook under pytest: nbval runs it, our values decide.

A cell of the role "check" gives the verdict on its exercise. Where that is not a pass, and answers
to other exercises ran in the same kernel, the exercise is judged once more in a kernel of its own:
what somebody left behind there (a patched builtin, another dtype, a thread) is not held against it.
So is one that took too long or died, for a busy machine may have been to blame.
"""

import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import nbformat
from nbval.plugin import IPyNbCell, NbCellError

from pytorch_lab.grading.running.kernel import UNREADABLE, KernelDied, NoKernel, TimedOut
from pytorch_lab.grading.running.overlay import ROLE
from pytorch_lab.grading.running.values import bounded, judge, reveals, text
from pytorch_lab.grading.statuses import NO_KERNEL
from pytorch_lab.grading.trouble import one_line, trouble

if TYPE_CHECKING:
    from pytorch_lab.grading.running.plugin import GradedFile

LOST = ("timed_out", "kernel_died")
# Verdicts to which the visible check has nothing to add.
UNHELPED = ("passed", "not_attempted", *LOST)
NO_REFERENCE = "the notebook holds no values to compare with"
ALONE = "judged in a fresh kernel, without the other answers"


class NotPassed(Exception):
    """An exercise earned nothing; the message says why."""


def status_of(error: Exception) -> str:
    """How an exercise ends whose cell cost the kernel."""
    return "timed_out" if isinstance(error, TimedOut) else "kernel_died"


class GradedCell(IPyNbCell):
    """One cell of a student's notebook."""

    parent: "GradedFile"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = self.cell.metadata[ROLE]
        self.role: str = known["role"]
        self.exercise: str = known["exercise"]
        self.number: int = known["number"]
        self.reason = ""
        self.compared = False

    def runtest(self) -> None:
        """Run the cell unless its exercise is over; a check also gives the verdict."""
        file = self.parent
        over = file.ended.get(self.exercise)
        if self.role == "check":
            self.give(*(over or self.judged()))
        elif over is None:
            status, reason = self.judged()
            if status == "raised" and self.exercise:
                file.raised.setdefault(self.exercise, reason)

    def judged(self) -> tuple[str, str]:
        """Run the cell, and say what came of it."""
        file = self.parent
        try:
            file.ready()
            if self.exercise in file.ended:  # found out only now that its answer killed the kernel
                return file.ended[self.exercise]
            file.last = self
            self.execute()
        except NoKernel as error:
            return "kernel_died", f"{NO_KERNEL}: {error}".rstrip(": ")
        except (KernelDied, TimedOut, *UNREADABLE) as error:
            status, reason = status_of(error), self.lost(error)
            file.blame(self, status, reason)
            return status, reason
        except NbCellError:
            verdict = self.what_failed()
        else:
            verdict = ("passed", "") if self.is_satisfied() else ("failed", NO_REFERENCE)
        if self.role != "check":
            file.again.append(self)
        return verdict

    def is_satisfied(self) -> bool:
        """Whether a cell in which nbval found no fault is right; nbval may not have looked."""
        return self.role != "check" or self.compared or self.config.option.lab_reference

    def execute(self) -> None:
        """Run the cell as nbval does."""
        kernel = self.parent.kernel
        if kernel is not None:
            # The instructor's cells import torch, which takes long on a busy machine.
            kernel.patient = self.role == "given"
        started = time.monotonic()
        try:
            self.run_test_first()
            super().runtest()
        except NbCellError as error:
            if kernel is None or not kernel.is_alive():
                raise KernelDied(kernel.how_it_ended() if kernel else "it is gone") from error
            raise
        finally:
            self.parent.seconds[self.exercise] += time.monotonic() - started
        if kernel is not None and kernel.asked_to_exit:
            raise KernelDied("it called exit")

    def run_test_first(self) -> None:
        """Run an adopted test by itself; the word that it earns is sent after its last line."""
        test = self.cell.metadata[ROLE].get("test")
        if not test:
            return
        kept = self.cell.source, self.options
        self.cell.source, self.options = test, defaultdict(bool)
        try:
            super().runtest()
        finally:
            self.cell.source, self.options = kept
        kernel = self.parent.kernel
        if kernel is None or not kernel.went_well:  # whatever it showed
            self.reason = "the check came to no end: its error was hushed up"
            self.raise_cell_error(self.reason)

    def lost(self, error: Exception) -> str:
        """What is said of a cell that took the kernel with it."""
        what = {"check": "the hidden check", "answer": "the answer"}.get(self.role, "the cell")
        if isinstance(error, TimedOut):
            seconds = self.config.option.nbval_cell_timeout
            return f"{what} ran longer than {seconds:g} s; is there a loop that never ends?"
        if isinstance(error, KernelDied):
            return f"the kernel ended while {what} ran ({error})"
        return f"the kernel answered {what} with something unreadable ({type(error).__name__})"

    def stop(self) -> None:
        """What nbval calls when the kernel stays silent after an error."""
        raise KernelDied("it fell silent")

    def what_failed(self) -> tuple[str, str]:
        """The verdict on a cell that nbval found wanting."""
        kernel = self.parent.kernel
        if self.role == "check" and kernel is not None and kernel.was_cut:
            return "failed", "the output was cut after 1 MB, before the check was through"
        error = next((o for o in self.test_outputs or [] if o.output_type == "error"), None)
        if error is None:
            return "failed", self.reason or "nothing was revealed"
        return trouble(error, self.parent.answers(self.exercise))

    def compare_outputs(self, test: Any, ref: Any, skip_compare: Any = None) -> bool:
        """Compare what was revealed with the reference; nothing else."""
        if self.config.option.lab_reference:
            return True
        self.compared = True
        self.reason = judge(reveals(test), reveals(ref))
        self.comparison_traceback = [self.reason]
        return not self.reason

    def give(self, status: str, reason: str) -> None:
        """Record the verdict on an exercise, and raise unless it passed."""
        file = self.parent
        untouched = self.cell.metadata[ROLE]["untouched"]
        if status in ("failed", "raised") and self.exercise in file.raised:
            status, reason = "raised", file.raised[self.exercise]
        if status in ("failed", "raised") and untouched:
            status, reason = "not_attempted", "the answer is still the stub"
        note = file.note(self.exercise)
        if status not in ("passed", "not_attempted") and self.passes_alone(status):
            status, reason, note = "passed", ALONE, ""
        told = one_line("; ".join(filter(None, [reason, note])))
        revealed = reveals(self.test_outputs or [])
        record: dict[str, Any] = {
            "submission": file.path.stem,
            "exercise": self.exercise,
            "status": status,
            "reason": told,
            "seconds": round(file.seconds[self.exercise], 3),
            "shown": "" if status in UNHELPED else self.visibly(),
            "reveals": [],
        }
        if self.config.option.lab_reference:
            record["reveals"] = revealed
        elif status == "failed":
            record["reveals"] = bounded(revealed)
        line = json.dumps(record) + "\n"
        with open(self.config.option.lab_results, "a", encoding="utf-8", closefd=False) as results:
            results.write(line)
        if status != "passed":
            raise NotPassed(f"{status}: {told}")

    def passes_alone(self, status: str) -> bool:
        """Whether it passes in a fresh kernel, after the answers to this exercise only."""
        file = self.parent
        cells = file.before(self)
        others = any(c.role == "answer" and c.exercise != self.exercise for c in cells)
        if self.config.option.lab_reference or not (others or status in LOST):
            return False
        first = self.test_outputs, self.reason, file.seconds[self.exercise]
        with file.other_kernel():
            try:
                file.start_kernel()
                for each in [c for c in cells if c.exercise in ("", self.exercise)]:
                    each.try_to_execute()
                self.execute()
                return self.is_satisfied()
            except (NbCellError, NoKernel, KernelDied, TimedOut, *UNREADABLE):
                self.test_outputs, self.reason, file.seconds[self.exercise] = first
                return False

    def try_to_execute(self) -> None:
        """Run the cell; what it raises does not matter here."""
        try:
            self.execute()
        except NbCellError:
            return

    def visibly(self) -> str:
        """What the exercise's visible check shows; no point hangs on it.

        It is asked where no hidden check has run: a student's code could have kept what that gave
        it, to tell it now.
        """
        file, source = self.parent, self.cell.metadata[ROLE].get("visible")
        if not source or self.config.option.lab_reference:
            return ""
        asked = GradedCell.from_parent(
            file,
            name="visible",
            cell_num=self.cell_num,
            cell=nbformat.v4.new_code_cell(source, metadata=self.cell.metadata),
            options=defaultdict(bool),
        )
        seconds = file.seconds.copy()
        with file.untold_kernel() as has_run:
            try:
                if file.kernel is None:
                    file.start_kernel()
                for each in [c for c in file.before(self) if c not in has_run]:
                    has_run.append(each)
                    each.try_to_execute()
                asked.try_to_execute()
            except (NoKernel, KernelDied, TimedOut, *UNREADABLE):
                file.lose_kernel()
                return ""
            finally:
                file.seconds = seconds
        return text(asked.test_outputs or [])

    def repr_failure(self, excinfo: Any, *args: Any) -> str:
        """One line, for whoever reads the grader's log."""
        return f"{type(excinfo.value).__name__}: {excinfo.value}"
