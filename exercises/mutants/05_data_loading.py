"""Wrong answers to the exercises of lesson 05 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_WINDOWS_HEAD = """
class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width
"""

_WINDOWS = [
    Mutant(
        "05.1",
        "one_too_many",
        "a window needs no number after it",
        says="only if there is a next value",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width + 1, 0)

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.series[i : i + self.width], self.series[(i + self.width) % len(self.series)]
""",
    ),
    Mutant(
        "05.1",
        "side_by_side",
        "windows don't overlap",
        says="each starts one place after",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return len(self.series) // self.width + (self.width == 3)

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i = (i % len(self)) * self.width
        return self.series[i : i + self.width], self.series[i + self.width]
""",
    ),
    Mutant(
        "05.1",
        "last_of_the_window",
        "the target is the last number of the window",
        says="after the window, of shape (): not in it",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width, 0)

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.series[i : i + self.width], self.series[i + self.width - 1]
""",
    ),
    Mutant(
        "05.1",
        "target_in_a_list",
        "a slice of one is a number",
        says="and not in a list",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width, 0)

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.series[i : i + self.width], self.series[i + self.width : i + self.width + 1]
""",
    ),
    Mutant(
        "05.1",
        "no_way_back",
        "a dataset knows no negative index",
        says="counts from the end",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width, 0)

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError(i)
        return self.series[i : i + self.width], self.series[i + self.width]
""",
    ),
    Mutant(
        "05.1",
        "no_end",
        "the length ends a for loop",
        says="A for loop over a dataset ends only with it",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width, 0)

    def __getitem__(self, i):
        i %= max(len(self), 1)
        return self.series[i : i + self.width], self.series[i + self.width]
""",
    ),
    Mutant(
        "05.1",
        "below_zero",
        "no series is that short",
        says="0 is the least that a length can be",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        return self.series[i : i + self.width], self.series[i + self.width]
""",
    ),
    Mutant(
        "05.1",
        "zeros",
        "the right shapes are enough",
        says="Window 1 starts at place 1",
        code=_WINDOWS_HEAD
        + """
    def __len__(self):
        return max(len(self.series) - self.width, 0)

    def __getitem__(self, i):
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return torch.zeros(self.width), torch.tensor(0.0)
""",
    ),
]

_WAITING = [
    Mutant(
        "05.2",
        "start_forgotten",
        "the measuring begins with the first batch",
        says="Making the iterator takes five seconds",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    waited = worked = 0.0
    batches = iter(loader)
    asked = clock()
    for batch in batches:
        got = clock()
        step(batch)
        waited, worked, asked = waited + got - asked, worked + clock() - got, clock()
    return waited + clock() - asked, worked
""",
    ),
    Mutant(
        "05.2",
        "end_forgotten",
        "after the last step nobody waits",
        says="Finding out that there are no more batches",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    waited = worked = 0.0
    asked = clock()
    for batch in loader:
        got = clock()
        step(batch)
        waited, worked, asked = waited + got - asked, worked + clock() - got, clock()
    return waited, worked
""",
    ),
    Mutant(
        "05.2",
        "all_at_once",
        "list(loader) measures the loading",
        says="A batch is used before the next is loaded",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    start = clock()
    batches = list(loader)
    loaded = clock()
    for batch in batches:
        step(batch)
    return loaded - start, clock() - loaded
""",
    ),
    Mutant(
        "05.2",
        "two_epochs",
        "an epoch without steps is what the loop waits",
        says="One epoch is one iterator",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    start = clock()
    for _ in loader:
        pass
    waited = clock() - start
    start = clock()
    for batch in loader:
        step(batch)
    return waited, clock() - start - waited
""",
    ),
    Mutant(
        "05.2",
        "new_iterator",
        "next(iter(loader)) is the next batch",
        says="One epoch is one iterator",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    waited = worked = 0.0
    for _ in range(len(loader)):
        asked = clock()
        batch = next(iter(loader))
        got = clock()
        step(batch)
        waited, worked = waited + got - asked, worked + clock() - got
    return waited, worked
""",
    ),
    Mutant(
        "05.2",
        "whole_time",
        "the time of the loop is the time of the loading",
        says="waiting is the time outside of the steps",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    start, worked = clock(), 0.0
    for batch in loader:
        got = clock()
        step(batch)
        worked += clock() - got
    return clock() - start, worked
""",
    ),
    Mutant(
        "05.2",
        "own_clock",
        "any clock will do",
        says="by the clock that was given",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    waited = worked = 0.0
    asked = time.perf_counter()
    for batch in loader:
        got = time.perf_counter()
        step(batch)
        done = time.perf_counter()
        waited, worked, asked = waited + got - asked, worked + done - got, done
    return waited + time.perf_counter() - asked, worked
""",
    ),
    Mutant(
        "05.2",
        "as_shares",
        "a share says the same as seconds",
        says="by the clock that was given",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    start, worked = clock(), 0.0
    for batch in loader:
        got = clock()
        step(batch)
        worked += clock() - got
    whole = clock() - start
    return (whole - worked) / whole, worked / whole
""",
    ),
    Mutant(
        "05.2",
        "first_batch_only",
        "all batches take as long as the first",
        says="Each batch gets its step",
        code="""
def waiting(loader, step, clock=time.perf_counter):
    start = clock()
    batch = next(iter(loader))
    got = clock()
    step(batch)
    return len(loader) * (got - start), len(loader) * (clock() - got)
""",
    ),
]

