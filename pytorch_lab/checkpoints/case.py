"""All that the finders of a checkpoint may look at, and the code that reaches the parts of it."""

import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pytorch_lab import words
from pytorch_lab.checkpoints.files import Contents
from pytorch_lab.checkpoints.item import Item
from pytorch_lab.checkpoints.names import device_is_here
from pytorch_lab.checkpoints.record import ModelMatch, Needed, OptimizerMatch, Storage
from pytorch_lab.checkpoints.unrun import printable

FEW = 3  # names in a sentence


@dataclass
class Case:
    """All that finders may look at."""

    source: str
    contents: Contents
    root: Item
    storages: tuple[Storage, ...]
    needed: tuple[Needed, ...]
    path: str  # as it was given
    model: nn.Module | None = None
    scheduler: Any = None
    meets: ModelMatch | None = None
    moments: OptimizerMatch | None = None
    optimizer: torch.optim.Optimizer | None = None

    @property
    def is_file(self) -> bool:
        """Whether it lies on the disk."""
        return self.contents.format != "dict"

    def load(self, *, allowed: bool = False) -> str:
        """The call that loads the file; a live dict is there already.

        Args:
            allowed: whether what it needs beyond torch's list is allowed around the call.
        """
        name = quoted(self.path)
        if not self.is_file:
            return "checkpoint"
        if self.contents.format == "safetensors":
            return f"safetensors.torch.load_file({name})"
        if self.contents.format == "index":
            files = f"[{', '.join(map(quoted, self.contents.shards))}]"
            both = f"for file in {files} for n, t in safetensors.torch.load_file(file).items()"
            return f"{{n: t {both}}}"
        away = any(not device_is_here(one.device) for one in self.storages)
        where = ', map_location="cpu"' if away else ""
        trust = "" if allowed or self.opens_by_default else ", weights_only=False"
        return f"torch.load({name}{where}{trust})"

    @property
    def opens_by_default(self) -> bool:
        """Whether torch.load takes it without further words."""
        names = all(one.verdict == "default" for one in self.needed)
        return names and not self.contents.reading.refused

    @property
    def state(self) -> str:
        """Code that gives the state dict."""
        path = self.meets.path if self.meets is not None else ""
        start = self.load()
        if path.startswith(".") or (self.meets and self._is_module(path)):
            return f"{start}{path}.state_dict()"
        return f"{start}{path}"

    def _is_module(self, path: str) -> bool:
        return any(one.path == path and one.kind == "object" for one in self.root.walk())


def quoted(text: str) -> str:
    """A text as code, in double quotes; what a file says must not become code.

    Example:
        >>> quoted("a"), eval(quoted('"); evil("'))
        ('"a"', '"); evil("')
    """
    return json.dumps(text, ensure_ascii=False)


def some(names: list[str]) -> str:
    """The first of several names, as code.

    Example:
        >>> some(["a", "b"]), some(list("abcde"))
        ('`a` and `b`', '`a`, `b`, `c` and 2 more')
    """
    shown = [f"`{printable(words.shortened(name, 60))}`" for name in names[:FEW]]
    if len(names) > FEW:
        shown.append(f"{len(names) - FEW:,} more")
    return words.listed(shown)
