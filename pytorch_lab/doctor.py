"""Can the course run here, and what is to be done about what can't?

`examine()` asks an ordered list of small finders and returns a `Report`; `print(examine())` fits 80
columns. A finder that crashes becomes a line that says so, and the others still speak. A finding is

    ✓   fine
    –   not here, and the course runs without it
    ✗   missing or wrong, with what to do about it
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from pytorch_lab import course
from pytorch_lab.errors import LabError

_SIGNS = {"fine": "✓", "absent": "–", "wrong": "✗"}
_NAME_WIDTH = 12
_NEEDED_DISK_BYTES = 500_000_000  # checkpoints of the lessons, and room to breathe


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, what is there, and what to do."""

    name: str
    state: Literal["fine", "absent", "wrong"]
    found: str
    advice: str = ""

    def __str__(self) -> str:
        margin = " " * (2 + _NAME_WIDTH + 1)
        first = f"{_SIGNS[self.state]} {self.name:{_NAME_WIDTH}} "
        lines = [_wrap(self.found, first, margin)]
        if self.advice:
            lines.append(_wrap(self.advice, margin + "→ ", margin + "  "))
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """Every finding, and whether the course can run."""

    findings: tuple[Finding, ...]

    @property
    def can_run(self) -> bool:
        """Whether nothing is missing or wrong."""
        return all(finding.state != "wrong" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {"can_run": self.can_run, "findings": [asdict(each) for each in self.findings]}

    def __str__(self) -> str:
        wrong = sum(finding.state == "wrong" for finding in self.findings)
        last = "The course can run here."
        if wrong:
            last = f"The course can't run here yet: see the {wrong} marked ✗."
        return "\n".join([*map(str, self.findings), "", last])


def _wrap(text: str, first: str, margin: str) -> str:
    return textwrap.fill(
        text,
        80,
        initial_indent=first,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def examine() -> Report:
    """Ask every finder.

    Example:
        >>> from pytorch_lab.doctor import examine
        >>> examine().findings[0].name
        'Python'
    """
    return Report(tuple(finding for finder in FINDERS for finding in _ask(finder)))


def _ask(finder: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from finder()
    except Exception as error:  # noqa: BLE001 - an installation may be broken in any way
        name = finder.__name__.strip("_").replace("_", " ")
        yield Finding(name, "wrong", f"looking raised {type(error).__name__}: {error}")


# ------------------------------------------------------------------------------------- versions


def _python() -> Iterator[Finding]:
    here = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info >= (3, 11):  # noqa: UP036 - a wheel can be forced into an older Python
        yield Finding("Python", "fine", here)
    else:
        yield Finding("Python", "wrong", here, "The course needs Python 3.11 or newer.")


def _packages() -> Iterator[Finding]:
    """The packages that lessons and exercises need, then those that only instructors need."""
    for name in ("torch", "numpy", "ipywidgets", "anywidget"):
        yield _package(name, 'python -m pip install "pytorch-lab[lab]"')
    for name in ("jupyterlab", "ipykernel"):
        yield _package(name, 'python -m pip install "pytorch-lab[lab]"')
    yield _package("nbval", 'To grade: python -m pip install "pytorch-lab[grade]"', needed=False)


def _package(name: str, advice: str, *, needed: bool = True) -> Finding:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "wrong" if needed else "absent", "not installed", advice)
    least = _least(name)
    if _numbers(found) < _numbers(least):
        return Finding(name, "wrong", f"{found}, but {least} or newer is needed", advice)
    return Finding(name, "fine", found)


def _least(name: str) -> str:
    """The oldest version that our own metadata admits, '0' if any will do."""
    try:
        wanted = metadata.requires("pytorch-lab") or []
    except metadata.PackageNotFoundError:  # run from a folder that was never installed
        return "0"
    found = [re.match(rf"{re.escape(name)}\s*>=\s*([\d.]+)", line) for line in wanted]
    return next((match[1] for match in found if match), "0")


def _numbers(version: str) -> tuple[int, ...]:
    """'2.13.0+cpu' as (2, 13, 0)."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version.split("+")[0])[:3])


# -------------------------------------------------------------------------------- torch's machine


def _torch() -> Any | None:
    """Torch, or None where it isn't installed, which is a finding of its own."""
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        return None


def _threads() -> Iterator[Finding]:
    torch = _torch()
    if torch is not None:
        cores = os.cpu_count() or 1
        yield Finding("threads", "fine", f"torch uses {torch.get_num_threads()} of {cores} cores")


def _gpu() -> Iterator[Finding]:
    torch = _torch()
    if torch is None:
        return
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            yield _cuda_device(torch, index)
    elif torch.backends.mps.is_available():
        yield Finding("GPU", "fine", "Apple's, as device 'mps'")
    else:
        yield Finding("GPU", "absent", "none that torch can use; every lesson runs on the CPU")


def _cuda_device(torch: Any, index: int) -> Finding:
    about = torch.cuda.get_device_properties(index)
    major, minor = about.major, about.minor
    found = (
        f"{about.name}, capability {major}.{minor}, {about.total_memory / 2**30:.0f} GiB, "
        f"as device 'cuda:{index}'"
    )
    built_for = torch.cuda.get_arch_list()
    # Code for the same major version, or an intermediate form of any older one, runs on it too.
    if any(_runs_on(arch, major, minor) for arch in built_for):
        return Finding("GPU", "fine", found)
    advice = (
        f"This torch has code for {', '.join(built_for) or 'no GPU'} only: install a build for "
        "this GPU, or use the CPU."
    )
    return Finding("GPU", "absent", found, advice)


def _runs_on(arch: str, major: int, minor: int) -> bool:
    """Whether code for 'sm_80' or 'compute_80' runs on a device of this capability."""
    kind, _, number = arch.rstrip("af").partition("_")
    theirs = divmod(int(number), 10)
    if kind == "compute":
        return theirs <= (major, minor)
    return theirs[0] == major and theirs[1] <= minor


# --------------------------------------------------------------------- widgets, kernel and server


def _widgets() -> Iterator[Finding]:
    """Both halves of a widget must be there: Python's in the kernel, JavaScript's in the server."""
    try:
        from jupyter_core.paths import jupyter_path
    except ImportError:
        return  # no JupyterLab at all, which is a finding of its own
    folders = [Path(folder) for folder in jupyter_path("labextensions")]
    yield _half("anywidget", "anywidget", folders)
    yield _half("jupyterlab-widgets", "@jupyter-widgets/jupyterlab-manager", folders)


def _half(package: str, extension: str, folders: list[Path]) -> Finding:
    """Whether JupyterLab serves the very extension that the Python package brought along."""
    again = f"python -m pip install --force-reinstall --no-deps {package}, then restart"
    served = next((path for folder in folders if (path := folder / extension).is_dir()), None)
    if served is None:
        said = f"{package}: this JupyterLab has no extension {extension}"
        return Finding("widgets", "wrong", said, again)
    brought = _brought(package, extension)
    if brought is None:
        said = f"{package}: this Python has none, so widgets show as text"
        return Finding("widgets", "wrong", said, again)
    theirs, ours = _extension_version(served), _extension_version(brought)
    if theirs != ours:
        said = f"{package}: JupyterLab serves {theirs}, this Python needs {ours}"
        return Finding("widgets", "wrong", said, f"Remove the older one: {served}")
    return Finding("widgets", "fine", f"{package}: JupyterLab serves the extension it needs")


def _brought(package: str, extension: str) -> Path | None:
    """The folder of an extension as the installed Python package put it."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    wanted = f"labextensions/{extension}/package.json"
    return next((Path(str(file.locate())).parent for file in files if wanted in str(file)), None)


def _extension_version(folder: Path) -> str:
    return json.loads((folder / "package.json").read_text("utf-8")).get("version", "?")


def _kernel() -> Iterator[Finding]:
    """The kernel named python3 must start this Python, or it lacks what is installed here.

    A bare `python` in its specification stands for the Python of the server, which is this one.
    """
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return
    try:
        starts = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        advice = 'python -m pip install "pytorch-lab[lab]"'
        yield Finding("kernel", "wrong", "there is none named python3", advice)
        return
    if re.fullmatch(r"python[\d.]*", starts) or _is_this_python(starts):
        yield Finding("kernel", "fine", "notebooks run in this Python")
    else:
        advice = f"{sys.executable} -m ipykernel install --sys-prefix; if that changes nothing, "
        advice += "remove the other one: jupyter kernelspec remove python3"
        yield Finding("kernel", "wrong", f"notebooks would run in {starts}", advice)


def _is_this_python(program: str) -> bool:
    """In a venv it is the place of the link that counts, not the file it leads to."""
    theirs, ours = Path(program), Path(sys.executable)
    return theirs.parent.resolve() == ours.parent.resolve() and theirs.resolve() == ours.resolve()


def _other_jupyter() -> Iterator[Finding]:
    """Typing `jupyter lab` may start another environment's, which lacks the widgets."""
    program = shutil.which("jupyter-lab")
    if program and Path(program).parent.resolve() != Path(sys.executable).parent.resolve():
        advice = "Start with `pytorch-lab open`, which takes the right one."
        yield Finding("PATH", "absent", f"`jupyter lab` would start {program}", advice)


# --------------------------------------------------------------------------------------- grading


def _sandbox() -> Iterator[Finding]:
    """Only whoever grades needs one."""
    from pytorch_lab.warm.sandbox import why_not

    if why := why_not():
        yield Finding(
            "sandbox", "absent", "none for students' code, when you grade", _sentence(why)
        )
    else:
        yield Finding("sandbox", "fine", "can be made: students' code is shut in when you grade")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


# ---------------------------------------------------------------------------------- course, disk


def _course() -> Iterator[Finding]:
    try:
        yield Finding("course", "fine", str(course.root()))
    except LabError as error:
        yield Finding("course", "wrong", str(error))


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free / 1e9:.1f} GB free here"
    if free >= _NEEDED_DISK_BYTES:
        yield Finding("disk", "fine", found)
    else:
        advice = f"Lessons save models: make {_NEEDED_DISK_BYTES / 1e9:.1f} GB of room."
        yield Finding("disk", "wrong", found, advice)


FINDERS: list[Callable[[], Iterator[Finding]]] = [
    _python,
    _packages,
    _widgets,
    _kernel,
    _other_jupyter,
    _gpu,
    _threads,
    _sandbox,
    _course,
    _disk,
]
