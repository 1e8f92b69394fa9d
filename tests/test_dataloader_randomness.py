"""worker_randomness: what is drawn twice is found, and nothing is drawn by us."""

import copy
import random
from base64 import b64decode

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, get_worker_info

import pytorch_lab as lab
from pytorch_lab.dataloader import worker_randomness
from pytorch_lab.dataloader.generators import generators_of, global_ones, peek, state_of
from pytorch_lab.errors import LoaderError, UsageError

# Torch suggests as many workers as there are cores.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

MODULES_RNG = np.random.default_rng(7)


class Noisy(Dataset):
    """Each sample is what `draw` gives."""

    def __init__(self, draw, **held):
        self.draw = draw
        vars(self).update(held)

    def __len__(self):
        return 16

    def __getitem__(self, index):
        return index, torch.as_tensor(self.draw(self), dtype=torch.float64)


class Whole(Noisy):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stream(IterableDataset):
    def __init__(self):
        self.rng = random.Random(3)

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id if info else 0, 16, info.num_workers if info else 1):
            yield index + self.rng.random()


def from_stored(self):
    return self.rng.random()


def from_torchs(self):
    return torch.rand(1, generator=self.rng).item()


def from_everywhere(_self):
    return random.random() + np.random.rand() + torch.rand(1).item()  # noqa: NPY002


def from_module(_self):
    return MODULES_RNG.random()


def reseed(worker):
    get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())


def fix_numpy(worker):
    np.random.seed(worker)  # noqa: NPY002


def jitter(items):
    return torch.tensor([index for index, _ in items]) + MODULES_RNG.normal()


def nothing(_self):
    return 0.0


def loader_of(draw=from_stored, held=None, kind=Noisy, **options):
    held = {"rng": np.random.default_rng(0)} if held is None else held
    return DataLoader(kind(draw, **held), **{"batch_size": 2, "num_workers": 2} | options)


def drawn_really(loader, epochs=2):
    """What the samples of a loader hold, by epoch: the values, not the states."""
    return [torch.cat([noise for _, noise in loader]).tolist() for _ in range(epochs)]


# -------------------------------------------------------------------- what is drawn twice

