"""The host's side of a warm process: start it, ask it for kernels, end it.

    with Worker() as worker:                  # seconds: torch is imported
        kernel = worker.kernel()              # a fifth of a second
        ...                                   # talk to it: kernel.connection
        kernel.kill()

A worker and all its kernels die with the process that made it, however that ends.
"""

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pytorch_lab import scratch
from pytorch_lab.errors import LabError
from pytorch_lab.warm import nest, sandbox
from pytorch_lab.warm.server import SOCKET, WARM

ATTACH = "PYTORCH_LAB_WARM"  # names the folder of a worker that another process has
PRELOAD_S = 300  # importing torch on a busy machine
START_S = 60  # a fork, on a busy machine
USUAL = ("matplotlib.pyplot", "pytorch_lab.widgets.show")  # what a notebook may well import
LOG = "log"  # in the shared folder; a kernel cannot see it
_CHANNELS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
_ENV = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "IPYTHONDIR": "/tmp/ipython",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(nest.PACKAGE.parent),  # this very package, wherever it was imported from
}

# A fork copies the table of its parent's pages. Of 4 kB each a process that has imported torch has
# sixty thousand; of 2 MB, which malloc can ask for and Python's own allocator can't, a hundred.
_LARGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def _last_words(run: Path) -> str:
    """What a warm process wrote last, as the end of a sentence."""
    words = (run / LOG).read_text("utf-8", errors="replace").split("\n") if run.exists() else []
    last = next((line.strip() for line in reversed(words) if line.strip()), "")
    return f"said {last[-300:]!r}" if last else "stayed silent"


class Door:
    """Where kernels are asked for; the warm process behind it may belong to another process.

    Args:
        run: the folder that it shares with the warm process.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def kernel(
        self, *, limits: nest.Limits | None = None, env: Mapping[str, str] | None = None
    ) -> "WarmKernel":
        """A new kernel, ready to be talked to.

        Raises:
            LabError: the warm process is gone, or no kernel came.
        """
        name = secrets.token_hex(4)
        folder = self.run / name
        folder.mkdir(mode=0o700)
        self._give_to_sandbox(folder)
        info: dict[str, Any] = {channel: at for at, channel in enumerate(_CHANNELS, 1)}
        info |= {"transport": "ipc", "signature_scheme": "hmac-sha256"}
        info |= {"key": secrets.token_hex(32), "kernel_name": "pytorch-lab-grader"}
        inside = json.dumps(info | {"ip": str(nest.OWN / "s")})
        (folder / "kernel.json").write_text(inside)
        self._give_to_sandbox(folder / "kernel.json")
        given = asdict(limits or nest.Limits())
        request = {"kernel": name, "limits": given, "env": _ENV | dict(env or {})}
        return WarmKernel(self.run, folder, request, info | {"ip": str(folder / "s")})

    def _give_to_sandbox(self, path: Path) -> None:
        """Whom root becomes inside must be able to write here."""
        if os.geteuid() == 0:
            os.chown(path, nest.NOBODY, nest.NOBODY)


class Worker(Door):
    """A warm process in a sandbox.

    Args:
        modules: what is imported beside torch; what is not, a kernel can still import itself.

    Raises:
        LabError: no sandbox can be made here, or the warm process did not start.
    """

    def __init__(self, modules: Sequence[str] = USUAL) -> None:
        super().__init__(scratch.make("warm", for_sockets=True))
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._give_to_sandbox(self.run)
            command = [*sandbox.command(self.run, _ENV | _LARGE_PAGES), sys.executable]
            command += ["-m", "pytorch_lab.warm.server", *modules]
            with (self.run / LOG).open("wb") as log:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                    start_new_session=True,  # Ctrl-C is for who asked, and it ends us in order
                )  # fmt: skip
            self._await_warm(self.process)
        except BaseException:
            self.close()
            raise

    def _await_warm(self, process: subprocess.Popen[bytes]) -> None:
        said, output = b"", process.stdout
        while output is not None and not said.endswith(WARM.encode() + b"\n"):
            ready = select.select([output], [], [], PRELOAD_S)[0]
            heard = os.read(output.fileno(), 65536) if ready else b""
            if not heard:
                raise LabError(
                    f"expected a warm Python within {PRELOAD_S} s, but it {_last_words(self.run)}; "
                    "run 'pytorch-lab doctor'."
                )
            said += heard

    def is_alive(self) -> bool:
        """Whether it can still be asked for kernels."""
        return self.process is not None and self.process.poll() is None

    def close(self) -> None:
        """End the warm process, with all its kernels, and remove the folder."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
        scratch.remove(self.run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WarmKernel:
    """One kernel of a worker; `connection` is what a kernel client loads."""

    def __init__(
        self, run: Path, folder: Path, request: dict[str, Any], connection: dict[str, Any]
    ) -> None:
        self.folder = folder
        self.connection = connection
        self.code: int | None = None
        self._received = b""
        self._ready = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(run / SOCKET))
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while not self._ready and self.code is None:
                if not self._hear(START_S):
                    break
        except OSError as error:
            self.kill()
            raise LabError(f"expected a warm Python, but it is gone ({error.strerror}).") from None
        if not self._ready:
            self.kill()
            raise LabError(
                f"expected a kernel within {START_S} s, got none; "
                f"the warm Python {_last_words(run)}."
            )

    def _hear(self, seconds: float | None) -> bool:
        """Read what the server says, within so many seconds if given; False if it says nothing."""
        if self.code is not None or not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            data = self._socket.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._end(1)  # the warm process itself has ended
            return False
        self._received += data
        while b"\n" in self._received:
            line, self._received = self._received.split(b"\n", 1)
            message = json.loads(line)
            self._ready = self._ready or "ready" in message
            if "exit" in message:
                self._end(int(message["exit"]))
        return True

    def _end(self, code: int) -> None:
        if self.code is None:
            self.code = code
            self._socket.close()
            scratch.remove(self.folder)

    def fileno(self) -> int:
        """What becomes readable when it ends, for whoever waits for several things."""
        return self._socket.fileno()

    def poll(self) -> int | None:
        """The exit code once it has ended, None while it lives."""
        self._hear(0)
        return self.code

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for the end; given seconds, at most so long after the last word of it."""
        while self.code is None and self._hear(seconds):
            pass
        return self.code

    def send_signal(self, number: int) -> None:
        """Send the kernel a signal: SIGINT interrupts, SIGKILL ends it with all it started."""
        if self.poll() is None:
            self._socket.sendall(json.dumps({"signal": number}).encode() + b"\n")

    def kill(self) -> None:
        """End it; its folder goes."""
        if self.code is None:
            try:
                self._socket.sendall(json.dumps({"signal": int(signal.SIGKILL)}).encode() + b"\n")
                self.wait(START_S)
            except OSError:
                pass
            self._end(-signal.SIGKILL)
