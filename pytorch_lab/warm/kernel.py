"""What the warm process imports and makes, before it is forked for each kernel.

Memory that a fork only reads is shared; what it touches is copied, page by page, and a Python
object is touched when it is only looked at. So what walks over all modules or objects is left out.
"""

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

# What a check needs; the panel of an exercise is for who looks at it.
OURS = tuple(f"pytorch_lab.checks.{name}" for name in ("draws", "registry", "reveals"))

# A seed is noted with the lines that asked for it, whose files would be read by each kernel.
FIRST_CELL = "import torch\ntorch.manual_seed(0)\ndel torch"


def preload(modules: Sequence[str]) -> None:
    """Import what costs seconds. An optimizer's first use imports as much as torch itself.

    Args:
        modules: what else is imported, if it is there; none may start a thread, which no fork
            would have.
    """
    gc.disable()  # nothing of it is garbage, and to look costs an eighth of the time
    with _without_debugger():
        import ipykernel.debugger  # noqa: F401

        from pytorch_lab.warm import app
    import torch

    for name in (*OURS, *modules):
        with suppress(ImportError):  # what is not there, a notebook's own import tells better
            importlib.import_module(name)
    torch.set_num_threads(1)
    leaf = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.AdamW([leaf])
    leaf.sum().backward()
    optimizer.step()
    random = torch.get_rng_state()
    app.prepare(FIRST_CELL)
    torch.set_rng_state(random)
    for name in _imported_by_a_first_kernel(app.initialize):
        with suppress(ImportError):
            importlib.import_module(name)
    # A collection in a fork would touch every object that it shares.
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


def _imported_by_a_first_kernel(initialize: Callable[[str], Any]) -> list[str]:
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