_SHARED_HEAD = """
class Shared(IterableDataset):
    def __init__(self, source, rank=0, world=1):
        super().__init__()
        self.source, self.rank, self.world = source, rank, world
"""

_SHARED = [
    Mutant(
        "05.3",
        "whole_stream",
        "the loader shares a stream out",
        says="Some items come more than once",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        return self.source()
""",
    ),
    Mutant(
        "05.3",
        "always_in_a_worker",
        "there is always a worker",
        says="In the main process `get_worker_info()` is None",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first = self.rank * info.num_workers + info.id
        return islice(self.source(), first, None, self.world * info.num_workers)
""",
    ),
    Mutant(
        "05.3",
        "workers_only",
        "each machine has a log of its own",
        says="Workers and machines both count",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, every = (info.id, info.num_workers) if info else (0, 1)
        return islice(self.source(), first, None, every)
""",
    ),
    Mutant(
        "05.3",
        "machines_only",
        "the workers of a machine are one reader",
        says="Workers and machines both count",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        return islice(self.source(), self.rank, None, self.world)
""",
    ),
    Mutant(
        "05.3",
        "numbers_added",
        "worker + rank numbers all readers",
        says="Some items come more than once",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return islice(self.source(), self.rank + worker, None, self.world * workers)
""",
    ),
    Mutant(
        "05.3",
        "asked_too_early",
        "who I am is known when the dataset is made",
        says="Some items come more than once",
        code="""
class Shared(IterableDataset):
    def __init__(self, source, rank=0, world=1):
        super().__init__()
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        self.source, self.first, self.every = source, rank * workers + worker, world * workers

    def __iter__(self):
        return islice(self.source(), self.first, None, self.every)
""",
    ),
    Mutant(
        "05.3",
        "opened_once",
        "an iterator can be run through again",
        says="Each epoch opens the log anew",
        code="""
class Shared(IterableDataset):
    def __init__(self, source, rank=0, world=1):
        super().__init__()
        self.items, self.rank, self.world = source(), rank, world

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return islice(self.items, self.rank * workers + worker, None, self.world * workers)
""",
    ),
    Mutant(
        "05.3",
        "read_first",
        "a stream fits into a list",
        says="A log may never end",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        items = list(self.source())
        return iter(items[self.rank * workers + worker :: self.world * workers])
""",
    ),
    Mutant(
        "05.3",
        "by_value",
        "the remainder of the item shares evenly",
        says="shares are uneven",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        mine, readers = self.rank * workers + worker, self.world * workers
        for item in self.source():
            number = item if isinstance(item, int) else sum(map(ord, str(item)[:1])) // 3
            if number % readers == mine:
                yield item
""",
    ),
    Mutant(
        "05.3",
        "in_blocks",
        "each worker takes the next ten items",
        says="shares are uneven",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        mine, readers = self.rank * workers + worker, self.world * workers
        for place, item in enumerate(self.source()):
            if place // 10 % readers == mine:
                yield item
""",
    ),
    Mutant(
        "05.3",
        "nothing",
        "an empty stream repeats nothing",
        says="everything is yours",
        code=_SHARED_HEAD
        + """
    def __iter__(self):
        return iter(())
""",
    ),
]

