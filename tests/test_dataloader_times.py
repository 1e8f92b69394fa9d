"""time_loader: who waited for whom, what it leaves alone, and what it says.

No time is asserted: a clock that counts its calls orders the events of all processes, and events of
multiprocessing make one wait for another.
"""

import copy
import multiprocessing
import random
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from pytorch_lab.dataloader import BatchTimes, LoaderTimeline, Trial, time_loader
from pytorch_lab.dataloader.inside import Parcel
from pytorch_lab.dataloader.remarks import Ran, remarks_on
from pytorch_lab.errors import LoaderError, ModelError, UsageError

# Torch suggests as many workers as there are cores.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

FORK = multiprocessing.get_context("fork")


class Ticks:
    """A clock of all processes that goes on by a millisecond whenever somebody looks at it."""

    def __init__(self):
        self.now = FORK.Value("q", 0)

    def __call__(self):
        with self.now.get_lock():
            self.now.value += 1_000_000
            return self.now.value


class Gated(Dataset):
    """Samples from `closed` on cannot be had before the gate is opened."""

    def __init__(self, closed):
        self.closed, self.gate = closed, FORK.Event()

    def __len__(self):
        return 16

    def __getitem__(self, index):
        if index >= self.closed:
            assert self.gate.wait(30)
        return index


class Stream(IterableDataset):
    def __init__(self, *, shared=False):
        self.shared = shared

    def __iter__(self):
        info = get_worker_info()
        own = info if info and self.shared else None
        return iter(range(own.id if own else 0, 24, own.num_workers if own else 1))


def timed(loader, step=None, **options):
    return time_loader(loader, step, **{"batches": 4, "workers": (), "clock": Ticks()} | options)


def loader_of(**options):
    return DataLoader(TensorDataset(torch.arange(24.0).view(12, 2)), batch_size=3, **options)


# ------------------------------------------------------------------------------- who waits for whom


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_events_of_a_batch_come_in_their_order(workers):
    seen = timed(loader_of(num_workers=workers), lambda batch: None)
    assert [one.number for one in seen.batches] == [0, 1, 2, 3]
    for one in seen.batches:
        times = [*one.fetched, *one.collated, one.waited[1], *one.used]
        assert times == sorted(times)
        assert one.pinned is one.transferred is None
    for one, following in zip(seen.batches, seen.batches[1:], strict=False):
        assert one.used[1] < following.waited[0]
    assert [one.worker for one in seen.batches] == {
        0: [None] * 4, 1: [0] * 4, 2: [0, 1, 0, 1],
    }[workers]  # fmt: skip


def test_without_workers_the_model_waits_while_the_batch_is_made():
    for one in timed(loader_of(), lambda batch: None).batches:
        assert one.waited[0] < one.fetched[0] < one.collated[1] < one.waited[1]


def test_the_model_waits_for_a_worker_that_is_held_up():
    data = Gated(closed=4)

    def step(batch):
        if 0 in batch:
            assert seen_first == []
            seen_first.append(batch)
            data.gate.set()

    seen_first = []
    first, second, *_ = timed(DataLoader(data, batch_size=4, num_workers=1), step).batches
    assert second.fetched[0] < second.fetched[1]
    assert second.fetched[1] > first.used[0]  # it could not be ready before the gate was opened
    assert second.waited[1] > second.collated[1] > first.used[0]


