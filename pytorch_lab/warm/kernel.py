"""ipykernel as a fork of the warm process: imported before, started after.

Memory that a fork only reads is shared; what it touches is copied, page by page, and a Python
object is touched when it is only looked at. So what walks over all modules or objects is left out.
"""

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def preload() -> None:
    """Import what costs seconds. An optimizer's first use imports as much as torch itself."""
    gc.disable()  # nothing of it is garbage, and to look costs an eighth of the time
    with _without_debugger():
        import ipykernel.debugger
        import ipykernel.ipkernel
        import ipykernel.kernelapp
        import ipykernel.zmqshell  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import torch

    from pytorch_lab import checks

    for name in checks.__all__:
        getattr(checks, name)  # imported when it is first asked for
    torch.set_num_threads(1)
    leaf = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.AdamW([leaf])
    leaf.sum().backward()
    optimizer.step()
    for name in _imported_by_a_first_kernel():
        with suppress(ImportError):
            importlib.import_module(name)
    # A collection in a fork would touch every object that it shares.
    gc.collect()
    gc.freeze()
    gc.enable()


@contextmanager
def _without_debugger() -> Iterator[None]:
    """Let ipykernel find no debugger: nobody steps through these kernels, and it takes memory."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["debugpy"]


def _imported_by_a_first_kernel() -> list[str]:
    """What a kernel of this ipykernel imports only when it starts, found by starting one."""
    known = set(sys.modules)
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            initialize("/tmp/first.json")
            with open(theirs, "w") as out:
                out.write("\n".join(sorted(set(sys.modules) - known)))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(mine) as told:
        names = told.read().split()
    os.waitpid(child, 0)
    return names


def initialize(connection_file: str) -> Any:
    """A kernel that is ready to `start()`."""
    import ipykernel.ipkernel
    from ipykernel.kernelapp import IPKernelApp
    from traitlets.config import Config

    class App(IPKernelApp):
        """Told all by its configuration; a parser of arguments would take milliseconds to build."""

        name = "ipython-kernel"

        def parse_command_line(self, argv: Any = None) -> None:
            pass

    config = Config()
    config.HistoryManager.enabled = False  # it would start a thread and open a database
    config.IPKernelApp.connection_file = connection_file
    config.IPKernelApp.log_level = 50
    app = App.instance(config=config)
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
