"""`pytorch-lab`: the course from a terminal.

Each command is a few lines over a function that notebooks and tests can call as well, imported
inside the command: `--help`, `--version`, `open` and `doctor` answer without waiting for torch.

Exit codes: 0 it worked; 1 it worked and the answer is no (a check failed, the course can't run);
2 what was asked makes no sense or can't be done, said in one sentence.
"""

import io
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from pytorch_lab import __version__, instructor
from pytorch_lab.errors import LabError

app = typer.Typer(
    name="pytorch-lab",
    help="See how PyTorch works: break it, fix it, and have it graded.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: starts sooner and reads everywhere
)

# Typer brings click's exceptions along privately; their common root is public only as a base.
_Complaint: type[Exception] = typer.BadParameter.__mro__[2]


def main(argv: list[str] | None = None) -> NoReturn:
    """Run one command and exit; what goes wrong on purpose is one sentence, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows no ✓, a name of odd bytes
    try:
        sys.exit(app(args=argv, prog_name="pytorch-lab", standalone_mode=False))
    except LabError as error:
        _complain(str(error))
    except _Complaint as error:
        _complain(_advice(error))
    except typer.Abort:
        sys.exit(130)


def _complain(sentence: str) -> NoReturn:
    print(f"pytorch-lab: {sentence}", file=sys.stderr)
    sys.exit(2)


def _advice(error: Any) -> str:
    """A complaint about the command line, with what was meant perhaps, and where to read on."""
    said = re.sub(r" \(Possible options: (.*)\)$", r". Did you mean \1?", error.format_message())
    command = error.ctx.command_path if getattr(error, "ctx", None) else "pytorch-lab"
    return f"{said if said.endswith(('.', '?')) else said + '.'} See: {command} --help"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"pytorch-lab {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("open")
def open_course(
    folder: Annotated[Path, typer.Argument(metavar="DIR")] = Path("pytorch-lab-course"),
    browser: Annotated[bool, typer.Option(help="Open one on the landing page.")] = True,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Default: the first free from 8888.")
    ] = None,
) -> None:
    """Open the course in JupyterLab, in a folder of yours.

    Files that you have changed are kept; a newer version is put beside yours.
    """
    from pytorch_lab import course, launch

    launch.find()
    done = course.deliver(folder)
    print(f"The course is in {folder.resolve()}", end="")
    print(f", {len(done.written)} files new or updated." if done.written else ".")
    for name in done.beside:
        print(f"You have changed this one, so it stays; the newer one is beside it: {name}")
    print("JupyterLab starts; Ctrl-C ends it.", flush=True)
    launch.serve(folder, browser=browser, port=port)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what works here, and what to do about what doesn't."""
    from pytorch_lab.doctor import examine

    report = examine()
    print(json.dumps(report.as_json(), indent=2, ensure_ascii=False) if as_json else report)
    raise typer.Exit(0 if report.can_run else 1)


@app.command()
def check(
    notebook: Annotated[Path, typer.Argument(metavar="NOTEBOOK")],
) -> None:
    """Run the visible checks of an exercise notebook."""
    from pytorch_lab import grading
    from pytorch_lab.checks.verdict import WORDS

    verdicts = grading.check(notebook)
    for verdict in verdicts:
        sign, word = WORDS[verdict.state]
        print(f"{sign} {verdict.exercise}  {word}")
        if verdict.state != "passed" and verdict.message:
            print(textwrap.indent(textwrap.fill(verdict.message, 72), " " * 8))
    passed = sum(verdict.state == "passed" for verdict in verdicts)
    print(f"{passed} of {len(verdicts)} passed")
    raise typer.Exit(0 if passed == len(verdicts) else 1)


instructor.register(app)


@app.command()
def run(
    notebooks: Annotated[list[Path], typer.Argument(metavar="NOTEBOOK...")],
) -> None:
    """Run lessons from top to bottom and save them (authors)."""
    from pytorch_lab import grading

    for notebook in notebooks:
        grading.run(notebook)
        print(notebook)


if __name__ == "__main__":
    main()
