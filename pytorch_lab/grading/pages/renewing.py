"""The pages, made anew only where they would show something else.

To import what makes them takes longer than to grade a class again of which nothing has changed. So
the instructor's page ends with a comment: a hash of all that the pages show, and of the pages. A
page that was changed or taken away is made anew.
"""

import hashlib
from pathlib import Path

from pytorch_lab import __version__
from pytorch_lab.grading.book.marks import GradedClass
from pytorch_lab.grading.notebooks import replace

NAME = "class.html"
FOLDER = "feedback"
PACKAGE = Path(__file__).parents[2]
_HASH = "<!-- {} -->\n"


def write_pages(graded: GradedClass, out: Path, *, feedback: bool = True) -> Path:
    """Write `OUT/class.html` and the students' pages, unless they are as they would become.

    Args:
        graded: the class.
        out: the folder of the marks.
        feedback: whether the students get pages.

    Returns:
        The instructor's page.

    Raises:
        CourseError: the folder cannot be written to.

    Example:
        >>> write_pages(GradedClass(Path("x.ipynb"), [], [], {}), Path("/dev/null/out"))
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected to write ..., but got ...
    """
    page, known = out / NAME, _known(graded, feedback)
    try:
        there, hash_there = page.read_text("utf-8").rsplit("\n", 2)[:2]
    except (OSError, ValueError):
        there = hash_there = ""
    if f"{hash_there}\n" != _HASH.format(_hash(known, there, out)):
        from pytorch_lab.grading.pages.class_page import class_page

        if feedback:
            from pytorch_lab.grading.pages.feedback import write_feedback

            write_feedback(graded, out)
        made = class_page(graded, linked=feedback).rstrip("\n")
        replace(page, f"{made}\n{_HASH.format(_hash(known, made, out))}")
    return page


def _known(graded: GradedClass, feedback: bool) -> bytes:
    """All that the pages are made of."""
    of_ours = [path for path in sorted(Path(__file__).parent.rglob("*")) if path.is_file()]
    files = [graded.assignment, *(path for path in of_ours if path.suffix != ".pyc")]
    files += [PACKAGE / name for name in ("grading/book/telling.py", "svg.py", "widgets/base.css")]
    parts = [repr((__version__, feedback, graded)).encode("utf-8", "backslashreplace")]
    parts += [path.read_bytes() for path in files if path.is_file()]
    return b"".join(hashlib.sha256(part).digest() for part in parts)


def _hash(known: bytes, page: str, out: Path) -> str:
    """Of what the pages are made of, of the instructor's page, and of the students' as they lie."""
    theirs = [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted((out / FOLDER).glob("*.html"))
    ]
    told = repr((theirs, hashlib.sha256(page.encode()).hexdigest())).encode()
    return hashlib.sha256(known + told).hexdigest()
