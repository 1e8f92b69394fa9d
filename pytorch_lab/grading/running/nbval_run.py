"""One pytest process with nbval: a folder of overlaid notebooks in, a record per exercise out."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytorch_lab.grading.statuses import FROM_RUN
from pytorch_lab.grading.trouble import one_line
from pytorch_lab.warm.worker import ATTACH

# One thread each: two on a busy machine make a step up to 300 times slower.
_ENV = {
    "MPLBACKEND": "agg",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


Record = dict[str, Any]
_KEYS = {"submission", "exercise", "status", "reason", "shown"}


@dataclass
class Pytest:
    """Runs the notebooks of a folder; nothing of the user's own pytest settings takes part."""

    timeout_cell: int
    warm: Path | None  # the folder of the warm worker; None without a sandbox
    memory_bytes: int = 0  # for a kernel in the sandbox; 0 for what it may use by default
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    stopped: bool = False

    def __call__(
        self, folder: Path, *options: str, heard: Callable[[Record], None] | None = None
    ) -> tuple[list[Record], str]:
        """A record for each exercise that was judged, and why the run ended early, or "".

        Args:
            folder: the overlaid notebooks.
            options: further ones of the plugin.
            heard: is called with each record as it comes.
        """
        config, log = folder / "pytest.ini", folder / "pytest.log"
        config.write_text("[pytest]\n", "utf-8")
        verdicts, told = os.pipe()
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=line", "--noconftest"),
            *(
                "-p",
                "pytorch_lab.grading.running.plugin",
                "-p",
                "nbval.plugin",
                "-p",
                "no:cacheprovider",
            ),
            *("-c", str(config), "--rootdir", str(folder)),
            f"--nbval-cell-timeout={self.timeout_cell}",
            *("--lab-results", str(told), *options, str(folder)),
        ]
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | _ENV
        if self.warm is not None:
            command += ["--lab-sandbox", f"--lab-memory={self.memory_bytes}"]
            env[ATTACH] = str(self.warm)
        with log.open("wb") as output:
            process = subprocess.Popen(  # the command is ours
                command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT,
                pass_fds=[told], start_new_session=True,
            )  # fmt: skip
        os.close(told)
        self.running.add(process)
        if self.stopped:
            process.kill()
        found = []
        with open(verdicts, encoding="utf-8", errors="replace") as lines:
            for record in filter(None, map(record_in, lines)):
                found.append(record)
                if heard is not None:
                    heard(record)
        code = process.wait()
        self.running.discard(process)
        if code not in (0, 1):
            said = one_line(log.read_text("utf-8", errors="replace")[-2000:])[-300:]
            return found, f"it ended with code {code}: {said}"
        return found, ""

    def stop(self) -> None:
        """End every process that runs, with the kernels below it."""
        self.stopped = True
        for process in list(self.running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def record_in(line: str) -> Record | None:
    """The record that a line is, if it is one that the plugin could have written."""
    with suppress(ValueError, RecursionError):
        record = json.loads(line)
        if isinstance(record, dict) and _is_the_plugins(record):
            return record
    return None


def _is_the_plugins(record: Record) -> bool:
    """Whether the plugin could have written this."""
    texts = all(isinstance(record.get(key), str) for key in _KEYS)
    seconds = record.get("seconds")
    others = (
        isinstance(seconds, float)
        and math.isfinite(seconds)
        and isinstance(record.get("reveals"), list)
    )
    return texts and others and record["status"] in FROM_RUN
