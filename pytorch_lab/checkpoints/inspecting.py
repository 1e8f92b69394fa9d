"""`inspect`: what is in a checkpoint, and what would come of loading it."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pytorch_lab import words
from pytorch_lab.checkpoints import files, model_match, optimizer_match, safe
from pytorch_lab.checkpoints.case import Case
from pytorch_lab.checkpoints.files import Contents
from pytorch_lab.checkpoints.findings import find
from pytorch_lab.checkpoints.item import Item, itemsize
from pytorch_lab.checkpoints.live import LiveReader
from pytorch_lab.checkpoints.names import device_is_here, judge
from pytorch_lab.checkpoints.record import (
    CheckpointTree,
    Entry,
    ModelMatch,
    OptimizerMatch,
    Storage,
)
from pytorch_lab.errors import ModelError, UsageError

INDEXES = ("*.safetensors.index.json", "*.bin.index.json")


def inspect(
    path_or_dict: Any,
    model: nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    scheduler: Any = None,
) -> CheckpointTree:
    r"""What is in a checkpoint, without loading it: no code of the file runs, no tensor is read.

    Example:
        >>> import torch
        >>> from pytorch_lab import checkpoints
        >>> model = torch.nn.Linear(3, 2)
        >>> best = model.state_dict().copy()
        >>> checkpoints.inspect(best, model).finding("alias").fix
        'import copy\ncheckpoint = copy.deepcopy(checkpoint)'

    Args:
        path_or_dict: a file of torch.save or of safetensors, the index of a model in several files,
            a folder with one of these; or a dict that would be saved, or was loaded.
        model: what it shall be loaded into: says what would load, what not, and why.
        optimizer: likewise; names its parameters if the model is given as well.
        scheduler: likewise.

    Raises:
        UsageError: there is no such file, or one of the arguments is something else. A file that
            is damaged, malicious or no checkpoint raises nothing: the record says so.
    """
    _check(model, optimizer, scheduler)
    contents, source, path = _read(path_or_dict)
    root = _root(contents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storages = _storages(root)
        meets, moments = _matched(root, model, optimizer)
        case = Case(
            source, contents, root, storages, judge(contents.reading), path,
            model, scheduler, meets, moments, optimizer,
        )  # fmt: skip
        findings = find(case)
    opens, verdict = _verdict(case)
    size = contents.bytes or sum(storage.bytes for storage in storages)
    return CheckpointTree(
        source, contents.format, size, opens, verdict, tuple(_entries(root)), storages,
        case.needed, findings, meets, moments,
    )  # fmt: skip


def _matched(
    root: Item, model: nn.Module | None, optimizer: torch.optim.Optimizer | None
) -> tuple[ModelMatch | None, OptimizerMatch | None]:
    try:
        meets = model_match.match(root, model) if model is not None else None
        moments = optimizer_match.match(root, optimizer, model, meets) if optimizer else None
    except Exception as error:  # the learner's own state_dict
        raise ModelError(
            f"inspect(checkpoint, model) could not read the model's state_dict(), which raised "
            f"{type(error).__name__}: {words.shortened(words.message_of(error))}"
        ) from error
    return meets, moments


def _root(contents: Contents) -> Item:
    if contents.value is None:
        return Item("")
    if contents.format != "dict":
        return contents.reader.item(contents.value)
    try:
        return contents.reader.item(contents.value)
    except Exception as error:  # the learner's own Mapping or state_dict
        raise UsageError(
            f"inspect(checkpoint) could not walk through the dict, which raised "
            f"{type(error).__name__}: {words.shortened(words.message_of(error))}"
        ) from error


def _check(model: Any, optimizer: Any, scheduler: Any) -> None:
    for name, given, kind, says in (
        ("model", model, nn.Module, "an nn.Module"),
        ("optimizer", optimizer, torch.optim.Optimizer, "a torch optimizer"),
    ):
        if given is not None and not isinstance(given, kind):
            raise UsageError(
                f"inspect(checkpoint, {name}=…) expected {says}, got {type(given).__name__!r}; "
                f"give the {name} itself."
            )
    if scheduler is not None and not hasattr(scheduler, "state_dict"):
        raise UsageError(
            f"inspect(checkpoint, scheduler=…) expected an object with state_dict(), got "
            f"{type(scheduler).__name__!r}; give the scheduler itself."
        )


def _read(given: Any) -> tuple[Contents, str, str]:
    """What was given, its short name, and its path."""
    if isinstance(given, Mapping):
        return Contents("dict", 0, given, reader=LiveReader()), "a dict", ""
    if isinstance(given, nn.Module):
        raise UsageError(
            "inspect(checkpoint) expected a path or a dict, got a module; "
            "give its state_dict(), or show(model)."
        )
    if not isinstance(given, str | Path):
        raise UsageError(
            f"inspect(checkpoint) expected a path or a dict, got {type(given).__name__!r}: "
            f"{given!r:.60}; give the path of a file, or what torch.load returned."
        )
    path = Path(given)
    try:
        path = path.expanduser()
        path = _in_folder(path) if path.is_dir() else path
        if not path.is_file():
            said = words.shortened(str(path))
            raise UsageError(f"inspect(checkpoint) expected a file, found none at {said!r}.")
        return _contents(path), path.name, str(path)
    except OSError as error:
        raise UsageError(
            f"inspect(checkpoint) could not read {words.shortened(str(path))!r}: "
            f"{error.strerror}; check the path and the rights of the file."
        ) from error
    except RuntimeError as error:  # "~somebody" without a home
        raise UsageError(
            f"inspect(checkpoint) could not find {words.shortened(str(path))!r}: {error}"
        ) from error


def _contents(path: Path) -> Contents:
    if path.name.endswith(".json") and not safe.is_of_torch(path):
        return safe.read_index(path)
    if safe.is_safetensors(path):
        return safe.read(path)
    contents = files.read(path)
    if path.suffix in (".safetensors", ".json"):
        text = (
            f"It is called {path.suffix} and is not in that format: what loads it goes by the "
            "first bytes, what people expect by the name. Rename it to .pt."
        )
        contents.notes.append(("wrong-name", "problem", text, ""))
    return contents


def _in_folder(folder: Path) -> Path:
    """The index of a folder, else its only checkpoint."""
    for pattern in (*INDEXES, "*.safetensors", "*.pt", "*.pth", "*.ckpt", "*.bin"):
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one.name for one in found[:4])
            raise UsageError(
                f"inspect(checkpoint) expected one checkpoint in {str(folder)!r}, "
                f"found {len(found)}: {names}; give one of them."
            )
    more = " (it is one of torch.distributed.checkpoint)" * (folder / ".metadata").exists()
    raise UsageError(
        f"inspect(checkpoint) expected a checkpoint in {str(folder)!r}, found none{more}; "
        "give the path of a file."
    )


def _storages(root: Item) -> tuple[Storage, ...]:
    """Each storage once, with all who look at it."""
    looking: dict[str, list[Item]] = {}
    for item in root.walk():
        if item.kind == "tensor" and item.storage:
            looking.setdefault(item.storage, []).append(item)
    found = []
    for key, items in looking.items():
        size = max(item.stored_bytes for item in items)
        views = {(one.offset, one.shape, one.stride): _distinct(one) for one in items}
        needed = min(size, sum(views.values()))
        found.append(Storage(key, size, needed, items[0].device, tuple(i.path for i in items)))
    return tuple(found)


def _distinct(item: Item) -> int:
    """Bytes of the elements that differ: an expanded dimension (stride 0) counts once."""
    count = itemsize(item.dtype)
    for size, stride in zip(item.shape or (), item.stride, strict=False):
        count *= size if stride or not size else 1
    return count


def _entries(root: Item) -> list[Entry]:
    depths = {id(root): 0}
    found = []
    for item in root.walk():
        depth = depths[id(item)]
        depths.update((id(kid), depth + 1) for kid in item.kids)
        found.append(
            Entry(
                item.path, item.name, depth, item.kind, item.type, item.text, item.shape,
                item.dtype, item.device, item.requires_grad, item.bytes, item.storage,
                item.stored_bytes,
            )
        )  # fmt: skip
    return found


def _verdict(case: Case) -> tuple[str, str]:
    """How it opens, in a word and in a sentence."""
    contents = case.contents
    if any(one.verdict == "dangerous" for one in case.needed):
        return "danger", "It would run foreign code if it were loaded with weights_only=False."
    if contents.trouble:
        reader = "safetensors" if contents.format in ("safetensors", "index") else "torch.load"
        return "broken", f"{reader} can't read it: {contents.trouble}; {contents.todo}."
    away = sorted({one.device for one in case.storages if not device_is_here(one.device)})
    if contents.format == "dict":
        return "default", "It is a dict in memory; nothing needs to be opened."
    if contents.format in ("safetensors", "index"):
        return "default", "safetensors opens it; nothing in such a file can run."
    if contents.reading.refused:
        return "trusted", "torch.load opens it with weights_only=False alone, if you trust it."
    if any(one.verdict == "unknown" for one in case.needed):
        return "listed", "torch.load opens it if you allow its classes, which takes trust."
    if any(one.verdict == "listable" for one in case.needed):
        return "listed", "torch.load opens it if you allow a few harmless names."
    if away:
        where = words.listed(away)
        return "moved", f"torch.load opens it with map_location: it asks for {where}, not here."
    return "default", "torch.load opens it by default; nothing but tensors and plain values."
