"""pytest with nbval: a folder of overlaid notebooks in, a record per exercise out."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

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


_MOMENT_S = 2  # for a process that has closed its files, and ends

Record = dict[str, Any]
_KEYS = {"submission", "exercise", "status", "reason", "shown"}


class Pytest:
    """Runs the notebooks of a folder; nothing of the user's own pytest settings takes part.

    The first run starts a process that has pytest and nbval imported; each run is a fork of it.

    Args:
        timeout_cell: seconds that one cell may run.
        warm: the folder of the warm worker; None without a sandbox.
        memory_bytes: what a kernel in the sandbox may use; 0 for what it may by default.
    """

    def __init__(self, timeout_cell: int, warm: Path | None, memory_bytes: int = 0) -> None:
        self.timeout_cell = timeout_cell
        self.warm = warm
        self.memory_bytes = memory_bytes
        self._asking = threading.Lock()
        self._ready: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._running: set[int] = set()
        self._stopped = False

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
        arguments = [
            *("-q", "--tb=line", "--noconftest", "-p", "no:cacheprovider"),
            *("-c", str(config), "--rootdir", str(folder)),
            f"--nbval-cell-timeout={self.timeout_cell}",
            *options,
        ]
        if self.warm is not None:
            arguments += ["--lab-sandbox", f"--lab-memory={self.memory_bytes}"]
        found = []
        with self._begun([*arguments, str(folder)], log) as (verdicts, told):
            for record in filter(None, map(record_in, verdicts)):
                found.append(record)
                if heard is not None:
                    heard(record)
            code = told.readline().strip()
        if code not in ("0", "1"):
            said = one_line(log.read_text("utf-8", errors="replace")[-2000:])[-300:]
            return found, f"it ended with {f'code {code}' if code else self._how()}: {said}"
        return found, ""

    def _how(self) -> str:
        """How a run ended that told no code: with the process that is asked for runs, or killed."""
        if self._ready is not None:
            with suppress(subprocess.TimeoutExpired):
                return f"code {self._ready[0].wait(_MOMENT_S)}"
        return "no code, as what is killed does"

    @contextmanager
    def _begun(self, arguments: list[str], log: Path) -> Iterator[tuple[TextIO, TextIO]]:
        """A run: what it writes of verdicts, and of itself."""
        (verdicts, to_verdicts), (told, to_told) = os.pipe(), os.pipe()
        with (
            open(verdicts, encoding="utf-8", errors="replace") as records,
            open(told, encoding="utf-8") as words,
        ):
            with log.open("wb") as output, self._asking:  # one request at a time
                with suppress(OSError):  # it has ended, and the log says why
                    files = [to_verdicts, output.fileno(), to_told]
                    socket.send_fds(self._door(output), [json.dumps(arguments).encode()], files)
                os.close(to_verdicts)
                os.close(to_told)
                number = words.readline()
            if number:
                self._running.add(int(number))
            if self._stopped:
                self.stop()
            yield records, words
            self._running.discard(int(number or 0))

    def _door(self, log: IO[bytes]) -> socket.socket:
        """Where a run is asked for."""
        if self._ready is None:
            mine, theirs = socket.socketpair()
            env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | _ENV
            if self.warm is not None:
                env[ATTACH] = str(self.warm)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.ready", str(theirs.fileno())],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
            theirs.close()
            self._ready = process, mine
        return self._ready[1]

    def stop(self) -> None:
        """End every run, with the kernels below it, and let none begin."""
        self._stopped = True
        for number in list(self._running):
            with suppress(ProcessLookupError):
                os.killpg(number, signal.SIGTERM)
        if self._ready is not None:
            process, asking = self._ready
            asking.close()
            process.wait()


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
