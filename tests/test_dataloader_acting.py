"""as_worker: this process passes for a worker, and is left as it was."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from pytorch_lab.dataloader import as_worker
from pytorch_lab.errors import UsageError

# Torch suggests as many workers as there are cores.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Telling(Dataset):
    """A sample is what its worker knows, and what each generator gives it."""

    def __init__(self):
        self.calls = 0

    def __len__(self):
        return 6

    def __getitem__(self, index):
        self.calls += 1
        info: Any = get_worker_info()
        numbers = random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002
        return (info.id, info.num_workers, info.seed, info.dataset is self, self.calls, *numbers)


def counts_on(worker_id):
    info: Any = get_worker_info()
    info.dataset.calls = 100 * worker_id


def as_is(samples):
    return samples


@pytest.mark.parametrize("worker_init_fn", [None, counts_on])
def test_it_is_what_a_true_worker_is(worker_init_fn):
    """The reference is torch itself, with two processes."""
    torch.manual_seed(5)
    loader = DataLoader(
        Telling(), batch_size=3, num_workers=2, collate_fn=as_is, worker_init_fn=worker_init_fn
    )
    true = list(loader)
    base_seed = true[0][0][2]
    for worker, batch in enumerate(true):
        with as_worker(
            loader.dataset, worker, 2, seed=base_seed, worker_init_fn=worker_init_fn
        ) as mine:
            assert [mine[index] for index in range(3 * worker, 3 * worker + 3)] == batch


def states():
    return [
        repr(random.getstate()),
        repr(np.random.get_state()),  # noqa: NPY002
        torch.get_rng_state().tolist(),
    ]


def test_everything_is_left_as_it_was():
    dataset = Telling()
    before = states()
    with pytest.raises(ZeroDivisionError), as_worker(dataset, 0, 2) as mine:
        _ = mine[0][4] / 0
    assert get_worker_info() is None
    assert dataset.calls == 0
    after = states()
    assert after == before


@pytest.mark.parametrize(("worker", "workers"), [(2, 2), (-1, 2), (0, 0), (True, 2), (0, 1.0)])
def test_a_worker_that_is_none_is_refused(worker, workers):
    said = rf"0 <= worker < workers, got {worker} and {workers}\."
    with pytest.raises(UsageError, match=said), as_worker([1], worker, workers):
        pass


def test_a_dataset_that_cannot_be_copied_is_told():
    with (
        open(__file__) as file,
        pytest.raises(UsageError, match="copying a list raised TypeError: cannot pickle"),
        as_worker([file], 0, 1),
    ):
        pass
