"""What torch, numpy and Python share with everybody, kept while somebody else's code runs.

    with surroundings.kept():
        surroundings.seed(0)
        model(x)        # may draw, switch and seed as it likes

Whoever runs a learner's code or model (a collector, a snippet of a lesson, a check) does it inside
`kept`. Warning filters and the model's own state are not part of it.
"""

import operator
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch

from pytorch_lab.errors import UsageError


def seed(number: int) -> None:
    """Seed the global generators of torch (all devices), numpy and Python.

    Example:
        >>> with kept():
        ...     seed(7)
        ...     first = torch.rand(2)
        ...     seed(7)
        ...     torch.equal(torch.rand(2), first)
        True

    Raises:
        UsageError: it is no whole number, or too long for torch.
    """
    try:
        number = operator.index(number)
        torch.manual_seed(number)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"expected `seed` as a whole number of at most 64 bits, got {number!r:.60}."
        ) from error
    random.seed(number)
    numpy.random.seed(number % 2**32)  # noqa: NPY002 - learners' code uses the global one


@contextmanager
def kept() -> Iterator[None]:
    """Random numbers, modes and defaults: afterwards as before, whatever happens inside.

    Example:
        >>> with kept():
        ...     torch.set_default_dtype(torch.float64)
        >>> torch.get_default_dtype()
        torch.float32
    """
    of_torch, of_python = torch.get_rng_state(), random.getstate()
    of_numpy = numpy.random.get_state()  # noqa: NPY002 - likewise
    of_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    device = torch.get_default_device()
    switches = [
        (torch.set_grad_enabled, torch.is_grad_enabled()),
        (torch.set_default_dtype, torch.get_default_dtype()),
        (torch.set_anomaly_enabled, torch.is_anomaly_enabled()),
        (torch.set_deterministic_debug_mode, torch.get_deterministic_debug_mode()),  # and warn_only
        (torch.set_warn_always, torch.is_warn_always_enabled()),
    ]
    try:
        yield
    finally:
        for switch, was in switches:
            switch(was)
        if torch.get_default_device() != device:
            # Setting a device installs a mode that stays; setting none takes it away.
            torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_rng_state(of_torch)
        if of_gpus:
            torch.cuda.set_rng_state_all(of_gpus)
        numpy.random.set_state(of_numpy)  # noqa: NPY002 - likewise
        random.setstate(of_python)
