"""What a class's marks say about the class and about its exercises, in numbers.

Counted are the students whose notebook could be read. An exercise's *discrimination* is the
correlation between its points and the points of all other exercises: near 1 it tells the strong
from the weak, near 0 it tells nothing, below 0 something is wrong with it. For an exercise that is
passed or not it is the point-biserial correlation, with the exercise itself taken out of the total.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pytorch_lab.grading.book.marks import GradedClass, Row, total

SLOW_S, SLOW_TIMES = 5.0, 5.0  # slower than both: seconds, and times the class's median
EXAMPLES = 4  # students named for a misconception


@dataclass(frozen=True)
class ItemFigures:
    """One exercise in a class."""

    exercise: str
    max_points: float
    passed: int
    tried: int  # students who changed the stub
    students: int
    mean_points: float
    discrimination: float | None  # None where all got the same

    @property
    def pass_rate(self) -> float:
        """Share of the students who passed, 0 to 1."""
        return self.passed / self.students if self.students else 0.0


@dataclass(frozen=True)
class Misconception:
    """A known mistake, and who made it."""

    exercise: str
    name: str
    belief: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class OddRun:
    """A run that a person should look at."""

    student: str
    exercise: str
    why: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class ClassFigures:
    """All that the instructor's page shows in numbers."""

    students: int
    read: int
    totals: tuple[float, ...]  # of the students whose notebook was read
    max_points: float
    items: tuple[ItemFigures, ...]
    misconceptions: tuple[Misconception, ...]
    odd_runs: tuple[OddRun, ...]

    @property
    def mean(self) -> float | None:
        """The mean of the totals; None without any."""
        return statistics.fmean(self.totals) if self.totals else None

    @property
    def median(self) -> float | None:
        """The median of the totals; None without any."""
        return statistics.median(self.totals) if self.totals else None


def figures(graded: GradedClass) -> ClassFigures:
    """The figures of a class.

    Example:
        >>> from pathlib import Path
        >>> from pytorch_lab.grading.authoring.assignment import Exercise
        >>> row = Row("ada", "03.1", 2.0, 2.0, "passed", "")
        >>> made = figures(GradedClass(
        ...     Path("x"), [Exercise("03.1", ("03-1",), "c", 2.0)], [row], {}, {"ada": {}}))
        >>> made.items[0].pass_rate, made.mean
        (1.0, 2.0)
    """
    theirs = dict(graded.by_student())
    read = {student: rows for student, rows in theirs.items() if student in graded.notebooks}
    return ClassFigures(
        students=len(theirs),
        read=len(read),
        totals=tuple(total(rows) for rows in read.values()),
        max_points=graded.max_points,
        items=tuple(_item(e.id, e.points, read) for e in graded.exercises),
        misconceptions=tuple(_misconceptions(graded)),
        odd_runs=tuple(_odd_runs(graded)),
    )


def _item(exercise: str, max_points: float, read: dict[str, list[Row]]) -> ItemFigures:
    rows = [row for each in read.values() for row in each if row.exercise == exercise]
    whole = {student: total(each) for student, each in read.items()}
    points = [row.points for row in rows]
    return ItemFigures(
        exercise=exercise,
        max_points=max_points,
        passed=sum(row.status == "passed" for row in rows),
        tried=sum(row.status not in ("not_attempted", "missing") for row in rows),
        students=len(rows),
        mean_points=statistics.fmean(points) if points else 0.0,
        discrimination=correlation(points, [whole[row.student] - row.points for row in rows]),
    )


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Pearson's correlation; None where one of them is the same for all.

    Example:
        >>> correlation([0, 0, 2, 2], [1, 2, 3, 4]), correlation([1, 1], [0, 5])
        (0.894427..., None)
    """
    if len(xs) < 2 or max(xs) - min(xs) < 1e-9 or max(ys) - min(ys) < 1e-9:
        return None
    made = statistics.correlation(xs, ys)
    return made if math.isfinite(made) else None


def _misconceptions(graded: GradedClass) -> list[Misconception]:
    """The known mistakes, the commonest first."""
    who: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in graded.rows:
        said = graded.verdicts.get((row.student, row.exercise))
        if said is not None and said.misconception:
            who[row.exercise, said.misconception].append(row.student)
    made = [
        Misconception(exercise, *_split(told), tuple(students))
        for (exercise, told), students in who.items()
    ]
    return sorted(made, key=lambda one: (-len(one.students), one.exercise, one.name))


def _split(told: str) -> tuple[str, str]:
    """A mistake's name and what it takes for granted; of several that no value tells apart, all."""
    parts = [part.partition(": ") for part in told.split(" / ")]
    if not all(belief for _, _, belief in parts):
        return told, ""
    return " or ".join(name for name, _, _ in parts), "; or ".join(says for _, _, says in parts)


def _odd_runs(graded: GradedClass) -> list[OddRun]:
    """Runs that ended in an unusual way, were cut, or took unusually long; the worst first."""
    times: dict[str, list[float]] = defaultdict(list)
    for (_, exercise), said in graded.verdicts.items():
        if said.seconds > 0:
            times[exercise].append(said.seconds)
    usual = {exercise: statistics.median(each) for exercise, each in times.items()}
    made = []
    for row in graded.rows:
        said = graded.verdicts.get((row.student, row.exercise))
        seconds, reason = (said.seconds, said.reason) if said else (0.0, row.reason)
        slow = max(SLOW_S, SLOW_TIMES * usual.get(row.exercise, 0.0))
        if why := _why_odd(row.status, reason, seconds > slow):
            where = row.exercise if row.student in graded.notebooks else "all"
            made.append(OddRun(row.student, where, why, reason, seconds))
    order = {why: at for at, why in enumerate(_WHYS)}
    once = dict.fromkeys(made)  # a file that cannot be read is one run, not one for each exercise
    return sorted(once, key=lambda run: (order[run.why], -run.seconds, run.student))


_WHYS = ("refused", "suspicious", "kernel ended", "timed out", "output cut", "slow", "not readable")


def _why_odd(status: str, reason: str, slow: bool) -> str:
    by_status = {"refused": 0, "kernel_died": 2, "timed_out": 3, "unreadable": 6}
    if status in by_status:
        return _WHYS[by_status[status]]
    if status in ("needs_person", "passed") and "look at it" in reason:
        return _WHYS[1]
    if "output was cut" in reason:
        return _WHYS[4]
    return _WHYS[5] if slow else ""


def bins(totals: Sequence[float], max_points: float, most: int = 11) -> list[tuple[str, int]]:
    """How many totals lie in each of some equally wide steps of whole points.

    Example:
        >>> bins([0, 1, 4, 4.5, 5], 5)
        [('0', 1), ('1', 1), ('2', 0), ('3', 0), ('4', 2), ('5', 1)]
        >>> bins([3, 100], 100, most=5)
        [('0–49', 1), ('50–99', 0), ('100–149', 1)]
    """
    top = max([max_points, *totals, 1])
    step = next(s for n in range(9) for s in (10**n, 2 * 10**n, 5 * 10**n) if top // s < most)
    count = int(top // step) + 1
    inside = Counter(min(max(int(total // step), 0), count - 1) for total in totals)
    made = []
    for at in range(count):
        label = f"{at * step}" if step == 1 else f"{at * step}–{(at + 1) * step - 1}"
        made.append((label, inside[at]))
    return made
