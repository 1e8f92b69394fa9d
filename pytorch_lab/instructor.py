"""The commands of whoever makes an assignment and grades it; `pytorch_lab.cli` offers them.

They stand outside `pytorch_lab.grading`, which needs packages that a learner may not have: here as
there, a command imports what it calls when it is called.
"""

import shlex
import signal
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

_WIDTH = 80

Out = Annotated[Path, typer.Option(metavar="DIR", help="Where the marks go.")]
Book = Annotated[str, typer.Option(metavar="URL", help="The gradebook, its file or folder.")]
Name = Annotated[
    str | None,
    typer.Option("--assignment", metavar="NAME", help="If the gradebook holds several."),
]
Late = Annotated[
    str | None,
    typer.Option(metavar="RULE", help="Like '10% per day after 2026-12-01'; or none."),
]
Mutants = Annotated[
    Path | None,
    typer.Option("--mutants", metavar="FILE", help="Known mistakes; default: in 'mutants'."),
]
RosterFile = Annotated[
    Path | None,
    typer.Option("--roster", metavar="CSV", help="What Canvas or Moodle exported."),
]


def register(app: typer.Typer) -> None:
    """Offer the instructor's commands.

    Example:
        >>> app = typer.Typer()
        >>> register(app)
        >>> [command.callback.__name__ for command in app.registered_commands][:3]
        ['release', 'validate', 'grade']
    """
    for command in (release, validate, grade, marks):
        app.command()(command)
    # A negative number is no option: `override` itself says that there are no such points.
    app.command(context_settings={"ignore_unknown_options": True})(override)
    for command in (history, sample_class):
        app.command()(command)


def release(
    solutions: Annotated[list[Path], typer.Argument(metavar="SOLUTION...")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the students' notebooks go.")],
    nbgrader: Annotated[
        Path | None,
        typer.Option(metavar="COURSE", help="Write that course's source notebooks too."),
    ] = None,
) -> None:
    """Make the students' notebooks from the solutions."""
    from pytorch_lab import grading

    for path in grading.release(solutions, out):
        print(path)
    if nbgrader is not None:
        from pytorch_lab.grading.validating.for_nbgrader import for_nbgrader

        for path in for_nbgrader(solutions, nbgrader):
            print(path)


def validate(
    solutions: Annotated[list[Path], typer.Argument(metavar="SOLUTION...")],
    mutants: Mutants = None,
    sandbox: Annotated[bool, typer.Option(help="As for students' code.")] = True,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Answers run at a time.")] = 2,
) -> None:
    """Try assignments out before students get them."""
    from pytorch_lab.grading.validating import validate

    reports = validate.validate(solutions, mutants=mutants, sandbox=sandbox, workers=workers)
    print(validate.told(reports))
    raise typer.Exit(1 if any(report.faults for report in reports) else 0)


def grade(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
    assignment: Annotated[
        Path, typer.Option(metavar="NOTEBOOK", help="The solution, or its folder.")
    ],
    out: Out,
    seed: Annotated[
        int | None,
        typer.Option(help="Of the hidden inputs; default: as before, at first by chance."),
    ] = None,
    sandbox: Annotated[
        bool, typer.Option(help="Keep students' code from your files and network.")
    ] = True,
    timeout_cell: Annotated[
        int, typer.Option(min=1, metavar="S", help="Seconds a cell may take.")
    ] = 30,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="What one student's code may use.")
    ] = "4G",
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Submissions run at a time.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the workers of this scheduler."),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Gradebook; default: DIR/gradebook.sqlite."),
    ] = None,
    exercise: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Run anew, and renew only this one's verdicts."),
    ] = None,
    mutants: Mutants = None,
    late: Late = None,
    roster: RosterFile = None,
    feedback: Annotated[
        bool, typer.Option(help="Write a page for each student: DIR/feedback.")
    ] = True,
    check_stability: Annotated[
        bool, typer.Option("--check-stability", help="Run all twice, and tell what differs.")
    ] = False,
) -> None:
    """Grade submissions; write the marks, and a page for you.

    The page is DIR/class.html.
    """
    from pytorch_lab import grading
    from pytorch_lab.grading.pages.meter import Meter
    from pytorch_lab.grading.pages.renewing import write_pages

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end in order, as with Ctrl-C
    try:
        with Meter() as meter:
            graded = grading.grade(
                folder, assignment, out,
                seed=seed, sandbox=sandbox, timeout_cell=timeout_cell, memory=memory,
                workers=workers, dask=dask, db=db, only=exercise or (), late=late, roster=roster,
                mutants=mutants, check_stability=check_stability,
                begun=meter.begin, heard=meter.heard,
            )  # fmt: skip
    except KeyboardInterrupt:
        print("pytorch-lab: stopped; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None
    page = write_pages(graded, out, feedback=feedback)
    _sum_up(graded)
    print(out / "grades.csv")
    print(page)
    if check_stability:
        _tell_unstable(graded.unstable)


def _tell_unstable(differ: list[str]) -> None:
    """What a second run judged otherwise; 1 if it did."""
    print("Another run says otherwise of these:" if differ else "Both runs say the same.")
    for line in differ:
        print(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="    "))
    raise typer.Exit(1 if differ else 0)


