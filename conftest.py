"""What every test and every doctest needs: one torch thread, and a progress file of its own."""

from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Lessons are compared without the numbers of their cells: nbval's kernel counts none."""
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
