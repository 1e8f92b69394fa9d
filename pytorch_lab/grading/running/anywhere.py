"""Submissions run anywhere: bytes in, records out, no folder shared with whoever asks.

    notebook = judging.prepared(overlaid, reference)      # where the class is
    records, ended = run([notebook], How())               # in whatever process

The process that runs submissions keeps one warm Python for all of them; it ends with the process.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pytorch_lab import scratch
from pytorch_lab.grading.running.nbval_run import Pytest, Record
from pytorch_lab.warm import provisioner

_starting = threading.Lock()


@dataclass(frozen=True)
class How:
    """How submissions are run.

    Attributes:
        sandbox: shut its kernel in.
        timeout_cell: seconds that one cell may run.
        memory_bytes: what the kernel in the sandbox may use; 0 for what it may by default.
    """

    sandbox: bool = True
    timeout_cell: int = 30
    memory_bytes: int = 0


def run(notebooks: Sequence[bytes], how: How) -> tuple[list[Record], str]:
    """A record for each exercise of each notebook, and why the run ended early, or "".

    Args:
        notebooks: what `judging.prepared` gives: a student's answers, the hidden checks, and the
            values that they must reveal.
        how: the limits.

    Raises:
        LabError: no sandbox can be made here, or no warm Python started in it.
        OSError: the disk is full.
    """
    with _starting:
        warm = provisioner.door().run if how.sandbox else None
    folder = scratch.make("anywhere")
    pytest = Pytest(how.timeout_cell, warm, how.memory_bytes)
    try:
        for number, notebook in enumerate(notebooks):
            (folder / f"{number:05}.ipynb").write_bytes(notebook)
        return pytest(folder)
    finally:
        pytest.stop()
        scratch.remove(folder)
