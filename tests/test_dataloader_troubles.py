"""What goes wrong in a loader is explained: the cause, the place and the cure."""

import functools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from pytorch_lab.dataloader import explain, time_loader, unsendable, worker_randomness
from pytorch_lab.errors import LoaderError, UsageError


class Failing(Dataset):
    """Does something to whoever asks for sample 3."""

    def __init__(self, act):
        self.act = act

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            return self.act()
        return torch.zeros(2)


class FailingStream(IterableDataset):
    def __iter__(self):
        yield torch.zeros(2)
        raise OSError("the connection is gone")


def raises():
    raise ValueError("bad sample")


def dies():
    if get_worker_info() is not None:
        os._exit(3)
    return torch.zeros(2)


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def longer():
    return torch.zeros(3)


def strange():
    return object()


def told(dataset, look=time_loader, **options):
    """The sentence; `DataLoader` in time."""
    loader = DataLoader(dataset, **{"batch_size": 2, "num_workers": 1} | options)
    with pytest.raises(LoaderError) as caught:
        look(loader, **({"workers": ()} if look is time_loader else {}))
    return str(caught.value)


def always_zero(worker):
    raise RuntimeError("no seed today")


TROUBLES = {
    "raises in a worker": (
        lambda: told(Failing(raises)),
        r"^expected a sample from dataset\[3\], got ValueError in worker 0 "
        r"\(test_dataloader_troubles\.py, line \d+\): bad sample\.$",
    ),
    "raises here": (
        lambda: told(Failing(raises), num_workers=0),
        r"from dataset\[3\], got ValueError in the main process \(test_dataloader_troubles\.py",
    ),
    "raises in a stream": (
        lambda: told(FailingStream()),
        r"from item 1 of iter\(dataset\), got OSError in worker 0 \(.*: the connection is gone\.$",
    ),
    "raises alone": (
        lambda: told(Failing(raises), batch_size=None), r"from dataset\[3\], got ValueError",
    ),
    "unequal shapes": (
        lambda: told(Failing(longer)),
        r"from collate_fn, got RuntimeError in worker 0 .*That means: the samples of a batch have "
        r"different shapes.* give the loader a `collate_fn` that pads",
    ),
    "unknown samples": (
        lambda: told(Failing(strange), batch_size=1),
        r"from collate_fn, got TypeError .*That means: the default collate function knows tensors",
    ),
    "dies": (
        lambda: told(Failing(dies)),
        r"a worker process ended without a word of its own: .*With num_workers=0 the same code",
    ),
    "is killed": (
        lambda: told(Failing(is_killed)), r"the system ended a worker process|ended without a word",
    ),
    "worker_init_fn raises": (
        lambda: told(Failing(dies), worker_init_fn=always_zero), r"^RuntimeError: .*no seed today$",
    ),
    "randomness, raises": (
        lambda: told(Failing(raises), worker_randomness), r"from dataset\[3\], got ValueError in",
    ),
    "randomness, dies": (
        lambda: told(Failing(dies), worker_randomness), r"a worker process ended without a word",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("run", "says"), TROUBLES.values(), ids=TROUBLES)
def test_what_goes_wrong_in_a_loader_is_told(run, says):
    assert re.search(says, run(), re.DOTALL)


def test_the_error_itself_is_kept():
    loader = DataLoader(Failing(raises))
    with pytest.raises(LoaderError) as caught:
        time_loader(loader, workers=())
    assert isinstance(caught.value.__cause__, ValueError)


# ------------------------------------------------------------------- what torch refuses at once

REFUSED = {
    "prefetch": ({"prefetch_factor": 2}, "`prefetch_factor` says how many batches each worker"),
    "persistent": ({"persistent_workers": True}, "`persistent_workers=True` keeps the worker"),
    "context": ({"multiprocessing_context": "fork"}, "says how worker processes start"),
}


@pytest.mark.parametrize(("options", "says"), REFUSED.values(), ids=REFUSED)
def test_options_that_need_workers(options, says):
    with pytest.raises(ValueError, match=r"num_workers|multiprocessing") as caught:
        DataLoader([1, 2], num_workers=0, **options)
    said = explain(caught.value)
    assert says in said
    assert said.endswith("leave it out, or set num_workers to at least 1.")


def test_errors_that_only_other_machines_have():
    cuda = RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with ...")
    assert "keep its tensors on the CPU" in explain(cuda)
    late = RuntimeError("DataLoader timed out after 5 seconds")
    assert "no worker delivered a batch within `timeout`" in explain(late)
    again = RuntimeError("An attempt has been made to start a new process before the\n current "
                         "process has finished its\n bootstrapping phase.")  # fmt: skip
    assert 'behind `if __name__ == "__main__":`' in explain(again)
    assert explain(KeyError("x")) == "KeyError: 'x'"
    assert explain(RuntimeError()) == "RuntimeError"
    assert explain(LoaderError("as it is")) == "as it is"


# ------------------------------------------------------------------- what cannot be sent


class Holding(Dataset):
    def __init__(self, **held):
        vars(self).update(held)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index


def first(items, _by=None):
    return items[0]


def local():
    class Inner(Holding):
        pass

    return Inner


SENDABLE = {
    "nothing special": ({"dataset": Holding(x=torch.zeros(3))}, None),
    "partial": ({"collate_fn": functools.partial(first, _by=2)}, None),
    "lambda": (
        {"collate_fn": lambda items: items},
        r"`collate_fn` is a lambda \(test_dataloader_troubles\.py, line \d+\): pickle, which",
    ),
    "lambda inside": ({"dataset": Holding(t=lambda x: x)}, r"`dataset` holds a lambda"),
    "local class": (
        {"dataset": local()()}, r"`dataset` holds a local class `local\.<locals>\.Inner`: pickle",
    ),
    "lock": (
        {"dataset": Holding(lock=threading.Lock())},
        r"`dataset` cannot be pickled.*'_thread.lock' object.*make them in __getitem__ at first",
    ),
    "init": (
        {"worker_init_fn": lambda worker: None}, r"`worker_init_fn` is a lambda",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "says"), SENDABLE.values(), ids=SENDABLE)
def test_what_cannot_be_sent_to_a_worker_is_named_before_it_starts(options, says):
    options = {"dataset": [1, 2]} | options
    assert says is None or re.search(says, unsendable(DataLoader(**options))[0])
    loader = DataLoader(num_workers=1, multiprocessing_context="spawn", **options)
    if says is None:
        assert unsendable(loader) == []
        return
    for look in (time_loader, worker_randomness):
        with pytest.raises(LoaderError, match=says):
            look(loader)
    with (
        pytest.warns(UserWarning, match="Got pickle error"),
        pytest.raises((AttributeError, pickle.PicklingError, TypeError)) as caught,
    ):
        next(iter(loader))
    assert re.search(says, explain(caught.value, loader))
    forked = DataLoader(num_workers=1, multiprocessing_context="fork", **options)
    assert len(time_loader(forked, batches=1, workers=()).batches) == 1


# What a notebook does: its classes are of `__main__`, which has no file.
CELL = """
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return index ** 2

from pytorch_lab import dataloader
from pytorch_lab.errors import LoaderError

loader = DataLoader(Squares(), num_workers=1, multiprocessing_context="spawn")
try:
    dataloader.time_loader(loader)
except LoaderError as error:
    print(error)
try:
    next(iter(loader))
except RuntimeError as error:
    print(dataloader.explain(error, loader))
"""


def test_a_class_of_a_notebook_and_spawn():
    """Torch's own way is a worker that dies without a word; both are explained alike."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", CELL], capture_output=True, text=True, check=True
    )
    ours, torchs = ran.stdout.splitlines()
    assert ours.startswith("`dataset`: class `Squares` is defined in a notebook cell: ")
    assert "move it to a .py file beside the notebook and import it from there" in ours
    assert torchs == f"RuntimeError: {ours}"
    assert "Can't get attribute 'Squares' on <module '__main__'" in ran.stderr  # the worker's own


def test_a_forked_worker_that_ended_did_not_die_of_pickle():
    loader = DataLoader(Failing(lambda: 0), num_workers=1, multiprocessing_context="fork")
    ended = RuntimeError("DataLoader worker (pid(s) 17) exited unexpectedly")
    assert "pickle" not in explain(ended, loader)
    assert "a worker process ended" in explain(ended, loader)


@pytest.mark.parametrize("thing", [None, [1], "loader", Failing(int)])
def test_only_a_loader_is_looked_at_for_what_cannot_be_sent(thing):
    with pytest.raises(UsageError, match="expected a DataLoader"):
        unsendable(thing)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workers": 3}, r"`workers` as several numbers, got 3; give \[3\]"),
        ({"device": "nonsense"}, "`device` as one of torch"),
        ({"device": 3.5}, "`device` as one of torch"),
    ],
)
def test_arguments_that_are_none_are_refused_in_words(options, says):
    with pytest.raises(UsageError, match=says):
        time_loader(DataLoader([1, 2]), batches=1, **options)
