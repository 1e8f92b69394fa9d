"""A notebook from top to bottom in a fresh kernel of this Python, for learners and authors.

The learner's progress file is left alone: the kernel is given another one. One thread is enough,
and gives the same numbers on every machine with as many cores as it likes.
"""

import logging
import os
import subprocess
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

from pytorch_lab import scratch
from pytorch_lab.errors import NotebookError

# nbclient logs what is said in a sentence here anyway.
_QUIET = logging.getLogger("pytorch_lab.grading.quiet")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class Stopped(NotebookError):
    """The kernel died or a cell ran too long; what had run before is in the notebook."""


def execute(
    notebook: NotebookNode, folder: Path, *, name: object, timeout_cell: int, go_on: bool = False
) -> None:
    """Run every code cell, and put what it shows into the notebook.

    Args:
        notebook: is changed.
        folder: the kernel's folder.
        name: what messages call the notebook.
        timeout_cell: seconds that one cell may run.
        go_on: run the cells after one that raised.

    Raises:
        Stopped: the kernel died, or a cell ran too long.
    """
    at = 0

    def remember(cell: NotebookNode, cell_index: int) -> None:
        nonlocal at
        at = cell_index + 1

    client = NotebookClient(
        notebook,
        timeout=timeout_cell,
        interrupt_on_timeout=go_on,
        allow_errors=go_on,
        skip_cells_with_tag="",
        store_widget_state=False,
        record_timing=False,
        shutdown_kernel="immediate",
        on_cell_execute=remember,
        log=_QUIET,
    )
    kernel = client.create_kernel_manager()
    kernel.kernel_spec_manager = NbvalKernelspecManager()
    kernel.kernel_name = CURRENT_ENV_KERNEL_NAME
    own = scratch.make("run")
    env = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTORCH_LAB_PROGRESS": str(own / "progress.json"),
    }
    try:
        client.execute(cwd=str(folder.resolve()), env=env, stderr=subprocess.DEVNULL)
    except CellExecutionError:
        return  # the error is in the outputs of its cell
    except CellTimeoutError:
        raise Stopped(
            f"expected cell {at} of {name} to end within {timeout_cell} s, but it ran on; "
            "is there a loop that never ends?"
        ) from None
    except DeadKernelError:
        raise Stopped(
            f"expected the kernel to live through cell {at} of {name}, but it died; does the "
            "cell call exit, or need more memory than there is?"
        ) from None
    finally:
        scratch.remove(own)


def error_of(cell: NotebookNode) -> str:
    """The error that a cell shows, as `type: message`; nothing if it shows none.

    Example:
        >>> import nbformat
        >>> out = nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=[])
        >>> error_of(nbformat.v4.new_code_cell("x", outputs=[out]))
        'NameError: x'
    """
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}".removesuffix(": ")
    return ""
