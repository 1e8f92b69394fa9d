"""ipykernel in two halves: what all kernels have alike is made before the fork, the rest after it.

A singleton of IPython's that is there already is taken as it is, and what a fork only reads it
shares with all others. So the application and its shell are made once; what has sockets, threads
or a folder of its own comes with each kernel.
"""

import logging
import sys
from typing import Any

import ipykernel.ipkernel
from ipykernel.compiler import XCachingCompiler
from ipykernel.iostream import OutStream
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets.config import Config


class Stream(OutStream):
    """Standard output or error; a cell flushes each twice, and mostly there is nothing to send."""

    def flush(self) -> None:
        """Wake the thread that sends, and wait for it, only if it has something to do."""
        if self._buffers:
            super().flush()


class App(IPKernelApp):
    """Told all by its configuration: no argument, file, extension or code has anything to add."""

    name = "ipython-kernel"

    def parse_command_line(self, argv: Any = None) -> None:
        """A parser of arguments would take milliseconds to build."""

    def init_config_files(self) -> None:
        """A new disk has none."""

    def load_config_file(self, suppress_errors: Any = None) -> None:
        """Nor is there one to read."""

    def init_shell(self) -> None:
        """Give the kernel the shell that was there before it."""
        super().init_shell()
        shell = ZMQInteractiveShell.instance()
        shell.parent = shell.kernel = self.kernel
        shell.init_environment()

    def init_extensions(self) -> None:
        """They are loaded before the fork."""

    def init_code(self) -> None:
        """There is none; and to note all modules' names would touch all of them."""


def prepare(first_cell: str) -> None:
    """Make what all kernels have alike, and run a cell, which leaves much behind in caches."""
    config = Config()
    config.HistoryManager.enabled = False  # it would start a thread and open a database
    config.IPKernelApp.transport = "ipc"
    config.IPKernelApp.log_level = logging.CRITICAL
    config.IPKernelApp.outstream_class = f"{__name__}.{Stream.__name__}"
    app = App.instance(config=config)
    app.log.setLevel(app.log_level)  # else a record is made of every word, and then dropped
    app.shell = ZMQInteractiveShell.instance(
        parent=app, user_ns={}, compiler_class=XCachingCompiler
    )
    super(App, app).init_extensions()
    app.shell.run_cell(first_cell, store_history=False)


def initialize(connection_file: str) -> App:
    """In the fork: a kernel that is ready to `start()`."""
    app = App.instance()
    app.connection_file = connection_file
    ipykernel.ipkernel.sys = _NoModules()  # type: ignore[attr-defined]
    try:
        app.initialize([])
    finally:
        ipykernel.ipkernel.sys = sys  # type: ignore[attr-defined]
    return app


class _NoModules:
    """`sys` without modules: a kernel lists the files of all of them, for its debugger."""

    modules: dict[str, Any] = {}  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)
