"""A process that has imported pytest and nbval, and forks for each run: no run waits for that.

`nbval_run.Pytest` starts it and asks it over a socket. A request is a JSON list of arguments for
pytest, with three open files: where the verdicts go, the log, and where the run tells its process
number and, at the end, pytest's exit code.
"""

import gc
import json
import os
import signal
import socket
import sys
from typing import NoReturn

import nbval.plugin
import pytest

from pytorch_lab.grading.running import plugin

MOST_BYTES = 1 << 16  # of a request
FILES = 3


def serve(asking: socket.socket) -> None:
    """Fork for each request, until whoever asks is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a run tells its end itself
    while True:
        request, files, _, _ = socket.recv_fds(asking, MOST_BYTES, FILES)
        if not request:
            return
        if os.fork() == 0:
            asking.close()
            _run(json.loads(request), *files)
        for file in files:
            os.close(file)


def _run(arguments: list[str], verdicts: int, log: int, told: int) -> NoReturn:
    """In the fork: be one run of pytest, in a session of its own, so that it can be ended whole."""
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.write(told, f"{os.getpid()}\n".encode())
        os.dup2(log, 1)
        os.dup2(log, 2)
        for file in (verdicts, log, told):
            os.set_inheritable(file, False)
        code = int(pytest.main([*arguments, f"--lab-results={verdicts}"], [plugin, nbval.plugin]))
        sys.stdout.flush()
        os.write(told, f"{code}\n".encode())
    finally:
        os._exit(code)


def main() -> None:
    """Import what a run needs, pytest's own plugins too, and serve the socket of this number."""
    pytest.main(["--version"])
    gc.freeze()  # a collection in a fork would touch every object that it shares
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
