"""Lesson 05: stand-ins for what an exercise about loading meets, without processes or a GPU."""

import io
import pickle
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

Event = tuple[str, int]


class Shop:
    """Exercise 05.2: a loader and a step that move a clock by hand, and note what they do.

    Example:
        >>> shop = Shop(start=1.0, loads=[2.0, 3.0], end=0.5)
        >>> list(shop), shop.now
        ([0, 1], 6.5)

    Args:
        start: how long making an iterator takes.
        loads: how long each batch takes.
        end: how long it takes to find out that there are no more.
        steps: how long each step takes, in turn.
    """

    def __init__(
        self, start: float, loads: Sequence[float], end: float, steps: Sequence[float] = (1.0,)
    ) -> None:
        self.start, self.loads, self.end, self.steps = start, loads, end, steps
        self.now = 0.0
        self.events: list[Event] = []

    def __len__(self) -> int:
        return len(self.loads)

    def __iter__(self) -> Iterator[int]:
        self.now += self.start
        self.events.append(("starts", sum(kind == "starts" for kind, _ in self.events)))
        return self._batches()

    def _batches(self) -> Iterator[int]:
        for batch, seconds in enumerate(self.loads):
            self.now += seconds
            self.events.append(("loads", batch))
            yield batch
        self.now += self.end

    def step(self, batch: int) -> None:
        """Use a batch."""
        self.now += self.steps[batch % len(self.steps)]
        self.events.append(("steps", batch))

    def clock(self) -> float:
        """The time, in seconds."""
        return self.now


def sent(thing: Any) -> Any:
    """Exercise 05.4: what arrives in a worker that is started anew; raises what pickle raises.

    A class or a function goes by its name, so it must stand at the top of a module or a cell.

    Example:
        >>> sent({"rows": [1, 2]})
        {'rows': [1, 2]}
        >>> sent([lambda row: row])
        Traceback (most recent call last):
        ...
        _pickle.PicklingError: Can't pickle <lambda>: it has no name at the top of a module
    """
    named: list[Any] = []
    parcel = io.BytesIO()

    class Sender(pickle.Pickler):
        def persistent_id(self, obj: Any) -> int | None:
            if not isinstance(obj, types.FunctionType | type):
                return None
            if "<" in obj.__qualname__:
                raise pickle.PicklingError(
                    f"Can't pickle {obj.__qualname__}: it has no name at the top of a module"
                )
            named.append(obj)
            return len(named) - 1

    class Receiver(pickle.Unpickler):
        def persistent_load(self, pid: int) -> Any:
            return named[pid]

    Sender(parcel).dump(thing)
    parcel.seek(0)
    return Receiver(parcel).load()


class Journey(TorchFunctionMode):
    """Exercise 05.5: inside, pinning works without an accelerator, and moves are noted.

    Attributes:
        pinned: what `pin_memory()` gave.
        moves: of each `.to(...)` whether it was asked not to wait.

    Example:
        >>> import torch
        >>> with Journey() as journey:
        ...     here = torch.zeros(2).pin_memory()
        ...     there = here.to("meta", non_blocking=True)
        >>> journey.is_pinned(here), journey.is_pinned(there), journey.moves
        (True, False, [True])
    """

    def __init__(self) -> None:
        super().__init__()
        self.pinned: list[Tensor] = []
        self.moves: list[bool] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.pin_memory:
            self.pinned.append(args[0].clone())
            return self.pinned[-1]
        if func is Tensor.is_pinned:
            return self.is_pinned(args[0])
        if func is Tensor.to:
            self.moves.append(kwargs.get("non_blocking", any(one is True for one in args)))
        return func(*args, **kwargs)

    def is_pinned(self, tensor: Any) -> bool:
        """Whether a tensor lies in what passes here for pinned memory."""
        return any(one is tensor for one in self.pinned)
