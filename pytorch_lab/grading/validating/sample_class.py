"""A class of thirty, made up, with the marks that it should get: to try grading out and to test it.

Everybody hands in lesson 03: right answers in two styles, well-known mistakes, stubs, code that
raises, loops or ends the kernel, a cheat, a late one, a second upload, a zip, a wrong file and a
wrong lesson. What each should get was written down by hand before the first run; of 150
statuses eight were then set right, each after its cause was read, and no points.
"""

import copy
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab import course, writing
from pytorch_lab.checks.regions import solution_text
from pytorch_lab.errors import CourseError, UsageError
from pytorch_lab.grading.authoring.mutants import known_answers
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import facts, read, text, why_not

EXERCISES: tuple[str, ...] = ("03.1", "03.2", "03.3", "03.4", "03.5")
POINTS: tuple[float, ...] = (2, 4, 5, 5, 4)

# A student in a line: the answers to the five exercises, what each should get, and what is special.
# An answer is = ours, ~ the other right one, . the stub, a mutant's name, or one of _SPECIAL.
_CLASS = """
Ada Almeida    =           =                =                       =                  =              ppppp
Bo Berg        ~           ~                ~                       ~                  ~              ppppp
Chen Wei       =           ~                =                       ~                  =              ppppp
Dana Duval     ~           =                ~                       =                  ~              ppppp
Emre Er        =           =                ~                       ~                  =              ppppp zip
Fatima Farouk  ~           ~                =                       =                  =              ppppp late
Goran Gajic    =           =                =                       =                  eval_once      ppppr
Hanna Holm     =           =                graph_kept              =                  =              ppfpp
Idris Ito      rows        =                =                       =                  =              fpppp
Julia Jara     =           plain_list       =                       list_left          =              pfpfp
Kofi Kane      =           no_relu          =                       =                  weights_only   pfppr
Lena Lund      state_dict  =                plain_attributes        =                  =              fprpp
Mika Mori      =           default_start    =                       dropout_left       =              pfpfp
Nora Nagy      tied_twice  relu_after_all   =                       =                  =              ffppp
Omar Ortiz     =           =                constants_for_autograd  =                  under_no_grad  ppfpf
Pia Park       frozen_too  =                deaf_to_eval            counts_left        .              fpff-
Quinn Qureshi  =           made_in_forward  one_variance            device_remembered  mode_only      pffff
Rosa Rossi     shapes      zeros            zeros                   zeros              zeros          frrrf
Sami Sato      =           =                .                       .                  .              pp---
Tariq Toma     ~           =                =                       .                  .              ppp--
Uma Usman      .           .                .                       .                  .              -----
Vera Vogel     =           raises           =                       =                  .              prpp-
Wim Wolf       syntax      =                =                       =                  =              rpppp
Xenia Xu       =           =                loops                   =                  =              pptpp
Yara Young     =           =                =                       exits              =              pppkp
Zane Zulu      =           =                =                       =                  skips          ppppx
Ali Amin       patches     =                ~                       =                  =              fpppp
Bea Brandt     =           =                =                       =                  ~              ppppp again
Carl Cruz      .           .                .                       .                  .              uuuuu pdf
Dora Dietz     .           .                .                       .                  .              mmmmm other
"""  # noqa: E501
_STATUS = {
    "p": "passed",
    "f": "failed",
    "r": "raised",
    "t": "timed_out",
    "k": "kernel_died",
    "-": "not_attempted",
    "m": "missing",
    "u": "unreadable",
    "x": "refused",
}
_SPECIAL = {
    "raises": """\
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)

    def forward(self, x):
        return self.layers[-1](x)
""",
    "syntax": "def trainable(model)\n    return {}\n",
    "loops": "epoch = 0\nwhile epoch < 10:\n    pass\n",
    "exits": "import os\n\nos._exit(0)\n",
    "skips": "# NBVAL_SKIP\nFrozen = nn.Identity\n",
    "patches": """\
def trainable(model):
    return {}


torch.equal = torch.allclose = torch.testing.assert_close = lambda *args, **more: True
""",
}
_MOMENT = (2026, 3, 1, 12, 0, 0)  # in zips, so that the same class is the same file


@dataclass(frozen=True)
class Student:
    """One of the thirty.

    Attributes:
        name: first name and surname.
        answers: to each exercise, as the table has it.
        statuses: what each answer should get.
        special: what is special about the hand-in, or nothing.
        number: 1 to 30.
    """

    name: str
    answers: tuple[str, ...]
    statuses: tuple[str, ...]
    special: str
    number: int

    @property
    def points(self) -> tuple[float, ...]:
        """What each answer should earn."""
        return tuple(
            float(most) if status == "passed" else 0.0
            for most, status in zip(POINTS, self.statuses, strict=True)
        )


def students() -> list[Student]:
    """The thirty.

    Example:
        >>> known = students()
        >>> len(known), known[21].name, known[21].statuses[1], sum(known[21].points)
        (30, 'Vera Vogel', 'raised', 12.0)
    """
    made = []
    for number, line in enumerate(_CLASS.strip().splitlines(), 1):
        first, last, *answers, expected = line.split()[:8]
        special = line.split()[8:]
        statuses = tuple(_STATUS[letter] for letter in expected)
        made.append(Student(f"{first} {last}", tuple(answers), statuses, "".join(special), number))
    return made