def marks(
    db: Book, out: Out, assignment: Name = None, late: Late = None, roster: RosterFile = None
) -> None:
    """Write the marks again from the gradebook; nothing is run."""
    from pytorch_lab.grading.book import bookkeeping
    from pytorch_lab.grading.pages.renewing import FOLDER, NAME

    graded = bookkeeping.rewrite(db, out, assignment=assignment, late=late, roster=roster)
    _sum_up(graded)
    if old := [name for name in (NAME, FOLDER) if (out / name).exists()]:
        _tell(
            f"{' and '.join(old)} there show the marks of the last `grade`; the same `grade` again "
            "renews them, and runs nothing twice."
        )
    print(out / "grades.csv")


def override(
    student: Annotated[str, typer.Argument(metavar="STUDENT")],
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE")],
    points: Annotated[str, typer.Argument(metavar="POINTS")],
    db: Book,
    comment: Annotated[str, typer.Option(metavar="TEXT", help="Why; the student reads it.")],
    author: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who says so; default: you.")
    ] = None,
    assignment: Name = None,
    bonus: Annotated[bool, typer.Option("--bonus", help="More points than it is worth.")] = False,
) -> None:
    """Give points by hand; 'none' takes them back.

    They hold, whatever later runs say, from the next `marks` or `grade` on.
    """
    from pytorch_lab.grading.book import bookkeeping

    try:
        given = None if points == "none" else float(points)
    except ValueError:
        raise typer.BadParameter(f"{points!r} is no number, and not 'none'.") from None
    print(
        bookkeeping.override(
            db, student, exercise, given, comment,
            author=author, assignment=assignment, bonus=bonus,
        )
    )  # fmt: skip
    named = f" --assignment {shlex.quote(assignment)}" if assignment else ""
    print("In the marks after the same `grade` again, which renews the pages too, or after")
    print(f"  pytorch-lab marks --db {shlex.quote(db)} --out {_place_of(db)}{named}")


def _place_of(db: str) -> str:
    """Where a gradebook's marks lie, if it is a file there."""
    if "://" in db:
        return "DIR"
    return shlex.quote(str(Path(db) if Path(db).is_dir() else Path(db).parent))


def sample_class(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    layout: Annotated[
        str,
        typer.Option("--as", metavar="LAYOUT", help="folder, nbgrader, canvas or moodle."),
    ] = "folder",
) -> None:
    """Make up a class of thirty to try grading on."""
    from pytorch_lab.grading.validating.sample_class import deliver

    print(deliver(folder, layout))


def history(
    student: Annotated[str, typer.Argument(metavar="STUDENT")],
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE")],
    db: Book,
    assignment: Name = None,
) -> None:
    """Tell what happened to a student's exercise, and why."""
    from pytorch_lab.grading.book import bookkeeping
    from pytorch_lab.grading.trouble import one_line

    for event in bookkeeping.history(db, student, exercise, assignment=assignment):
        head = f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}  {event.what:9}  "
        print(
            textwrap.fill(
                one_line(event.said), _WIDTH, initial_indent=head, subsequent_indent=" " * 32
            )
        )


def _sum_up(graded: Any) -> None:
    """A line for each student, the class in numbers, and what must be known of it."""
    from pytorch_lab.grading.book.marks import number, total
    from pytorch_lab.grading.trouble import one_line

    class_ = sorted(graded.by_student(), key=lambda pair: pair[0].casefold())
    shown = {student: one_line(student) for student, _ in class_}
    width = min(max(map(len, shown.values()), default=0), _WIDTH - 40)
    for student, rows in class_:
        mark = "*" if any(row.override for row in rows) else ""
        mine = f"{number(total(rows))}{mark} of {number(graded.max_points)}"
        _tell(f"{shown[student]:{width}}  {mine:13}  {_counted(rows)}", width + 17)
    many = "1 student" if len(class_) == 1 else f"{len(class_)} students"
    _tell(f"{many}: {_counted(graded.rows)}")
    if any(row.override for row in graded.rows):
        print("* with points given by hand")
    for note in graded.notes:
        _tell(one_line(note))
    if not graded.sandbox:
        print("Without a sandbox: the students' code ran as you.")


def _tell(line: str, indent: int = 2) -> None:
    """A line, on as many as it needs; a long word, such as a name, is broken."""
    print(textwrap.fill(line, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False))


def _counted(rows: Any) -> str:
    """How many rows have which status: those that passed first, then the commonest."""
    counts = Counter(row.status.replace("_", " ") for row in rows)
    ordered = sorted(counts, key=lambda status: (status != "passed", -counts[status], status))
    return ", ".join(f"{counts[status]} {status}" for status in ordered)
