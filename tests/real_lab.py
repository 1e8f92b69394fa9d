"""A real JupyterLab, started as a learner starts it: `pytorch-lab open`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Lab(NamedTuple):
    """A running JupyterLab and how to ask it."""

    url: str  # of the landing page, with the token
    home: Path  # what it takes for the learner's home folder
    folder: Path  # the course it serves
    process: "subprocess.Popen[str]"

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of an address below the server's root."""
        root, _, rest = self.url.partition("/lab")
        token = rest.partition("?")[2]
        with urllib.request.urlopen(f"{root}{path}?{token}", timeout=60) as answer:
            return answer.status, answer.read().decode()

    def ask(self, path: str) -> Any:
        """What the REST API says."""
        return json.loads(self.get(path)[1])

    def stop(self) -> int:
        """Press Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture(scope="session")
def open_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Lab]]:
    """`open_lab(folder=, home=, program=["pytorch-lab"], environment={})` starts one."""
    started: list[Lab] = []

    def start(
        folder: Path | None = None,
        home: Path | None = None,
        program: tuple[str, ...] = (str(Path(sys.executable).with_name("pytorch-lab")),),
        environment: dict[str, str] | None = None,
    ) -> Lab:
        home = home or tmp_path_factory.mktemp("home")
        folder = folder or home / "course"
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTORCH_LAB"))
        }
        process = subprocess.Popen(
            [*program, "open", str(folder), "--no-browser", "--port", "0"],
            env=clean | {"HOME": str(home), "OMP_NUM_THREADS": "1"} | (environment or {}),
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lab = Lab(_address(process), home, folder, process)
        started.append(lab)
        return lab

    yield start
    for lab in started:
        if lab.process.poll() is None:
            lab.stop()


def _address(process: "subprocess.Popen[str]") -> str:
    """The line in which Jupyter says where it listens, once it does."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:(\d+)\S+", line):
            while process.poll() is None:  # it says so a moment before it does
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", int(found[1]))) == 0:
                        return found[0]
    process.communicate()
    raise AssertionError("JupyterLab ended before it listened:\n" + "".join(said))