def test_a_worker_prepares_while_the_model_works():
    """The step ends only when the next batch is being made: the worker did not wait for it."""
    begun = FORK.Event()

    class Telling(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 2:
                begun.set()
            return index

    def step(batch):
        assert begun.wait(30)

    first, second, *_ = timed(DataLoader(Telling(), batch_size=2, num_workers=1), step).batches
    assert second.fetched[0] < first.used[1]


def test_batches_held_up_by_the_one_before_them_are_told():
    """Worker 0 is ready late, worker 1 early, and the model asks in between."""
    ready = [7.0, 2.0, 17.0, 12.0, 27.0, 22.0]
    batches = tuple(
        BatchTimes(k, k % 2, (0.0, 1.0), (1.0, end), None, (2.0 + 5 * k - 5 * (k % 2), 8.0 + 5 * k),
                   None, None)
        for k, end in enumerate(ready)
    )  # fmt: skip
    loader = loader_of(num_workers=2)
    said = [one.code for one in remarks_on(Ran(loader, 2, True, batches, (), {}, 0, False), 2)]
    assert "held_up" in said
    loader = loader_of(num_workers=2, in_order=False)
    said = [one.code for one in remarks_on(Ran(loader, 2, True, batches, (), {}, 0, False), 2)]
    assert "held_up" not in said


def test_shares_and_times_follow_from_the_spans():
    spans = [(0.0, 10.0, 12.0), (12.0, 15.0, 20.0), (20.0, 21.0, 28.0)]
    batches = tuple(
        BatchTimes(k, 0, (0.0, 1.0), (1.0, 2.0), None, (a, b), None, (b, c))
        for k, (a, b, c) in enumerate(spans)
    )
    seen = LoaderTimeline("", 1, 2, True, batches, steady_from=1)
    assert seen.start_ms == 10.0
    assert seen.wait_share == pytest.approx((3 + 1) / (28 - 12))
    assert seen.batch_ms == pytest.approx((28 - 12) / 2)
    empty = replace(seen, batches=())
    assert (empty.wait_share, empty.batch_ms, empty.start_ms) == (None, None, 0.0)
    assert empty.verdict == "Too few batches came to say who waits for whom."


def test_a_device_is_moved_to_before_the_step():
    devices = []
    seen = timed(loader_of(), lambda batch: devices.append(batch[0].device), device="cpu")
    assert devices == [torch.device("cpu")] * 4
    for one in seen.batches:
        assert one.waited[1] <= one.transferred[0] < one.transferred[1] < one.used[0]


def test_a_parcel_notes_when_it_was_pinned(monkeypatch):
    """What torch's pinning thread calls where there is an accelerator."""
    from pytorch_lab.dataloader import torch_private

    monkeypatch.setattr(torch_private, "pin_memory", lambda batch: ["pinned", batch])
    parcel = Parcel("batch").pin_memory()
    assert parcel.batch == ["pinned", "batch"]
    assert parcel.pinned is not None
    assert parcel.pinned[0] <= parcel.pinned[1]
    broken = Parcel(None, failure=object()).pin_memory()  # type: ignore[arg-type]
    assert broken.batch is None


# ------------------------------------------------------------------------------- any loader

Pair = namedtuple("Pair", "x y")


class Named(Dataset):
    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return {"tuple": (index, index), "dict": {"x": index}, "pair": Pair(index, index)}[
            self.kind
        ]


class Whole(Dataset):
    """Fetches a batch at once."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        raise AssertionError("__getitems__ is the way")

    def __getitems__(self, indices):
        return [10 * index for index in indices]


class Backwards(Sampler):
    def __init__(self, data):
        self.data, self.used = data, 0

    def __iter__(self):
        self.used += 1
        return iter(range(len(self.data) - 1, -1, -1))

    def __len__(self):
        return len(self.data)


class Doubling(DataLoader):
    """A loader of somebody's own, as accelerate has them."""

    def __iter__(self):
        for batch in super().__iter__():
            yield 2 * batch


def listed(items):
    return list(items)


BACKWARDS = BatchSampler(Backwards(range(12)), 3, drop_last=False)
LOADERS = {
    "tuples": lambda **o: DataLoader(Named("tuple"), batch_size=3, **o),
    "dicts": lambda **o: DataLoader(Named("dict"), batch_size=3, **o),
    "named tuples": lambda **o: DataLoader(Named("pair"), batch_size=3, **o),
    "a list": lambda **o: DataLoader(list(range(12)), batch_size=3, **o),
    "a tensor": lambda **o: DataLoader(torch.arange(12), batch_size=3, **o),
    "single samples": lambda **o: DataLoader(range(12), batch_size=None, **o),
    "batches at once": lambda **o: DataLoader(Whole(), batch_size=3, **o),
    "a batch sampler": lambda **o: DataLoader(range(12), batch_sampler=BACKWARDS, **o),
    "a sampler": lambda **o: DataLoader(range(12), batch_size=3, sampler=Backwards(range(12)), **o),
    "weights": lambda **o: DataLoader(
        range(12), batch_size=3, sampler=WeightedRandomSampler([1.0] * 12, 12), **o
    ),
    "own collate": lambda **o: DataLoader(range(12), batch_size=3, collate_fn=listed, **o),
    "a stream": lambda **o: DataLoader(Stream(shared=True), batch_size=3, **o),
    "single items": lambda **o: DataLoader(Stream(shared=True), batch_size=None, **o),
    "a short end": lambda **o: DataLoader(Stream(shared=True), batch_size=5, drop_last=True, **o),
    "shuffled": lambda **o: DataLoader(range(12), batch_size=3, shuffle=True, **o),
    "a subclass": lambda **o: Doubling(range(12), batch_size=3, **o),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_the_step_gets_what_the_loader_would_yield(name, workers):
    loader = LOADERS[name](num_workers=workers)
    got = []
    torch.manual_seed(5)
    timed(loader, got.append, batches=100)
    torch.manual_seed(5)
    expected = list(loader)
    assert repr(got) == repr(expected)
    assert [type(one) for one in got] == [type(one) for one in expected]


@pytest.mark.parametrize(
    "options",
    [
        {"persistent_workers": True, "prefetch_factor": 4},
        {"in_order": False, "timeout": 20},
        {"multiprocessing_context": "fork"},
    ],
    ids=str,
)
def test_options_for_workers_do_not_hinder_a_trial_without_any(options):
    seen = timed(loader_of(num_workers=1, **options), lambda batch: None, workers=(0, 2))
    assert [(one.workers, one.trouble) for one in seen.trials] == [(0, ""), (1, ""), (2, "")]
    assert all(one.batch_ms is not None for one in seen.trials)


def test_a_dataset_is_the_readers_own_in_worker_info():
    """A worker_init_fn shards and seeds it as it would without us."""

    class Sharded(Stream):
        def __iter__(self):
            return iter(range(self.start, 24, 2))

    def init(worker):
        assert type(get_worker_info().dataset) is Sharded
        get_worker_info().dataset.start = worker

    got = []
    loader = DataLoader(Sharded(), batch_size=4, num_workers=2, worker_init_fn=init)
    timed(loader, lambda batch: got.extend(batch.tolist()), batches=9)
    assert sorted(got) == list(range(24))


# ------------------------------------------------------------------------------- left as it was


class Counting(Dataset):
    def __init__(self):
        self.rng, self.count, self.cache = np.random.default_rng(3), 0, {}

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.count += 1
        self.new = index
        return self.rng.normal() + random.random() + np.random.rand() + torch.rand(1).item()  # noqa: NPY002


def everything(loader):
    """What a run could change."""
    return repr(
        [
            torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist(),  # noqa: NPY002
            loader.generator and loader.generator.get_state().tolist(),
            loader.dataset.rng.bit_generator.state,
            {k: v for k, v in vars(loader.dataset).items() if k != "rng"},
            sorted(vars(loader)), id(loader._iterator), type(loader), loader.sampler,
        ]
    )  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_and_all_random_states_are_left_as_they_were(workers):
    loader = DataLoader(
        Counting(), batch_size=2, shuffle=True, num_workers=workers,
        generator=torch.Generator().manual_seed(1), persistent_workers=workers > 0,
    )  # fmt: skip
    running = iter(loader)
    next(running)
    before = everything(loader)
    timed(loader, lambda batch: torch.rand(3), batches=9, workers=(0, 1))
    assert everything(loader) == before
    assert len(list(running)) == 5  # the reader's own epoch goes on


def test_the_next_epoch_comes_in_the_order_in_which_it_would_have_come():
    def order(loader, look):
        if look:
            timed(loader, workers=(1,))
        return torch.cat(list(loader)).tolist()

    for generator in (None, torch.Generator().manual_seed(2)):
        found = []
        for look in (False, True):
            torch.manual_seed(0)
            own = copy.deepcopy(generator)
            found.append(order(DataLoader(torch.arange(9), shuffle=True, generator=own), look))
        assert found[0] == found[1]


def test_a_samplers_own_state_is_left_alone():
    sampler = Backwards(range(12))
    timed(DataLoader(range(12), sampler=sampler), workers=(0, 1))
    assert sampler.used == 0


def test_what_the_step_trains_is_put_back():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    grads = {name: one.grad for name, one in net.named_parameters()}

    def state():
        return repr(
            [
                net.state_dict(), optimizer.state_dict(), schedule.state_dict(), net.training,
                {name: one.grad for name, one in net.named_parameters()},
            ]
        )  # fmt: skip

    def step(batch):
        net.train()
        optimizer.zero_grad()
        net(batch[0]).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
        steps.append(1)

    before, steps = state(), []
    timed(loader_of(num_workers=1), step, workers=(0,))
    assert len(steps) == 8
    assert state() == before
    assert all(one.grad is grads[name] for name, one in net.named_parameters())


def test_the_test_above_can_fail():
    net = nn.Linear(2, 1)
    hidden = {"n": lambda: net}  # what no name leads to is not found

    def step(batch):
        with torch.no_grad():
            eval("hidden")["n"]().weight.add_(1)

    before = net.weight.clone()
    step.hidden = hidden
    with pytest.raises(ModelError, match="the step raised NameError: name 'hidden'"):
        timed(loader_of(), step)
    assert torch.equal(net.weight, before)


# ------------------------------------------------------------------------------- what it says


def trials(*rows):
    return tuple(Trial(workers, ms, share) for workers, ms, share in rows)


def verdict(workers, *rows, has_step=True, cores=4):
    return LoaderTimeline("", workers, cores, has_step, (), 0, trials=trials(*rows)).verdict


VERDICTS = {
    "fed by more": (
        verdict(0, (0, 10.0, 0.71), (1, 9.5, 0.7), (2, 5.0, 0.3), (4, 3.0, 0.02), (8, 3.0, 0.02)),
        "The model waits 71 % of the time; 4 workers would feed it; more would not help (8 tried).",
    ),
    "fed": (
        verdict(2, (0, 9.0, 0.6), (2, 4.0, 0.03)),
        "The model waits 3 % of the time: with 2 workers it is fed.",
    ),
    "fed by fewer": (
        verdict(4, (0, 4.0, 0.08), (4, 4.0, 0.03)),
        "The model waits 3 % of the time: with 4 workers it is fed. No workers are enough, too.",
    ),
    "faster, not fed": (
        verdict(0, (0, 10.0, 0.9), (1, 9.0, 0.9), (2, 5.0, 0.4), (4, 5.2, 0.4)),
        "The model waits 90 % of the time; 2 workers would be 2.0 times as fast, "
        "with the model waiting 40 %; more would not help (4 tried).",
    ),
    "nothing helps": (
        verdict(0, (0, 4.0, 0.5), (1, 6.0, 0.7), (2, 5.0, 0.6)),
        "The model waits 50 % of the time; no other number of workers is faster "
        "(0, 1 and 2 tried, 4 cores). "
        "Make the samples cheaper: prepare them once, or fetch whole batches.",
    ),
    "the most that were tried": (
        verdict(2, (0, 9.0, 0.7), (1, 6.0, 0.5), (2, 4.0, 0.2)),
        "The model waits 20 % of the time; 2 workers are the fastest of 0, 1 and 2; "
        "more were not tried.",
    ),
    "nothing tried": (
        verdict(1, (1, 4.0, 0.5)),
        "The model waits 50 % of the time; no other number of workers was tried.",
    ),
    "no step": (
        verdict(0, (0, 8.0, 1.0), (1, 8.0, 1.0), (2, 4.0, 1.0), (4, 4.1, 1.0), has_step=False),
        "No step was given, so nobody waits. 2 workers are best, a batch every 4.0 ms; "
        "with 4 no more.",
    ),
}


@pytest.mark.parametrize(("said", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict(said, expected):
    assert said == expected


def test_other_numbers_are_tried_until_more_do_not_help(monkeypatch):
    """What each number would give is scripted; which are tried is ours."""
    from pytorch_lab.dataloader import times

    def tried(own, milliseconds, shares=None):
        asked = []

        def one(_bench, workers):
            asked.append(workers)
            return Trial(workers, milliseconds[workers], (shares or {}).get(workers, 0.9))

        monkeypatch.setattr(times, "try_one", one)
        got = times._tried(None, Trial(own, milliseconds[own], (shares or {}).get(own, 0.9)), None)
        assert own in {trial.workers for trial in got}
        return asked

    def most(count):
        return len(times.time_loader(loader_of(), batches=count).trials)

    halves = {0: 16.0, 1: 16.0, 2: 8.0, 4: 4.0, 8: 3.9, 16: 3.8}
    assert tried(0, halves) == [1, 2, 4, 8]
    assert tried(2, halves) == [0, 1, 4, 8]
    assert tried(0, halves, {4: 0.05}) == [1, 2, 4]
    assert tried(0, halves, {0: 0.05}) == []
    assert tried(3, halves | {3: 6.0}, {0: 0.05}) == [0]
    assert tried(0, halves | {1: None}) == [1]
    monkeypatch.setattr(times, "try_one", lambda _bench, workers: Trial(workers, 0.0, 0.9))
    assert [most(3), most(4)] == [1, 2]  # 0 workers; 1 has four batches


def test_a_restarted_loader_is_told():
    """The bank's 042 and 092: `next(iter(loader))` in the step."""
    loader = loader_of()
    seen = timed(loader, lambda batch: next(iter(loader)))
    (remark,) = seen.problems
    assert remark.text.startswith("The step made 4 iterators over this loader in 4 calls: ")
    assert "Make one before the loop, `for batch in loader:`" in remark.text
    assert remark.text in " ".join(str(seen).split())
    stream = iter(loader)

    def again(batch):
        nonlocal stream
        if next(stream, None) is None:
            stream = iter(loader)

    assert timed(DataLoader(range(40)), again, batches=40).problems == ()
    other = loader_of()
    assert timed(loader, lambda batch: next(iter(other))).problems == ()


def test_a_stream_that_every_worker_repeats_is_named():
    def codes(data, workers=2):
        seen = timed(DataLoader(data, batch_size=4, num_workers=workers), batches=9)
        return [one.code for one in seen.problems]

    assert codes(Stream()) == ["repeated"]
    assert codes(Stream(), workers=1) == []
    assert codes(Stream(shared=True)) == []


class Zeros(IterableDataset):
    def __iter__(self):
        return iter([torch.zeros(2)] * 12)


def test_equal_items_are_no_repetition():
    seen = timed(DataLoader(Zeros(), batch_size=2, num_workers=2))
    assert seen.problems == ()


def test_other_remarks():
    def codes(loader, **options):
        return {one.code for one in timed(loader, lambda batch: None, **options).remarks}

    assert "ended" in codes(loader_of(), batches=5)
    assert "ended" not in codes(loader_of(), batches=4)
    assert "pinned" in codes(loader_of(pin_memory=True))
    with pytest.warns(UserWarning, match="will create 40 worker"):
        many = loader_of(num_workers=40)
    crowded = remarks_on(Ran(many, 40, True, (), (), {}, 0, False), 2)
    assert [one.code for one in crowded] == ["crowded"]


def test_memory_of_each_worker_where_proc_tells_it():
    (own,) = timed(loader_of(num_workers=1)).memory
    assert own.worker == 0
    assert 0 < own.own_bytes <= own.share_bytes


def test_the_text(golden):
    batches = tuple(
        BatchTimes(
            k, k % 2, (10.0 * k, 10.0 * k + 14), (10.0 * k + 14, 10.0 * k + 16), None,
            (10.0 * k + 9, 10.0 * k + 17), None, (10.0 * k + 17, 10.0 * k + 19),
        )
        for k in range(6)
    )  # fmt: skip
    rows = trials((0, 18.0, 0.89), (2, 10.0, 0.8), (4, 5.2, 0.6))
    seen = LoaderTimeline(
        "DataLoader(Slow of 400 samples, batch_size=8, num_workers=2)",
        2, 2, True, batches, 2, trials=(*rows, Trial(8, None, None, trouble="It broke.")),
    )  # fmt: skip
    golden("dataloader_timeline", str(seen))
    assert all(len(line) <= 80 for line in str(seen).splitlines())
    assert seen.to_dict()["wait_share"] == seen.wait_share


# ------------------------------------------------------------------------------- refused

REFUSED = {
    "no loader": ((range(3),), {}, "expected a DataLoader, got 'range'"),
    "an iterator": ((iter(loader_of()),), {}, "give the loader itself and not its iterator"),
    "no step": ((loader_of(), 3), {}, "expected a function, got 3"),
    "no batches": ((loader_of(),), {"batches": 0}, "expected `batches` to be whole numbers from 1"),
    "half a worker": ((loader_of(),), {"workers": [0.5]}, "expected `workers` to be whole numbers"),
    "a used-up sampler": (
        (DataLoader(range(3), sampler=(i for i in range(3))),), {},
        "expected a sampler that can be copied",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "options", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(given, options, says):
    with pytest.raises(UsageError) as caught:
        time_loader(*given, **options)
    assert says in str(caught.value)


def test_a_step_that_raises_keeps_its_error():
    def step(batch):
        raise KeyError("no such key")

    with pytest.raises(ModelError, match="the step raised KeyError: 'no such key'") as caught:
        timed(loader_of(num_workers=1), step)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_trial_that_fails_is_a_row_with_its_reason():
    class Fussy(Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, index):
            if get_worker_info() is not None:
                raise ValueError("not in a worker")
            return index

    seen = timed(DataLoader(Fussy()), lambda batch: None, workers=(1,))
    assert seen.trials[1].batch_ms is None
    assert "got ValueError in worker 0" in seen.trials[1].trouble
    with pytest.raises(LoaderError, match="not in a worker"):
        timed(DataLoader(Fussy(), num_workers=1))


def test_sequential_stays_sequential():
    assert isinstance(loader_of().sampler, SequentialSampler)
