"""What goes wrong in a loader, explained: the cause, and the cure.

A worker is another process. On Linux before Python 3.14 it is forked and has everything; on macOS,
on Windows and with `multiprocessing_context="spawn"` it is started anew, gets the dataset and the
functions by pickle, and imports what pickle only names. A class of a notebook cell can be named but
not imported, and a lambda not even named.
"""

import io
import multiprocessing
import pickle
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from pytorch_lab import words
from pytorch_lab.dataloader.inside import Failure
from pytorch_lab.errors import LabError, LoaderError, UsageError

CURE_MODULE = (
    "move it to a .py file beside the notebook and import it from there; "
    'or use num_workers=0; or, on Linux, multiprocessing_context="fork"'
)

# What an error of torch says, and what it means.
KNOWN: list[tuple[str, str]] = [
    (
        r"prefetch_factor option could only be specified",
        "`prefetch_factor` says how many batches each worker prepares ahead, and with "
        "num_workers=0 there is none: leave it out, or set num_workers to at least 1.",
    ),
    (
        r"persistent_workers option needs num_workers > 0",
        "`persistent_workers=True` keeps the worker processes for the next epoch, and with "
        "num_workers=0 there are none: leave it out, or set num_workers to at least 1.",
    ),
    (
        r"multiprocessing_context can only be used with",
        "`multiprocessing_context` says how worker processes start, and with num_workers=0 none "
        "does: leave it out, or set num_workers to at least 1.",
    ),
    (
        r"timed out after ([\d.]+) seconds",
        "no worker delivered a batch within `timeout`: a sample takes too long or hangs; "
        "look at it with num_workers=0.",
    ),
    (
        r"is killed by signal: (Killed|\w+)",
        "the system ended a worker process, most often because the memory was full: use fewer "
        "workers, smaller batches, or arrays in place of lists of Python objects.",
    ),
    (
        r"exited unexpectedly",
        "a worker process ended without a word of its own: a crash in native code, os._exit, too "
        "little memory, or something that it could not import. With num_workers=0 the same code "
        "runs in this process, where its error can be read.",
    ),
    (
        r"before the\s+current process has finished its\s+bootstrapping phase",
        "the script is imported by each worker that it starts, and would start workers again: put "
        'what runs behind `if __name__ == "__main__":`.',
    ),
    (
        r"stack expects each tensor to be equal size",
        "the samples of a batch have different shapes, and the default collate function can only "
        "stack equal ones: give the loader a `collate_fn` that pads, or make the shapes equal.",
    ),
    (
        r"default_collate: batch must contain tensors",
        "the default collate function knows tensors, arrays, numbers, strings, and lists, tuples "
        "and dicts of them: give the loader a `collate_fn` for samples of another kind.",
    ),
    (
        r"object has no attribute 'numel'",
        "some samples of a batch are tensors and others are not: return the same kind for all, or "
        "give the loader a `collate_fn`.",
    ),
    (
        r"each element in list of batch should be of equal size",
        "the samples of a batch have different lengths: give the loader a `collate_fn` that pads.",
    ),
    (
        r"Trying to resize storage that is not resizable",
        "a sample is a view of a larger tensor or has another shape than its neighbours: return "
        "`sample.clone()`, or give the loader a `collate_fn`.",
    ),
    (
        r"Cannot re-initialize CUDA in forked subprocess",
        "the dataset uses the GPU inside a forked worker: keep its tensors on the CPU and move the "
        "batch in the loop.",
    ),
]


def explain(error: BaseException, loader: DataLoader | None = None) -> str:
    """An error of a loader in words: what it means, and what to do.

    Example:
        >>> try:
        ...     DataLoader([1, 2], prefetch_factor=4)
        ... except ValueError as error:
        ...     print(explain(error)[:60])
        ValueError: `prefetch_factor` says how many batches each wor

    Args:
        error: what constructing or iterating raised.
        loader: looked at for what cannot be sent to a worker, if the error is about that.

    Returns:
        A sentence or two; the error's own last line where we know nothing better.
    """
    if isinstance(error, LoaderError):
        return str(error)
    message = words.message_of(error)
    name = type(error).__name__
    about_pickle = "pickle" in message.lower() or isinstance(error, pickle.PicklingError)
    ended = "exited unexpectedly" in message and _starts_anew(loader)
    if loader is not None and (about_pickle or ended):
        cannot = unsendable(loader)
        if cannot:
            return f"{name}: {cannot[0]}"
    found = _known(f"{message} {words.message_of(error.__cause__ or error)}")
    if found:
        return f"{name}: {found}"
    if about_pickle or "Can't get attribute" in message:
        return f"{name}: {words.shortened(message)}: it cannot be sent to a worker; {CURE_MODULE}."
    lines = message.strip().splitlines()
    return f"{name}: {words.shortened(lines[-1])}" if lines else name


def _starts_anew(loader: DataLoader | None) -> bool:
    """Whether workers import everything again; a fork has it all, and died of something else."""
    context: Any = getattr(loader, "multiprocessing_context", None) or multiprocessing
    return context.get_start_method() != "fork"


def _known(message: str) -> str:
    return next((meaning for text, meaning in KNOWN if re.search(text, message)), "")