CASES = {
    # name: (loader, generators that are drawn from, those with duplicates)
    "stored": (lambda: loader_of(), {"dataset.rng"}, {"dataset.rng"}),
    "stored, one worker": (lambda: loader_of(num_workers=1), {"dataset.rng"}, {"dataset.rng"}),
    "stored, no worker": (lambda: loader_of(num_workers=0), {"dataset.rng"}, set()),
    "stored, reseeded": (lambda: loader_of(worker_init_fn=reseed), {"dataset.rng"}, set()),
    "stored in a Subset": (
        lambda: DataLoader(
            Subset(loader_of().dataset, range(8)), batch_size=2, num_workers=2
        ),
        {"dataset.dataset.rng"}, {"dataset.dataset.rng"},
    ),
    "Python's": (
        lambda: loader_of(held={"rng": random.Random(1)}), {"dataset.rng"}, {"dataset.rng"},
    ),
    "numpy's old": (
        lambda: loader_of(lambda self: self.rng.rand(), {"rng": np.random.RandomState(1)}),
        {"dataset.rng"}, {"dataset.rng"},
    ),
    "torch's": (
        lambda: loader_of(from_torchs, {"rng": torch.Generator()}), {"dataset.rng"},
        {"dataset.rng"},
    ),
    "in a list": (
        lambda: loader_of(lambda self: self.all[1].random(), {"all": [0, random.Random(1)]}),
        {"dataset.all[1]"}, {"dataset.all[1]"},
    ),
    "of a module": (lambda: loader_of(from_module, {}), {"MODULES_RNG"}, {"MODULES_RNG"}),
    "of collate_fn": (
        lambda: loader_of(nothing, {}, collate_fn=jitter), {"MODULES_RNG"}, {"MODULES_RNG"},
    ),
    "a batch at once": (lambda: loader_of(kind=Whole), {"dataset.rng"}, {"dataset.rng"}),
    "a stream": (
        lambda: DataLoader(Stream(), batch_size=2, num_workers=2), {"dataset.rng"},
        {"dataset.rng"},
    ),
    "single samples": (lambda: loader_of(batch_size=None), {"dataset.rng"}, {"dataset.rng"}),
    "global": (lambda: loader_of(from_everywhere, {}), {"numpy", "random", "torch"}, set()),
    "global, seeded again": (
        lambda: loader_of(from_everywhere, {}, worker_init_fn=fix_numpy),
        {"numpy", "random", "torch"}, {"numpy"},
    ),
    "nothing": (lambda: loader_of(nothing, {}), set(), set()),
    "held and not used": (lambda: loader_of(nothing), set(), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_twice_is_found(name):
    make, streams, twice = CASES[name]
    seen = worker_randomness(make(), samples=3)
    assert set(seen.streams) == streams
    assert {one.stream for one in seen.duplicates} == twice
    assert {one.code for one in seen.problems} == ({"duplicated"} if twice else set())
    assert all(len(line) <= 80 for line in str(seen).splitlines())


@pytest.mark.parametrize("persistent", [False, True])
def test_the_samples_themselves_agree(persistent):
    """The obvious way: look at what the samples hold. Workers agree; epochs do unless kept."""
    loader = loader_of(persistent_workers=persistent)
    first, second = drawn_really(loader)
    assert first[:2] == first[2:4]  # worker 0 against worker 1
    assert (first == second) is not persistent
    seen = worker_randomness(loader, samples=4)
    cells = {(one.epoch, one.worker, one.sample): one for one in seen.draws}
    for sample in range(4):
        assert cells[0, 0, sample].same == cells[0, 1, sample].same is not None
        assert (cells[0, 0, sample].same == cells[1, 0, sample].same) is not persistent
    # The value is what the generator gives first: for `rng.random()` the very sample.
    assert [cells[0, 0, k].value for k in (0, 1)] == first[:2]
    text = seen.problems[0].text
    assert ("and the same ones in every epoch" in text) is not persistent


def test_epochs_alone():
    seen = worker_randomness(loader_of(num_workers=1), samples=2)
    assert "`dataset.rng`: the same numbers are drawn in every epoch." in seen.verdict
    assert worker_randomness(loader_of(num_workers=1), samples=2, epochs=1).problems == ()


class Reseeding(Noisy):
    def __getitem__(self, index):
        random.seed(5)
        return index, random.random()


def test_a_seed_in_every_sample():
    seen = worker_randomness(loader_of(nothing, {}, kind=Reseeding, num_workers=0), epochs=1)
    assert "several samples get the same numbers" in seen.verdict
    assert "seed once, where it is made" in seen.verdict


def test_without_workers_numpy_is_not_seeded_by_torch():
    def codes(workers):
        seen = worker_randomness(loader_of(from_everywhere, {}, num_workers=workers), samples=1)
        return [one.code for one in seen.remarks]

    assert codes(0) == ["unseeded"]
    assert codes(1) == []


class Repeated(IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_a_stream_that_every_worker_repeats_is_named():
    seen = worker_randomness(DataLoader(Repeated(), batch_size=2, num_workers=3))
    assert seen.verdict.startswith("3 workers each yield the whole stream: every item comes 3 ")
    assert worker_randomness(DataLoader(Repeated(), batch_size=2)).problems == ()


def test_what_is_held_and_not_used_is_named_as_such():
    seen = worker_randomness(loader_of(nothing))
    assert seen.unused == ("dataset.rng",)
    assert "Not drawn from: dataset.rng." in str(seen)
    assert seen.verdict == "Nothing random happens in this loader's dataset and functions."


# -------------------------------------------------------------------- left as it was


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_is_drawn_from_the_readers_generators(workers):
    sampling = torch.Generator().manual_seed(4)
    loader = loader_of(num_workers=workers, shuffle=True, generator=sampling)
    ours = [loader.dataset.rng, sampling, MODULES_RNG, *(one for _, one in global_ones())]
    before = [state_of(one).key() for one in ours]
    twin = copy.deepcopy(loader)
    worker_randomness(loader)
    assert [state_of(one).key() for one in ours] == before
    assert repr(next(iter(loader))) == repr(next(iter(twin)))


@pytest.mark.parametrize(
    "generator",
    [random.Random(1), np.random.default_rng(1), np.random.RandomState(1), torch.Generator()],
    ids=lambda one: type(one).__name__,
)
def test_a_peek_is_what_comes_next(generator):
    state = state_of(generator)
    expected = peek(generator, state)
    assert state_of(generator).key() == state.key()
    drawn = (
        torch.rand(1, generator=generator).item()
        if isinstance(generator, torch.Generator)
        else generator.random()
    )
    assert drawn == expected
    assert state_of(generator).key() != state.key()
    state.put_back(generator)
    assert state_of(generator).key() == state.key()


def test_the_global_generators_are_the_ones_that_the_functions_use():
    before = [state_of(one).key() for _, one in global_ones()]
    from_everywhere(None)
    after = [state_of(one).key() for _, one in global_ones()]
    assert all(one != another for one, another in zip(before, after, strict=True))


class Looping(Noisy):
    """Holds itself, a library's module and much else."""


def test_the_walk_ends():
    data = Looping(nothing, rng=random.Random(2), numbers=list(range(10_000)), lib=np)
    data.me, data.deep = data, {"a": [{"b": data}]}
    assert [way for way, _ in generators_of(DataLoader(data))] == ["dataset.rng"]


# -------------------------------------------------------------------- words and bank


def test_the_text(golden):
    torch.manual_seed(0)
    golden("dataloader_randomness", str(worker_randomness(loader_of(), samples=4)))


def test_it_is_plain_and_drawn_by_show():
    seen = worker_randomness(loader_of(), samples=2)
    assert seen.to_dict()["draws"][0]["stream"] == "dataset.rng"
    widget = lab.show(seen)
    assert [column["lit"] for column in widget.state["streams"][0]["columns"]] == [True, True]
    assert str(widget) == str(seen)
    assert "<img alt=" in widget.to_html()
    assert widget.to_html() == lab.show(seen).to_html()
    drawn = b64decode(widget.to_html().partition("base64,")[2].partition('"')[0]).decode()
    for words in ("dataset.rng", "sample (=: all the same)", "= 0", "epoch 1, worker 1"):
        assert words in drawn
    quiet = lab.show(worker_randomness(loader_of(nothing, {})))
    assert "<img" not in quiet.to_html()
    with pytest.raises(UsageError, match="expected the WorkerRandomness alone"):
        lab.show(seen, 3)


REFUSED = {
    "no loader": ((range(3),), {}, "worker_randomness(loader) expected a DataLoader, got 'range'"),
    "no samples": (
        (loader_of(),),
        {"samples": 0},
        "expected `samples` to be a whole number",
    ),
    "no epochs": ((loader_of(),), {"epochs": None}, "expected `epochs` to be a whole number"),
}


@pytest.mark.parametrize(("given", "options", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(given, options, says):
    with pytest.raises(UsageError) as caught:
        worker_randomness(*given, **options)
    assert says in str(caught.value)


def test_a_dataset_that_raises_is_told():
    def broken(_self):
        raise KeyError("colour")

    with pytest.raises(LoaderError, match=r"dataset\[0\], got KeyError in worker 0 \(.*'colour'"):
        worker_randomness(loader_of(broken))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (np.random.default_rng(0), "noise = np.random.default_rng(torch.initial_seed())"),
        (random.Random(0), "noise = random.Random(torch.initial_seed())"),
        (torch.Generator(), "noise = torch.Generator().manual_seed(torch.initial_seed())"),
    ],
)
def test_the_cure_is_of_the_kind_and_name_of_the_generator(made, says):
    def draw(self):
        if isinstance(self.noise, torch.Generator):
            return torch.rand(1, generator=self.noise).item()
        return self.noise.random()

    found = worker_randomness(loader_of(draw, {"noise": made}), samples=4)
    assert f"`{says}`" in found.verdict
    assert "`get_worker_info().dataset`" in found.verdict
