"""Whatever somebody else's code switches, the learner's kernel is afterwards as it was."""

import random

import numpy
import pytest
import torch

from pytorch_lab import surroundings


def switches():
    return (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.is_anomaly_enabled(),
        torch.get_deterministic_debug_mode(),
        torch.is_warn_always_enabled(),
    )


@pytest.mark.parametrize("warn_only", [False, True])
def test_kept_puts_back_every_switch(warn_only):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        before = switches()
        with surroundings.kept():
            torch.set_grad_enabled(False)
            torch.set_default_dtype(torch.float64)
            torch.use_deterministic_algorithms(False)
            torch.set_warn_always(not torch.is_warn_always_enabled())
        assert switches() == before
    finally:
        torch.use_deterministic_algorithms(False)


def test_kept_puts_back_random_states_also_after_an_error():
    surroundings.seed(3)
    want = torch.rand(2).tolist(), random.random(), numpy.random.rand()  # noqa: NPY002 - global one
    surroundings.seed(3)
    with pytest.raises(ZeroDivisionError), surroundings.kept():
        torch.manual_seed(8), random.seed(8), numpy.random.seed(1 // 0)  # noqa: NPY002
    assert (torch.rand(2).tolist(), random.random(), numpy.random.rand()) == want  # noqa: NPY002