def told(failure: Failure) -> LoaderError:
    """An error of the dataset or of `collate_fn`, with its place."""
    who = "in the main process" if failure.worker is None else f"in worker {failure.worker}"
    known = _known(failure.message)
    means = f" That means: {known}" if known else ""
    error = LoaderError(
        f"expected a sample from {failure.where}, got {failure.type} {who} ({failure.place}): "
        f"{words.shortened(failure.message)}.{means}"
    )
    error.__cause__ = failure.error
    return error


def start_method(loader: DataLoader) -> str:
    """How the workers of a loader start: "fork", "spawn" or "forkserver"; "" without workers."""
    if loader.num_workers == 0:
        return ""
    context: Any = loader.multiprocessing_context or multiprocessing
    return context.get_start_method()


def check_sendable(loader: DataLoader, parts: DataLoader) -> None:
    """Refuse what cannot be sent, before a worker dies of it.

    Args:
        loader: whose workers would start.
        parts: the loader with the reader's own dataset and functions.

    Raises:
        LoaderError: something cannot be sent.
    """
    if start_method(loader) in ("", "fork"):
        return
    cannot = unsendable(parts)
    if cannot:
        raise LoaderError(cannot[0])


def unsendable(loader: DataLoader) -> list[str]:
    """What of a loader could not reach a worker that is started anew, in sentences.

    Example:
        >>> unsendable(DataLoader([1, 2], collate_fn=lambda items: items))[0][:69]
        '`collate_fn` is a lambda (<doctest ...
        >>> unsendable(DataLoader([1, 2]))
        []

    Args:
        loader: any; nothing is started.

    Raises:
        UsageError: it is no DataLoader.
    """
    if not isinstance(loader, DataLoader):
        raise UsageError(
            f"unsendable(loader) expected a DataLoader, got {type(loader).__name__!r}; "
            "give the loader itself."
        )
    sentences = []
    for name in ("dataset", "collate_fn", "worker_init_fn"):
        part = getattr(loader, name)
        if part is not None:
            sentences.extend(_unsendable_part(name, part))
    return sentences


def _unsendable_part(name: str, part: Any) -> list[str]:
    scan = _Scan()
    try:
        scan.dump(part)
    except Exception as error:  # noqa: BLE001 - whatever pickle or the reader's __reduce__ raises
        return [_why_not(name, part, scan, error)]
    return [
        f"{_of(name, thing, part)}{_kind(thing)} `{thing.__qualname__}` is defined in a notebook "
        f"cell: a worker that is started anew cannot import it from there; {CURE_MODULE}."
        for thing in scan.of_notebook
    ]


def _why_not(name: str, part: Any, scan: "_Scan", error: Exception) -> str:
    last = scan.last
    if last is not None and re.search(r"<locals>|<lambda>", last.__qualname__):
        what = "a lambda" if last.__name__ == "<lambda>" else f"a local {_kind(last)}"
        named = "" if last.__name__ == "<lambda>" else f" `{last.__qualname__}`"
        line = _line(last)
        return (
            f"`{name}` {'is' if last is part else 'holds'} {what}{named}{line}: pickle, which "
            f"brings it to a worker that is started anew, finds only what has a name at the top of "
            f"a module; make it a function with a name there, or use functools.partial of one, or "
            "num_workers=0."
        )
    message = words.shortened(words.message_of(error))
    return (
        f"`{name}` cannot be pickled, and so not be sent to a worker that is started anew "
        f"({message}): open files, locks and connections belong into the worker; make them in "
        "__getitem__ at first use, or in `worker_init_fn`."
    )


def _kind(thing: Any) -> str:
    return "class" if isinstance(thing, type) else "function"


def _of(name: str, thing: Any, part: Any) -> str:
    return f"`{name}`: " if thing in (part, type(part)) else f"`{name}` uses "


def _line(thing: Any) -> str:
    code = getattr(thing, "__code__", None)
    if code is None:
        return ""
    file = re.split(r"[\\/]", code.co_filename)[-1]
    cell = file if not re.fullmatch(r"\d+\.py", file) else "a notebook cell"
    return f" ({cell}, line {code.co_firstlineno})"


class _Sink(io.RawIOBase):
    """A file that keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


class _Scan(pickle.Pickler):
    """Pickles to nowhere, leaves out the data, and remembers what pickle would only name."""

    def __init__(self) -> None:
        super().__init__(_Sink())
        self.of_notebook: list[Any] = []
        self.last: Any = None

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor | np.ndarray | torch.UntypedStorage):
            return "data"
        if isinstance(obj, types.FunctionType | type):
            self.last = obj
            home = sys.modules.get(obj.__module__)
            if obj.__module__ == "__main__" and not hasattr(home, "__file__"):
                self.of_notebook.append(obj)
        return None


def wrapped(loader: DataLoader, run: Callable[[], Any]) -> Any:
    """Run, and explain what torch raises.

    Raises:
        LoaderError: what it raised, in words; the error itself is its cause.
    """
    try:
        return run()
    except LabError:
        raise
    except Exception as error:
        raise LoaderError(explain(error, loader)) from error
