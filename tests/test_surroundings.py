"""Whatever somebody else's code switches, the learner's kernel is afterwards as it was."""

import random

import numpy
import pytest
import torch

from pytorch_lab import surroundings
from pytorch_lab.errors import UsageError


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


@pytest.mark.parametrize("number", [1.5, "a", None, 2**70])
def test_a_seed_that_is_none_is_refused_in_words(number):
    with surroundings.kept(), pytest.raises(UsageError, match="expected `seed` as a whole number"):
        surroundings.seed(number)


def test_a_number_of_numpy_is_a_seed():
    with surroundings.kept():
        surroundings.seed(numpy.int64(3))
        drawn = random.random(), torch.rand(()).item()
        surroundings.seed(3)
        assert (random.random(), torch.rand(()).item()) == drawn
