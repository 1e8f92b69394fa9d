"""What does a notebook need on Colab that it has at home? Nothing but the standard library here.

Every notebook opens with the same cell, `SETUP_CELL`. On a machine that has PyTorch Lab it does
nothing; on Colab it installs the package into the kernel, then lets `setup()` switch on the widgets
of other publishers, which Colab keeps off until it is asked.

Colab forgets its files when the session ends, `progress.json` with them: download it to keep it.
"""

import sys
from importlib.metadata import PackageNotFoundError, version

SETUP_CELL = """\
# Set-up: nothing happens on your own machine; on Colab this installs PyTorch Lab.
try:
    import pytorch_lab as lab
except ModuleNotFoundError:
    %pip install -q "pytorch-lab==0.1.0"
    import pytorch_lab as lab

lab.setup()"""


def setup() -> None:
    """Make this notebook ready: on Colab switch on the widgets, elsewhere do nothing.

    Example:
        >>> import pytorch_lab as lab
        >>> lab.setup()  # not on Colab: nothing happens, nothing is printed
    """
    if "google.colab" not in sys.modules:
        return
    from google.colab import output  # pyright: ignore[reportMissingImports]

    output.enable_custom_widget_manager()
    print(f"PyTorch Lab {_installed()} on Colab: run the cells from top to bottom.")


def _installed() -> str:
    try:
        return version("pytorch-lab")
    except PackageNotFoundError:
        return "from a folder"
