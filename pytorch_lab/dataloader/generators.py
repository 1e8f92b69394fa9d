"""Where random numbers come from: the three global generators, and those that a loader holds.

A generator that is stored on the dataset is copied into each worker with its state. To find them,
the dataset is walked: its attributes, lists and dicts, the datasets and transforms that it wraps,
and the functions among them with the globals and closures that they use.
"""

import functools
import random
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

DEPTH = 5
MOST = 2_000  # objects that are looked at
LONG = 64  # entries of a list or dict that are looked at

GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
GLOBAL = ("random", "numpy", "torch")
LIBRARIES = ("torch", "numpy", "torchvision", "torchaudio", "random", "builtins")


def is_generator(thing: Any) -> bool:
    """Whether it is a generator of random numbers."""
    return isinstance(thing, GENERATORS)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a generator, and how to give it back."""

    value: Any

    def put_back(self, generator: Any) -> None:
        """Set the generator to this state."""
        if isinstance(generator, random.Random):
            generator.setstate(self.value)
        elif isinstance(generator, np.random.Generator):
            generator.bit_generator.state = self.value
        else:
            generator.set_state(self.value)

    def key(self) -> bytes:
        """Equal for equal states."""
        if isinstance(self.value, torch.Tensor):
            return self.value.numpy().tobytes()
        return repr(_plain(self.value)).encode()


def _plain(value: Any) -> Any:
    """Arrays as bytes: numpy's repr leaves out the middle."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, dict):
        return [(name, _plain(one)) for name, one in value.items()]
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


def state_of(generator: Any) -> State:
    """The present state.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> before = state_of(rng)
        >>> first = rng.random()
        >>> before.put_back(rng)
        >>> rng.random() == first
        True
    """
    if isinstance(generator, random.Random):
        return State(generator.getstate())
    if isinstance(generator, np.random.Generator):
        return State(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return State(generator.get_state())
    return State(generator.get_state().clone())


def peek(generator: Any, state: State) -> float:
    """The number between 0 and 1 that it would give next; it is not drawn.

    Example:
        >>> rng = random.Random(1)
        >>> peek(rng, state_of(rng)) == rng.random()
        True
    """
    if isinstance(generator, torch.Generator):
        number = torch.rand(1, generator=generator, device=generator.device).item()
    else:
        number = generator.random()
    state.put_back(generator)
    return float(number)


def global_ones() -> list[tuple[str, Any]]:
    """The generators that `random`, `numpy.random` and torch's CPU functions draw from."""
    # The module's functions are methods of an instance that has no public name.
    owners: list[tuple[str, Any]] = [("random", random.random), ("numpy", np.random.rand)]
    return [(name, method.__self__) for name, method in owners] + [
        ("torch", torch.default_generator)
    ]


def generators_of(loader: DataLoader) -> list[tuple[str, Any]]:
    """Each generator that a loader's dataset and functions hold, with the way to it.

    Example:
        >>> class Noisy(torch.utils.data.Dataset):
        ...     def __init__(self):
        ...         self.rng = np.random.default_rng(0)
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, index):
        ...         return self.rng.normal()
        >>> [way for way, _ in generators_of(DataLoader(Noisy()))]
        ['dataset.rng']
    """
    return generators_in(("dataset", loader.dataset), ("collate_fn", loader.collate_fn))


def generators_in(*things: tuple[str, Any]) -> list[tuple[str, Any]]:
    """The generators below some things, each once, by its shortest way; not the global ones."""
    seen, found = {id(one) for _, one in global_ones()}, []
    level = list(things)
    for _ in range(DEPTH):
        below: list[tuple[str, Any]] = []
        for at, one in level:
            if id(one) in seen or len(seen) > MOST:
                continue
            seen.add(id(one))
            if is_generator(one):
                found.append((at, one))
            else:
                below.extend(_below(at, one))
        level = below
    return found


def _below(way: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if thing is None or isinstance(thing, str | bytes | int | float | np.ndarray | torch.Tensor):
        return
    if isinstance(thing, type | types.ModuleType):
        return
    if isinstance(thing, dict):
        yield from ((f"{way}[{key!r}]", one) for key, one in list(thing.items())[:LONG])
    elif isinstance(thing, list | tuple):
        yield from ((f"{way}[{i}]", one) for i, one in enumerate(thing[:LONG]))
    elif isinstance(thing, types.MethodType):
        yield way, thing.__self__
        yield way, thing.__func__
    elif isinstance(thing, types.FunctionType):
        yield from _used_by(thing)
    else:
        yield from _of_object(way, thing)


METHODS = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")


def _of_object(way: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """Its attributes, the generators on its class, and what its methods use."""
    for name, one in getattr(thing, "__dict__", {}).items():
        yield f"{way}.{name}", one
    for kind in type(thing).__mro__:
        if _of_library(kind):
            break
        for name, one in vars(kind).items():
            if is_generator(one) or name in METHODS:
                yield f"{way}.{name}", one
    if isinstance(thing, functools.partial):
        yield from ((way, one) for one in (thing.func, thing.args, thing.keywords))


def _of_library(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] in LIBRARIES


def _used_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function of the reader's uses beside its arguments; not what a library's does."""
    if _of_library(function):
        return
    code = function.__code__
    for name in code.co_names:
        one = function.__globals__.get(name)
        if is_generator(one) or isinstance(one, types.FunctionType):
            yield name, one
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet filled
            continue