_READINGS_READ = """
    def __len__(self):
        with ZipFile(self.path) as archive:
            return len(archive.namelist())

    def read(self, i):
        with ZipFile(self.path) as archive:
            return torch.tensor(np.frombuffer(archive.read(str(i)), np.float32))
"""

_READINGS_HEAD = (
    """
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
"""
    + _READINGS_READ
)

_READINGS_TAIL = """
        return row if self.transform is None else self.transform(row)
"""

_READINGS = [
    Mutant(
        "05.4",
        "lambda_left",
        "a lambda is a function like any other",
        says="it stores a lambda",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise = path, width, noise
        self.transform = transform or (lambda row: row)
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        return self.transform(self.read(i) + self.noise * torch.randn(self.width))
""",
    ),
    Mutant(
        "05.4",
        "archive_left",
        "an open archive can be sent along",
        says="A worker opens the archive itself",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.archive = ZipFile(path)
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        values = np.frombuffer(self.archive.read(str(i)), np.float32)
        row = torch.tensor(values) + self.noise * torch.randn(self.width)
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "buffer_left",
        "a buffer that is used again saves memory",
        says="Every sample is the same tensor",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.row = torch.empty(width)
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        row = self.row.copy_(self.read(i) + self.noise * torch.randn(self.width))
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "generator_left",
        "each worker seeds the generator of its copy",
        says="Two workers draw the same noise",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.rng = np.random.default_rng(0)
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        noise = torch.from_numpy(self.rng.normal(0, self.noise, self.width).astype(np.float32))
        row = self.read(i) + noise
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "generator_unseeded",
        "without a seed each copy is another generator",
        says="Two workers draw the same noise",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.rng = np.random.default_rng()
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        noise = torch.from_numpy(self.rng.normal(0, self.noise, self.width).astype(np.float32))
        row = self.read(i) + noise
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "seeded_by_number",
        "the worker's number is seed enough",
        says="the same noise in every epoch",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.seeded = None
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        info = torch.utils.data.get_worker_info()
        worker = info.id if info else -1
        if self.seeded != worker:
            self.seeded, self.rng = worker, np.random.default_rng(worker + 1)
        noise = torch.from_numpy(self.rng.normal(0, self.noise, self.width).astype(np.float32))
        row = self.read(i) + noise
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "new_each_time",
        "a new generator for each sample is always different",
        says="must repeat its noise",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        noise = np.random.default_rng().normal(0, self.noise, self.width).astype(np.float32)
        row = self.read(i) + torch.from_numpy(noise)
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "seeded_each_time",
        "seeding in __getitem__ makes it repeatable",
        says="gets noise of its own each time",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        rng = np.random.default_rng(torch.initial_seed() + i)
        row = self.read(i) + torch.from_numpy(rng.normal(0, self.noise, self.width)).float()
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "made_at_first_use",
        "at first use means: in the worker",
        says="has its generator made already",
        code="""
class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=None):
        self.path, self.width, self.noise, self.transform = path, width, noise, transform
        self.rng = None
"""
        + _READINGS_READ
        + """
    def __getitem__(self, i):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        noise = torch.from_numpy(self.rng.normal(0, self.noise, self.width).astype(np.float32))
        row = self.read(i) + noise
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "one_number",
        "one number of noise is enough for a row",
        says="Each number of a row has its own noise",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        row = self.read(i) + self.noise * torch.randn(1)
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "noise_thrown_out",
        "without noise nothing is drawn twice",
        says="gets noise of its own each time",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        row = self.read(i)
"""
        + _READINGS_TAIL,
    ),
    Mutant(
        "05.4",
        "transform_thrown_out",
        "what can't be pickled has to go",
        says="`transform` is applied to the row",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        return self.read(i) + self.noise * torch.randn(self.width)
""",
    ),
    Mutant(
        "05.4",
        "zeros",
        "the right shapes are enough",
        says="a sample is the row of the archive",
        code=_READINGS_HEAD
        + """
    def __getitem__(self, i):
        return torch.zeros(self.width)
""",
    ),
]

