"""Recording: what a hostile reading found."""

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from pytorch_lab.graph import record
from pytorch_lab.graph.recording.sites import is_readers


def test_our_own_package_is_not_the_readers_code() -> None:
    import pytorch_lab.modules.outputs

    assert not is_readers(pytorch_lab.modules.outputs.__file__)


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e38])
def test_the_length_of_very_large_and_small_values(size: float) -> None:
    values = torch.tensor([3.0, -4.0, 0.0]) * size if size < 1e38 else torch.full((3,), 1e38)
    stats = record(lambda: values.clone()).values[-1].stats
    assert stats is not None
    exact = values.double()
    assert stats.norm == pytest.approx(exact.norm().item(), rel=1e-6)
    assert stats.mean == pytest.approx(exact.mean().item(), rel=1e-6)
    assert stats.inf == 0


def test_an_error_that_cannot_be_said_is_recorded_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def fails() -> None:
        raise Mute

    assert str(record(fails).error).startswith("Mute: its message could not be read")


def test_modules_of_other_threads_are_not_in_the_record() -> None:
    other = nn.Linear(2, 2)

    def fn(x: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=other, args=(torch.ones(1, 2),))
        thread.start()
        thread.join()
        return x * 2

    rec = record(fn, torch.ones(2))
    assert (rec.calls, {op.module for op in rec.ops}) == ((), {""})


def test_a_mode_that_the_code_leaves_open_does_not_keep_ours_installed() -> None:
    def opens() -> Iterator[torch.Tensor]:
        with torch.device("cpu"):
            while True:
                yield torch.ones(2)

    source = opens()
    before = torch._C._len_torch_function_stack()
    rec = record(lambda: next(source) * 2)
    modes = [type(mode).__name__ for mode in torch.overrides._get_current_function_mode_stack()]
    source.close()
    assert "Recorder" not in modes
    assert torch._C._len_torch_function_stack() == before
    assert len(rec.ops) == 2
