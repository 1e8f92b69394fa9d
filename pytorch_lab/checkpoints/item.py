"""One thing in a checkpoint: what it is, what it is called, and where its elements lie."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

PLAIN = (bool, int, float, complex, str, bytes, type(None))
MOST = 2**63 - 1  # torch's sizes end here; a file may claim anything
LONGEST_KEY = 300  # letters of a key that are spelled


@dataclass(eq=False, slots=True)
class Item:
    """One thing, with the things in it."""

    name: str
    path: str = ""
    kind: str = "value"
    type: str = ""
    value: Any = None  # a plain value, or what the kids were read from
    text: str = ""
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] = ()
    offset: int = 0
    dtype: str = ""
    device: str = ""
    requires_grad: bool = False
    storage: str = ""
    stored_bytes: int = 0
    key: str = ""  # the name as the dict has it; `name` has odd letters escaped
    kids: list["Item"] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """What its elements need."""
        return product((*self.shape, itemsize(self.dtype))) if self.shape is not None else 0

    def walk(self) -> Iterator["Item"]:
        """This and all below it, from top to bottom."""
        waiting: list[Item] = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(one.kids[::-1])

    def kid(self, name: str) -> "Item | None":
        """The kid of a name."""
        return next((kid for kid in self.kids if kid.name == name), None)


def product(sizes: Iterable[int]) -> int:
    """The product of sizes, at most `MOST`: a forged shape must not cost hours.

    Example:
        >>> product((2, 3)), product((10**30, 10**30)) == MOST, product((10**30, 10**30, 0))
        (6, True, 0)
    """
    sizes, total = tuple(sizes), 1
    if 0 in sizes:
        return 0
    for size in sizes:
        total *= size
        if total > MOST:
            return MOST
    return total


def itemsize(dtype: str) -> int:
    """Bytes of one element.

    Example:
        >>> itemsize("float32"), itemsize("bfloat16"), itemsize("no such type")
        (4, 2, 1)
    """
    found = getattr(torch, dtype, None)
    return found.itemsize if isinstance(found, torch.dtype) else 1


def spell_key(key: Any, kind: str = "") -> str:
    """A key of a dict as it would stand between brackets; of another kind than plain, its kind."""
    if not isinstance(key, PLAIN):
        return f"<{kind or type(key).__name__}>"
    if isinstance(key, str):
        return repr(key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}…")
    if isinstance(key, bytes):
        return repr(key if len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + b"...")
    return spell(key)


def spell(value: Any, longest: int = 48) -> str:
    """A plain value in few letters.

    Example:
        >>> spell(0.1), spell("a" * 100, 10), spell(b"abc")
        ('0.1', "'aaaaaaaa…", '3 bytes')
    """
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length():,} bits"
    text = repr(value[: longest + 1] if isinstance(value, str) else value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain(value: Any, name: str, path: str) -> Item:
    """The item of a plain value."""
    return Item(name, path, "value", type(value).__name__, value, text=spell(value))
