"""Inside the sandbox: import once what notebooks import, then fork a kernel for each request.

One thread, no open library handle that a fork could not carry. A request is a connection to the
socket in the shared folder; it lives as long as the kernel does:

    host                                      server
    {"kernel": "k1", "env": {}, ...}   →
                                       ←     {"ready": true}
    {"signal": 2}                      →
                                       ←     {"exit": 0}

When the host closes the connection, or dies, the kernel is ended.
"""

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_lab.warm import kernel, nest

SOCKET = "server.sock"
WARM = "warm"  # the last word before the first kernel can be asked for
MOST_BYTES = 1 << 20  # of one request
REPORT = 3  # the pipe to the server in init and in the kernel, until it is ready


@dataclass(eq=False)
class Client:
    """One connection: a kernel that is wanted, or runs."""

    connection: socket.socket
    received: bytes = b""
    init: int | None = None

    def say(self, **message: Any) -> None:
        """Tell the host; it may be gone."""
        with suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Server:
    """Serves one socket until the sandbox ends."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.selector = selectors.DefaultSelector()
        self.selector.register(listening, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """For ever."""
        while True:
            for key, _ in self.selector.select():
                key.data()

    def _accept(self) -> None:
        client = Client(self.listening.accept()[0])
        self.selector.register(client.connection, selectors.EVENT_READ, lambda: self._hear(client))

    def _hear(self, client: Client) -> None:
        try:
            data = client.connection.recv(65536)
        except OSError:
            data = b""
        client.received += data
        if not data or len(client.received) > MOST_BYTES:
            self._leave(client)
            return
        while b"\n" in client.received:
            line, client.received = client.received.split(b"\n", 1)
            request = json.loads(line)
            if "kernel" in request:
                self._fork(client, request)
            elif client.init is not None:
                os.kill(client.init, request["signal"])

    def _leave(self, client: Client) -> None:
        """Forget a connection; if the host has gone, its kernel goes too."""
        self.selector.unregister(client.connection)
        client.connection.close()
        if client.init is not None:
            os.kill(client.init, signal.SIGKILL)  # all below die with it

    def _fork(self, client: Client, request: dict[str, Any]) -> None:
        news, report = os.pipe()
        try:
            client.init = nest.fork(
                nest.RUN / request["kernel"],
                nest.Limits(**request.get("limits", {})),
                lambda: _leave_all_but(report),
                lambda bound: _run_kernel(request.get("env", {}), bound),
            )
        except OSError as error:  # the host reads it in the log
            print(f"no namespaces for a kernel: {error.strerror}", file=sys.stderr, flush=True)
            os.close(news)
            client.say(exit=1)
            self._leave(client)
        else:
            self.selector.register(news, selectors.EVENT_READ, lambda: self._news(client, news))
        finally:
            os.close(report)

    def _news(self, client: Client, news: int) -> None:
        """A word when the kernel is ready; the pipe's end when all its processes have ended."""
        if os.read(news, 4096):
            client.say(ready=True)
            return
        self.selector.unregister(news)
        os.close(news)
        init, client.init = client.init, None
        if init is not None:
            code = os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
            client.say(exit=code if code >= 0 else 128 - code)  # as init tells of a kernel
        if client.connection.fileno() >= 0:
            self._leave(client)


def _leave_all_but(report: int) -> None:
    """In the fork: shut the doors, those of other kernels and the server's own."""
    os.setsid()
    os.dup2(report, REPORT)
    os.closerange(REPORT + 1, 65536)
    os.set_inheritable(REPORT, False)


def _run_kernel(env: dict[str, str], bound: Callable[[], None]) -> None:
    work = Path("/tmp/work")
    work.mkdir()
    os.chdir(work)
    os.environ.clear()
    os.environ.update(env)
    from pytorch_lab.warm import app  # preloaded; the host, who imports this file, has none

    kernel = app.initialize(str(nest.OWN / "kernel.json"))
    bound()
    os.write(REPORT, b"ready")
    os.close(REPORT)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # until here what went wrong was for the host's log
        os.dup2(nowhere, stream)
    kernel.start()


def main() -> None:
    """Serve `SOCKET` in the shared folder; the arguments are modules to import beside torch."""
    if os.getuid() == 0:
        nest.mount_proc()
    os.environ["MPLBACKEND"] = "agg"
    nest.become_nobody()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(nest.RUN / SOCKET))
    kernel.preload(sys.argv[1:])
    listening.listen(64)
    print(WARM, flush=True)
    os.dup2(2, 1)  # nobody reads on
    Server(listening).serve()


if __name__ == "__main__":
    sys.exit(main())
