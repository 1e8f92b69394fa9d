"""What every test and every doctest needs: one torch thread, and a progress file of its own."""

import signal
import threading
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Hear interrupts, and compare lessons without the numbers of cells: nbval's kernel has none.

    A shell starts what runs in the background with interrupts ignored, and so would be all that the
    tests start.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config.option, "nbval_sanitize_with"):
        config.option.nbval_sanitize_with = str(Path(__file__).parent / "tests" / "nbval.cfg")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """More threads only fight for the cores, and make sums differ in their last bits."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def progress_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test may touch a learner's progress."""
    file = tmp_path / "progress.json"
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(file))
    return file
