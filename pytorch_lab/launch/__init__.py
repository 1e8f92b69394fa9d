"""JupyterLab with the course's own settings, and nothing else of the learner's touched.

The settings are three files in `launch/jupyter/`, which Jupyter reads because `JUPYTER_CONFIG_PATH`
names that folder for this one process:

- `jupyter_lab_config.json`: the landing page; no news and no look-up of newer versions.
- `jupyter_server_config.json`: our server extension, so that widgets are saved as pictures.
- `labconfig/default_setting_overrides.json`: other *defaults* for dark mode, line numbers, and
  Markdown as pages.

They are defaults: what a learner has set in JupyterLab's own settings wins, and so does a folder
that is in their `JUPYTER_CONFIG_PATH` already. Open tabs are remembered in the course's folder, so
that the layout of their other work stays as it was.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pytorch_lab.course import OURS
from pytorch_lab.errors import CourseError

SETTINGS = Path(__file__).parent / "jupyter"


def config_path(environment: Mapping[str, str]) -> str:
    """`JUPYTER_CONFIG_PATH` with our settings after the learner's, which win.

    Example:
        >>> from pytorch_lab import launch
        >>> launch.config_path({}).endswith("jupyter")
        True
    """
    theirs = environment.get("JUPYTER_CONFIG_PATH", "")
    return os.pathsep.join(part for part in (theirs, str(SETTINGS)) if part)


def arguments(folder: Path, *, browser: bool = True, port: int | None = None) -> list[str]:
    """What JupyterLab is told on its command line.

    Example:
        >>> from pathlib import Path
        >>> from pytorch_lab import launch
        >>> "--no-browser" in launch.arguments(Path("course"), browser=False)
        True

    Args:
        folder: the learner's course.
        browser: open one; without a screen none is opened anyway, and the address is printed.
        port: the one to listen on, or None for the first free one from 8888.
    """
    folder = folder.resolve()
    told = [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.workspaces_dir={folder / OURS / 'workspaces'}",
        "--ServerApp.answer_yes=True",  # Ctrl-C ends it without asking back
        "--Application.log_level=ERROR",  # the address still prints, it is 'critical'
    ]
    if not (browser and has_screen(os.environ, sys.platform)):
        told.append("--no-browser")
    if port is not None:
        told += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        told.append("--allow-root")  # in a container one is root, and Jupyter would refuse
    return told


def has_screen(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser can show: on Linux X or Wayland must be there.

    Example:
        >>> from pytorch_lab import launch
        >>> launch.has_screen({}, "linux"), launch.has_screen({}, "darwin")
        (False, True)
    """
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return not platform.startswith("linux") or any(environment.get(name) for name in screens)


def find() -> Callable[[list[str]], None]:
    """The entry point of the JupyterLab beside this package.

    Example:
        >>> from pytorch_lab import launch
        >>> callable(launch.find())
        True

    Raises:
        CourseError: there is none.
    """
    try:
        from jupyterlab.labapp import main
    except ImportError as error:
        raise CourseError(
            f"expected JupyterLab beside PyTorch Lab in {sys.prefix}, found none; install it with: "
            f'{sys.executable} -m pip install "pytorch-lab[lab]".'
        ) from error
    return main


def serve(folder: Path, *, browser: bool = True, port: int | None = None) -> None:
    """Be JupyterLab on the course in `folder` until Ctrl-C.

    It runs in this very process: what Python and which packages serve is then no question.

    Raises:
        CourseError: JupyterLab isn't installed beside this package.
    """
    start = find()
    os.environ["JUPYTER_CONFIG_PATH"] = config_path(os.environ)
    # So that a terminal in JupyterLab knows `pytorch-lab`, though nobody activated the environment.
    scripts = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    if os.name == "posix" and not sys.stdin.isatty():
        # Without a terminal Jupyter lets Ctrl-C kill it and leaves its kernels running; the
        # signal that it does handle ends both in order.
        signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    start(arguments(folder, browser=browser, port=port))