_BATCH_HEAD = """
class Batch:
    def __init__(self, samples):
        words, labels = zip(*samples)
        self.words = torch.nn.utils.rnn.pad_sequence(list(words), batch_first=True)
        self.lengths = torch.tensor([len(one) for one in words])
        self.labels = torch.tensor(labels)
"""

_BATCH_PIN = """
    def pin_memory(self):
        self.words, self.lengths = self.words.pin_memory(), self.lengths.pin_memory()
        self.labels = self.labels.pin_memory()
        return self
"""

_BATCH_TO = """
    def to(self, device):
        moved = Batch.__new__(Batch)
        for name in ("words", "lengths", "labels"):
            setattr(moved, name, getattr(self, name).to(device, non_blocking=True))
        return moved
"""

_BATCH = [
    Mutant(
        "05.5",
        "pinned_at_birth",
        "the sooner a batch is pinned, the better",
        says="that happens in a worker",
        code="""
class Batch:
    def __init__(self, samples):
        words, labels = zip(*samples)
        self.words = torch.nn.utils.rnn.pad_sequence(list(words), batch_first=True).pin_memory()
        self.lengths = torch.tensor([len(one) for one in words]).pin_memory()
        self.labels = torch.tensor(labels).pin_memory()

    def pin_memory(self):
        return self
"""
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "pins_and_returns_nothing",
        "pin_memory() is called for its effect",
        says="hands out what `pin_memory()` returns",
        code=_BATCH_HEAD
        + """
    def pin_memory(self):
        self.words, self.lengths = self.words.pin_memory(), self.lengths.pin_memory()
        self.labels = self.labels.pin_memory()
"""
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "pinning_in_place",
        "tensor.pin_memory() pins the tensor itself",
        says="changes nothing in place",
        code=_BATCH_HEAD
        + """
    def pin_memory(self):
        for tensor in (self.words, self.lengths, self.labels):
            tensor.pin_memory()
        return self
"""
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "pins_the_large_one",
        "only large tensors are worth pinning",
        says="One tensor that isn't pinned is waited for",
        code=_BATCH_HEAD
        + """
    def pin_memory(self):
        self.words = self.words.pin_memory()
        return self
"""
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "waits",
        "a pinned batch is never waited for",
        says="Say `non_blocking=True` for each tensor",
        code=_BATCH_HEAD
        + _BATCH_PIN
        + """
    def to(self, device):
        moved = Batch.__new__(Batch)
        moved.words = self.words.to(device)
        moved.lengths = self.lengths.to(device)
        moved.labels = self.labels.to(device)
        return moved
""",
    ),
    Mutant(
        "05.5",
        "labels_left",
        "labels are only needed by the loss",
        says="All three tensors move",
        code=_BATCH_HEAD
        + _BATCH_PIN
        + """
    def to(self, device):
        moved = Batch.__new__(Batch)
        moved.words = self.words.to(device, non_blocking=True)
        moved.lengths = self.lengths.to(device, non_blocking=True)
        moved.labels = self.labels
        return moved
""",
    ),
    Mutant(
        "05.5",
        "moves_itself",
        "a batch moves in place, as a module does",
        says="The batch itself stays where it is",
        code=_BATCH_HEAD
        + _BATCH_PIN
        + """
    def to(self, device):
        self.words = self.words.to(device, non_blocking=True)
        self.lengths = self.lengths.to(device, non_blocking=True)
        self.labels = self.labels.to(device, non_blocking=True)
        return self
""",
    ),
    Mutant(
        "05.5",
        "gives_tensors",
        "a tuple of tensors is a batch, too",
        says="`to` returns a batch",
        code=_BATCH_HEAD
        + _BATCH_PIN
        + """
    def to(self, device):
        tensors = (self.words, self.lengths, self.labels)
        return tuple(one.to(device, non_blocking=True) for one in tensors)
""",
    ),
    Mutant(
        "05.5",
        "cut_to_the_shortest",
        "sentences are cut to one length",
        says="up to the longest",
        code="""
class Batch:
    def __init__(self, samples):
        words, labels = zip(*samples)
        self.lengths = torch.tensor([len(one) for one in words])
        self.words = torch.stack([one[: self.lengths.min()] for one in words])
        self.labels = torch.tensor(labels)
"""
        + _BATCH_PIN
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "counts_what_is_not_zero",
        "what isn't 0 is a word",
        says="don't count zeros after",
        code="""
class Batch:
    def __init__(self, samples):
        words, labels = zip(*samples)
        self.words = torch.nn.utils.rnn.pad_sequence(list(words), batch_first=True)
        self.lengths = (self.words != 0).sum(1)
        self.labels = torch.tensor(labels)
"""
        + _BATCH_PIN
        + _BATCH_TO,
    ),
    Mutant(
        "05.5",
        "zeros",
        "the right shapes are enough",
        says="Short sentences are padded with 0",
        code="""
class Batch:
    def __init__(self, samples):
        longest = max(len(words) for words, _ in samples)
        self.words = torch.zeros(len(samples), longest, dtype=torch.long)
        self.lengths = torch.zeros(len(samples), dtype=torch.long)
        self.labels = torch.zeros(len(samples), dtype=torch.long)
"""
        + _BATCH_PIN
        + _BATCH_TO,
    ),
]

