"""The instructor's page: how the class did, what it believes, and what a person should look at.

`OUT/class.html` is one file; beside it lie the students' pages, which it links to. Names, reasons
and file names come from strangers and are shown as text.
"""

from collections import Counter
from datetime import datetime
from typing import Any
from urllib.parse import quote

from pytorch_lab.checks import sources
from pytorch_lab.grading.book.marks import GradedClass, total
from pytorch_lab.grading.book.telling import STATUS_WORDS, TONES
from pytorch_lab.grading.notebooks import facts
from pytorch_lab.grading.pages import shell
from pytorch_lab.grading.pages.figures import EXAMPLES, ClassFigures, ItemFigures, bins, figures
from pytorch_lab.grading.pages.renewing import FOLDER
from pytorch_lab.grading.pages.similar import alike
from pytorch_lab.svg import Picture

MOST_LISTED = 40  # of mistakes, runs and pairs; the rest is counted


def class_page(graded: GradedClass, *, linked: bool = True) -> str:
    """The text of the instructor's page.

    Example:
        >>> from pathlib import Path
        >>> "Nobody" in class_page(GradedClass(Path("no_such.ipynb"), [], [], {}))
        True
    """
    found = figures(graded)
    links = shell.file_names(row.student for row in graded.rows) if linked else {}
    known = {e.id: sources.read(graded.assignment, e.id) for e in graded.exercises}
    pairs = alike(
        _answers(graded),
        {exercise: source.stub or "" for exercise, source in known.items()},
        {exercise: source.solution or "" for exercise, source in known.items()},
    )
    return shell.render(
        "class.html.j2",
        page=shell.shell("class.css", "class.js")
        | {
            "title": f"{graded.assignment.stem}: the class",
            "assignment": graded.assignment.stem,
            "seed": graded.seed,
            "date": f"{datetime.now().astimezone():%d %B %Y}",
            "unsafe": "" if graded.sandbox else shell.UNSAFE,
            "notes": [*graded.notes, *_waiting(graded)],
            "unstable": graded.unstable,
            "figures": found,
            "histogram": _histogram(found),
            "exercises": [(item, _rate(item), _tells(item.discrimination)) for item in found.items],
            "titles": {exercise: source.title for exercise, source in known.items()},
            "examples": EXAMPLES,
            "most": MOST_LISTED,
            "odd_runs": found.odd_runs[:MOST_LISTED],
            "alike": pairs[:MOST_LISTED],
            "more_odd": len(found.odd_runs) - MOST_LISTED,
            "more_alike": len(pairs) - MOST_LISTED,
            "links": {name: f"{FOLDER}/{quote(file)}" for name, file in links.items()},
            "students": _students(graded),
        },
    )


def _answers(graded: GradedClass) -> dict[str, dict[str, str]]:
    """The sources of the answers, by exercise and student."""
    owner = {answer: exercise.id for exercise in graded.exercises for answer in exercise.answers}
    made: dict[str, dict[str, str]] = {exercise.id: {} for exercise in graded.exercises}
    for student, notebook in graded.notebooks.items():
        for cell in notebook.cells:
            if (known := facts(cell)) and (exercise := owner.get(known.grade_id)):
                before = made[exercise].get(student)
                made[exercise][student] = f"{before}\n{cell.source}" if before else cell.source
    return made


def _students(graded: GradedClass) -> list[dict[str, Any]]:
    """A line for each student: the total, and the sign of each exercise."""
    made = []
    for student, rows in graded.by_student():
        marks = [
            (STATUS_WORDS.get(row.status, ("!", row.status)), TONES.get(row.status, "bad"), row)
            for row in rows
        ]
        made.append({"name": student, "total": total(rows), "marks": marks})
    return made


def _waiting(graded: GradedClass) -> list[str]:
    """How many answers wait for a person's points."""
    waiting = Counter(
        row.exercise
        for row in graded.rows
        if row.status == "needs_person" and (row.override is None or row.override.points is None)
    )
    return [
        f"{many} answers to {exercise} wait for a person." for exercise, many in waiting.items()
    ]


def _tells(discrimination: float | None) -> str:
    """What a discrimination means, in words."""
    if discrimination is None:
        return "all got the same"
    if discrimination < 0:
        return "the strong fail: look at it"
    if discrimination < 0.1:
        return "tells nothing"
    return "tells little" if discrimination < 0.3 else "tells them apart"


def _rate(item: ItemFigures) -> str:
    """The share of those who passed, as a bar."""
    said = f"Exercise {item.exercise}: passed by {item.passed} of {item.students}"
    picture = Picture(120, 12, said)
    picture.rect(0, 1, 120, 10, rx=3, **{"class": "bar-ground"})
    if item.passed:
        picture.rect(0, 1, 120 * item.pass_rate, 10, rx=3, **{"class": "bar"})
    return picture.svg()


def _histogram(found: ClassFigures) -> str:
    """How many students got how many points."""
    steps = bins(found.totals, found.max_points)
    width, height, below, above = 640.0, 200.0, 24.0, 20.0
    most = max([count for _, count in steps] + [1])
    wide = width / max(len(steps), 1)
    said = ", ".join(f"{label} points: {count}" for label, count in steps)
    picture = Picture(width, height, f"Students by total. {said}")
    for at, (label, count) in enumerate(steps):
        tall = (height - below - above) * count / most
        x, y = at * wide, height - below - tall
        if count:
            picture.rect(x + 3, y, wide - 6, tall, rx=3, **{"class": "bar"})
            _centred(picture, x + wide / 2, y - 5, str(count), "count")
        _centred(picture, x + wide / 2, height - 6, label, "tick")
    picture.line(0, height - below, width, height - below, **{"class": "axis"})
    return picture.svg()


def _centred(picture: Picture, x: float, y: float, words: str, kind: str) -> None:
    picture.text(x, y, words, size=12, **{"text-anchor": "middle", "class": kind})
