"""Which known mistake a wrong answer is: it reveals the same values on the same seed.

The mistakes are those of a file like `exercises/mutants/03_modules.py`. They are run over the
assignment as students' answers are, when the first wrong answer comes and not before; one mistake
of every exercise shares a kernel. What they reveal is kept in the gradebook.

A name tells an instructor what to explain again, and gives the student a hint. It never gives or
takes a point.
"""

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.errors import LabError
from pytorch_lab.grading.authoring.mutants import Mutant, assemble, has_exercise, packed
from pytorch_lab.grading.book.gradebook import Gradebook, Verdict
from pytorch_lab.grading.running.trials import Found, Trial
from pytorch_lab.grading.running.values import judge

OF = "(mistakes)"  # the student's name under which the gradebook keeps what mistakes reveal


@dataclass(frozen=True)
class Signature:
    """What shows that an answer is a known mistake.

    Attributes:
        mutant: the mistake.
        reveals: what its hidden check reveals; None if the mistake raises.
        error: the type and the text of what it raises, as ("ValueError", "no"); else empty.
    """

    mutant: Mutant
    reveals: Sequence[Any] | None
    error: tuple[str, str] = ("", "")


def signatures(
    solutions: NotebookNode,
    mutants: Sequence[Mutant],
    run: Callable[[dict[str, Trial]], Found],
    seed: int,
) -> list[Signature]:
    """What each mistake reveals on a seed.

    Args:
        solutions: the notebook of solutions.
        mutants: the mistakes; those of exercises that it does not have are left out.
        run: runs notebooks, such as a `Trials`.
        seed: what the hidden checks draw their inputs from.
    """
    here = [one for one in mutants if has_exercise(solutions, one.exercise)]
    at = packed([(one.exercise, str(number)) for number, one in enumerate(here)])
    answers = [{e: here[int(number)].code for e, number in row.items()} for row in at]
    found = run(
        {str(row): Trial(assemble(solutions, given), seed) for row, given in enumerate(answers)}
    )
    made = []
    for row, numbers in enumerate(at):
        for exercise, number in numbers.items():
            record = found.get((str(row), exercise))
            if record is not None:
                made.append(_signature(here[int(number)], record))
    return made


def _signature(mutant: Mutant, record: dict[str, Any]) -> Signature:
    if record["status"] in ("passed", "failed") and record["reveals"]:
        return Signature(mutant, record["reveals"])
    return Signature(mutant, None, _error(record["reason"], mutant.code))


def _error(reason: str, source: str) -> tuple[str, str]:
    """The type and the text of an error as `trouble` tells it, without the line it names."""
    told = re.match(r"(\w+)(?: in line (\d+))?", reason)
    if told is None:
        return "", ""
    kind, number = told.groups()
    lines = source.strip("\n").split("\n")
    line = lines[int(number) - 1].strip() if number and int(number) <= len(lines) else ""
    where = f" in line {number}, {line}" if line else told[0].removeprefix(kind)
    return kind, reason.removeprefix(kind).removeprefix(where).removeprefix(": ")


def match(
    verdict: str, reason: str, reveals: Sequence[Any], known: Sequence[Signature]
) -> list[Mutant]:
    """The mistakes of an exercise that an answer may be.

    Args:
        verdict: "failed" or "raised".
        reason: what was said of it.
        reveals: what the answer's hidden check revealed.
        known: the signatures of the exercise's mistakes.

    Example:
        >>> mutant = Mutant("03.1", "adds", "adding is doubling", says="no", code="x = 1")
        >>> one = {"label": "n", "value": {"is": "int", "value": 1}}
        >>> [found.name for found in match("failed", "", [one], [Signature(mutant, [one])])]
        ['adds']
    """
    if verdict == "failed" and reveals:
        return [
            one.mutant
            for one in known
            if one.reveals is not None and not judge(list(reveals), list(one.reveals))
        ]
    same = [
        one.mutant
        for one in known
        if one.reveals is None and all(one.error)
        if reason.startswith(one.error[0]) and reason.endswith(f": {one.error[1]}")
    ]
    return same if len(same) == 1 else []  # an error tells less than values do


@dataclass
class Misconceptions:
    """Names the mistakes in the verdicts of one run.

    Args:
        find: finds the signatures, when the first wrong answer asks for them.
    """

    find: Callable[[], list[Signature]]
    _known: list[Signature] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self, exercise: str, verdict: Verdict, reveals: Sequence[Any]) -> Verdict:
        """The verdict with the mistake that it is, if it is a known one.

        Example:
            >>> Misconceptions(list).name("03.1", Verdict("failed", "n: expected 1, got 2"), [])
            Verdict(status='failed', reason='n: expected 1, got 2', misconception='', ...)
        """
        if verdict.status not in ("failed", "raised"):
            return verdict
        with self._lock:
            if self._known is None:
                try:
                    self._known = self.find()
                except LabError:
                    self._known = []  # a name is a help; marks do not wait for it
        mine = [one for one in self._known if one.mutant.exercise == exercise]
        found = match(verdict.status, verdict.reason, reveals, mine)
        if not found:
            return verdict
        names = " or ".join(f"'{one.name.replace('_', ' ')}'" for one in found)
        does = "the same values as" if verdict.status == "failed" else "the same error as"
        return verdict._replace(
            reason=f"{verdict.reason}; {does} the mistake {names}",
            misconception=" / ".join(
                f"{one.name.replace('_', ' ')}: {one.misconception}" for one in found
            ),
            hint=" ".join(one.question for one in found),
        )


def kept(
    book: Gradebook, key: str, find: Callable[[], list[Signature]], mutants: Sequence[Mutant]
) -> list[Signature]:
    """Signatures out of the gradebook; or found, and kept there for the next run.

    Args:
        book: the gradebook.
        key: a hash of all that the signatures hang on.
        find: finds them.
        mutants: the mistakes.
    """
    by_name = {f"{one.exercise} {one.name}": one for one in mutants}
    known = book.known(key)
    if known:
        told = {name: json.loads(said.shown) for name, said in known.items()}
        return [
            Signature(by_name[name], reveals, (kind, text))
            for name, (reveals, kind, text) in told.items()
            if name in by_name
        ]
    found = find()
    book.keep(
        key,
        OF,
        {
            f"{one.mutant.exercise} {one.mutant.name}": Verdict(
                "mistake", "", shown=json.dumps([one.reveals, *one.error])
            )
            for one in found
        },
    )
    return found