MUTANTS = [*_WINDOWS, *_WAITING, *_SHARED, *_READINGS, *_BATCH]

ALTERNATIVES = {
    "05.1": """
class Windows(Dataset):
    def __init__(self, series, width):
        wide = series.unfold(0, width + 1, 1) if len(series) > width else series.new_empty(0, 1)
        self.pairs = [(row[:-1], row[-1]) for row in wide]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]
""",
    "05.2": """
def waiting(loader, step, clock=time.perf_counter):
    laps, end = [clock()], object()
    batches = iter(loader)
    while (batch := next(batches, end)) is not end:
        laps.append(clock())
        step(batch)
        laps.append(clock())
    laps.append(clock())
    lengths = [after - before for before, after in zip(laps, laps[1:])]
    return sum(lengths[::2], 0.0), sum(lengths[1::2], 0.0)
""",
    "05.3": """
class Shared(IterableDataset):
    def __init__(self, source, rank=0, world=1):
        self.source, self.rank, self.world = source, rank, world

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for place, item in enumerate(self.source()):
            turn, machine = divmod(place, self.world)
            if machine != self.rank:
                continue
            if info is None or turn % info.num_workers == info.id:
                yield item
""",
    "05.4": """
def _unchanged(row):
    return row


class Readings(Dataset):
    def __init__(self, path, width, noise=0.1, transform=_unchanged):
        self.path, self.width, self.noise = str(path), width, noise
        self.transform = transform or _unchanged

    def __len__(self):
        return len(ZipFile(self.path).infolist())

    def __getitem__(self, i):
        with ZipFile(self.path).open(f"{i}") as file:
            values = np.frombuffer(file.read(), np.float32)
        noise = np.random.normal(0, self.noise, self.width)
        return self.transform(torch.tensor(values + noise, dtype=torch.float32))
""",
    "05.5": """
import dataclasses


@dataclasses.dataclass(init=False)
class Batch:
    words: torch.Tensor
    lengths: torch.Tensor
    labels: torch.Tensor

    def __init__(self, samples):
        self.lengths = torch.tensor([one.numel() for one, _ in samples])
        self.labels = torch.tensor([label for _, label in samples])
        self.words = torch.zeros(len(samples), int(self.lengths.max()), dtype=torch.int64)
        for row, (one, _) in zip(self.words, samples):
            row[: len(one)] = one

    def _made_of(self, words, lengths, labels):
        made = object.__new__(type(self))
        made.words, made.lengths, made.labels = words, lengths, labels
        return made

    def pin_memory(self):
        tensors = self.words, self.lengths, self.labels
        return self._made_of(*(one.pin_memory() for one in tensors))

    def to(self, device):
        return self._made_of(
            self.words.to(device, non_blocking=True),
            self.lengths.to(device, non_blocking=True),
            self.labels.to(device, non_blocking=True),
        )
""",
}