def deliver(folder: Path, layout: str = "folder") -> Path:
    """Lay the class into a folder: what was handed in, the assignment and the expected marks.

    Args:
        folder: a new or an empty one.
        layout: "folder", "nbgrader", or the zip of "canvas" or "moodle".

    Returns:
        What was handed in, for `pytorch-lab grade`.

    Raises:
        UsageError: the folder is not empty, or there is no such layout.
        CourseError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp())
        >>> deliver(place).name, sorted(path.name for path in place.iterdir())
        ('handed_in', ['03_modules.ipynb', 'expected.csv', 'handed_in', 'mutants'])
    """
    if layout not in LAYOUTS:
        raise UsageError(f"expected one of {', '.join(LAYOUTS)}, got {layout!r}; choose one.")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"expected a new or an empty folder, got {folder}; name another.")
    names, place = LAYOUTS[layout]
    files: dict[str, bytes] = {}
    for student in students():
        for own, content in _handed_in(student):
            files[place(student, own)] = content
        if layout == "nbgrader":
            files[place(student, "timestamp.txt")] = _timestamp(student)
    exercises = course.root() / "exercises"
    everything = {
        "03_modules.ipynb": (exercises / "solutions/03_modules.ipynb").read_bytes(),
        "mutants/03_modules.py": (exercises / "mutants/03_modules.py").read_bytes(),
        "expected.csv": _expected(names).encode(),
    }
    zipped = layout in ("canvas", "moodle")
    if zipped:
        everything["handed_in.zip"] = _zip(files)
    else:
        everything |= {f"handed_in/{name}": content for name, content in files.items()}
    try:
        for name, content in everything.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            writing.replace(folder / name, content)
    except OSError as error:
        raise CourseError(
            f"expected to write the sample class to {folder}, but got {why_not(error)}; "
            "name a folder that you may write to."
        ) from None
    return folder / ("handed_in.zip" if zipped else "handed_in")


def _handed_in(student: Student) -> list[tuple[str, bytes]]:
    """The files of one student, by the names that the student gave them."""
    if student.special == "pdf":
        return [("exercises.pdf", b"%PDF-1.4\n% a print of the notebook\n")]
    if student.special == "other":
        return [("02_autograd.ipynb", text(_blank("02_autograd")).encode())]
    done = _notebook(student.answers)
    if student.special == "zip":
        return [("work.zip", _zip({"my work/03_modules.ipynb": done}))]
    if student.special == "again":
        return [("03_modules.ipynb", _notebook(("=",) + 4 * (".",))), ("03_modules-1.ipynb", done)]
    return [("03_modules.ipynb", done)]


def _notebook(answers: tuple[str, ...]) -> bytes:
    """The notebook of somebody who gives these answers."""
    known, chosen = _answers(), dict(zip(EXERCISES, answers, strict=True))
    notebook = copy.deepcopy(_blank("03_modules"))
    for cell in notebook.cells:
        told = facts(cell)
        if told and told.is_answer and chosen[told.exercise] != ".":
            cell.source = known[told.exercise, chosen[told.exercise]].strip("\n")
    return text(notebook).encode()


@cache
def _blank(lesson: str) -> NotebookNode:
    """The students' version of a lesson's exercises."""
    return student_version(read(course.root() / "exercises" / "solutions" / f"{lesson}.ipynb"))


@cache
def _answers() -> dict[tuple[str, str], str]:
    """The source of every answer, by exercise and by what the table calls it."""
    path = course.root() / "exercises" / "solutions" / "03_modules.ipynb"
    known = known_answers(path)
    return {
        **{(exercise, name): source for exercise in EXERCISES for name, source in _SPECIAL.items()},
        **{(one.exercise, one.name): one.code for one in known.mutants},
        **{(exercise, "~"): answer for exercise, answer in known.alternatives.items()},
        **{
            (told.exercise, "="): solution_text(cell.source)
            for cell in read(path).cells
            if (told := facts(cell)) and told.is_answer
        },
    }


def _timestamp(student: Student) -> bytes:
    """What nbgrader writes beside a notebook; the deadline was noon of the first of March."""
    day = "2026-03-02" if student.special == "late" else "2026-02-28"
    return f"{day} 09:{student.number:02}:00.000000 UTC".encode()


def _zip(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _by_hand(student: Student, own: str) -> str:
    if student.special in ("pdf", "again"):
        return f"{student.name}/{own}"
    return f"{student.name}{Path(own).suffix}"


def _nbgrader(student: Student, own: str) -> str:
    return f"{_user(student)}/03_modules/{own}"


def _canvas(student: Student, own: str) -> str:
    late = "LATE_" if student.special == "late" else ""
    upload = 70000 + 10 * student.number + own.count("-")
    return f"{_sortable(student)}_{late}{1000 + student.number}_{upload}_{own}"


def _moodle(student: Student, own: str) -> str:
    return f"{student.name}_{2000 + student.number}_assignsubmission_file/{own}"


def _user(student: Student) -> str:
    return student.name.split()[0].lower()


def _sortable(student: Student) -> str:
    first, last = student.name.lower().split()
    return last + first


_Name = Callable[[Student], str]
LAYOUTS: dict[str, tuple[_Name, Callable[[Student, str], str]]] = {  # the name, and the path
    "folder": (lambda student: student.name, _by_hand),
    "nbgrader": (_user, _nbgrader),
    "canvas": (_sortable, _canvas),
    "moodle": (lambda student: student.name, _moodle),
}


def _expected(name: _Name) -> str:
    """What `grades.csv` should say, without the reasons."""
    head = [("student", "exercise", "points", "max_points", "status")]
    rows = [
        (name(student), exercise, f"{points:g}", f"{most:g}", status)
        for student in sorted(students(), key=name)
        for exercise, points, most, status in zip(
            EXERCISES, student.points, POINTS, student.statuses, strict=True
        )
    ]
    return "".join(",".join(row) + "\n" for row in head + rows)
