"""The commands of whoever makes an assignment and grades it; `pytorch_lab.cli` offers them.

They stand outside `pytorch_lab.grading`, which needs packages that a learner may not have: here as
there, a command imports what it calls when it is called.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def register(app: typer.Typer) -> None:
    """Offer the instructor's commands.

    Example:
        >>> app = typer.Typer()
        >>> register(app)
        >>> [command.callback.__name__ for command in app.registered_commands][:2]
        ['release', 'grade']
    """
    for command in (release, grade):
        app.command()(command)


def release(
    solutions: Annotated[list[Path], typer.Argument(metavar="SOLUTION...")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the students' notebooks go.")],
) -> None:
    """Make the students' notebooks from the solutions."""
    from pytorch_lab import grading

    for path in grading.release(solutions, out):
        print(path)


def grade(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")],
    assignment: Annotated[
        Path, typer.Option(metavar="NOTEBOOK", help="The solution that was released.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where grades.csv goes.")],
    seed: Annotated[
        int, typer.Option(help="Choose it yourself, and no input can be foreseen.")
    ] = 0,
    sandbox: Annotated[
        bool, typer.Option(help="Keep students' code from your files and network.")
    ] = True,
    timeout_cell: Annotated[
        int, typer.Option(min=1, metavar="S", help="Seconds a cell may take.")
    ] = 60,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Submissions run at a time.")
    ] = 1,
    db: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Gradebook; default: DIR/gradebook.sqlite."),
    ] = None,
) -> None:
    """Grade a folder of submissions, and write DIR/grades.csv."""
    from pytorch_lab import grading

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end in order, as with Ctrl-C
    try:
        rows = grading.grade(
            folder, assignment, out,
            seed=seed, sandbox=sandbox, timeout_cell=timeout_cell, workers=workers,
            db=db,
        )  # fmt: skip
    except KeyboardInterrupt:
        print("pytorch-lab: stopped; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None
    _sum_up(rows)
    print(out / "grades.csv")
    if not sandbox:
        print("Without a sandbox: the students' code ran as you.")


def _sum_up(rows: list[Any]) -> None:
    """A line for each student, and one for the class."""
    from pytorch_lab.grading.trouble import one_line

    students = sorted({row.student for row in rows})
    width = max((len(one_line(student)) for student in students), default=0)
    for student in students:
        theirs = [row for row in rows if row.student == student]
        points = sum(row.points for row in theirs)
        print(
            f"{one_line(student):{width}}  {points:g} of {sum(row.max_points for row in theirs):g}"
        )
    print(f"{len(students)} graded")
