"""One pytest process with nbval: a folder of overlaid notebooks in, a record per exercise out."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytorch_lab.grading.trouble import one_line
from pytorch_lab.warm import provisioner

STATUSES = (
    "passed",
    "failed",
    "raised",
    "timed_out",
    "kernel_died",
    "not_attempted",
    "missing",
    "refused",
    "unreadable",
)

# One thread each: two on a busy machine make a step up to 300 times slower.
_ENV = {
    "MPLBACKEND": "agg",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


_KEYS = {"submission", "exercise", "status", "reason"}


@dataclass
class Pytest:
    """Runs the notebooks of a folder; nothing of the user's own pytest settings takes part."""

    timeout_cell: int
    warm: Path | None  # the folder of the warm worker; None without a sandbox
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False

    def __call__(self, folder: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
        """A record for each exercise that was judged, and why the run ended early, or ""."""
        results, config = folder / "results.jsonl", folder / "pytest.ini"
        config.write_text("[pytest]\n", "utf-8")
        results.touch()
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=line", "--noconftest"),
            *("-p", "nbval.plugin", "-p", "pytorch_lab.grading.plugin", "-p", "no:cacheprovider"),
            *("-c", str(config), "--rootdir", str(folder)),
            f"--nbval-cell-timeout={self.timeout_cell}",
            *("--lab-results", str(results), *options, str(folder)),
        ]
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | _ENV
        if self.warm is not None:
            command.append("--lab-sandbox")
            env[provisioner.ATTACH] = str(self.warm)
        process = subprocess.Popen(  # the command is ours
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        self.running.add(process)
        if self.stopped:
            process.kill()
        said, _ = process.communicate()
        self.running.discard(process)
        if process.returncode not in (0, 1):
            told = one_line(said[-2000:])[-300:]
            return records(results), f"it ended with code {process.returncode}: {told}"
        return records(results), ""

    def stop(self) -> None:
        """End every process that runs, with the kernels below it."""
        self.stopped = True
        for process in list(self.running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def records(results: Path) -> list[dict[str, Any]]:
    """The lines that are records; without a sandbox, students could write others."""
    found = []
    for line in results.read_text("utf-8", errors="replace").splitlines():
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and _is_the_plugins(record):
                found.append(record)
    return found


def _is_the_plugins(record: dict[str, Any]) -> bool:
    """Whether the plugin could have written this."""
    texts = all(isinstance(record.get(key), str) for key in _KEYS)
    return texts and record["status"] in STATUSES
