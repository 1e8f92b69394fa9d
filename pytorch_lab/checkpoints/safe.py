"""safetensors: a header in JSON that says where each tensor lies. Nothing in it can be run.

Eight bytes give the length of the header, then comes the header, then the data:
https://github.com/huggingface/safetensors#format. The format is read here by hand, so that a
damaged file gives a sentence, and so that the package need not be installed.
"""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytorch_lab.checkpoints.contents import Reader
from pytorch_lab.checkpoints.files import Contents
from pytorch_lab.checkpoints.item import Item, itemsize
from pytorch_lab.checkpoints.unrun import printable
from pytorch_lab.modules.text import spell_bytes

LARGEST_HEADER = 100_000_000  # bytes, as the format has it
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
    "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32",
    "U64": "uint64", "BOOL": "bool", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}  # fmt: skip


class Stored:
    """The tensors of a header, for a `Reader`."""

    def __init__(self, tensors: dict[str, dict[str, Any]], file: str = "") -> None:
        self.tensors, self.file = tensors, file


class SafeReader(Reader):
    """Reads `Stored`: a dict of tensors, one storage each."""

    def other(self, value: Any, name: str, path: str) -> Item:
        """The dict itself."""
        if isinstance(value, Stored):
            return Item(name, path, "dict", "dict", value)
        return super().other(value, name, path)

    def parts(self, value: Any) -> list[tuple[str, Any]]:
        """Its tensors, each a tuple of name and what the header says of it."""
        if isinstance(value, Stored):
            return [(f"[{name!r}]", (name, facts)) for name, facts in value.tensors.items()]
        return super().parts(value)

    def tensor(self, value: Any, name: str, path: str) -> Item | None:
        """The item of one line of the header."""
        if not isinstance(value, tuple):
            return super().tensor(value, name, path)
        key, facts = value
        shape = tuple(facts["shape"])
        stored = facts["data_offsets"][1] - facts["data_offsets"][0]
        stride = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        return Item(
            name, path, "tensor", "Tensor", value, shape=shape, stride=stride,
            dtype=DTYPES[facts["dtype"]], device="cpu",
            storage=key, stored_bytes=stored,
        )  # fmt: skip


def is_safetensors(path: Path) -> bool:
    """Whether a file begins as safetensors does: a length, then `{`; or is called so."""
    with path.open("rb") as file:
        head = file.read(9)
    return head[8:9] == b"{" or path.suffix == ".safetensors"


def read(path: Path) -> Contents:
    """What the header of a file says."""
    contents = Contents("safetensors", path.stat().st_size, reader=SafeReader())
    try:
        header = _header(path, contents.bytes)
        contents.value = Stored(header)
        _metadata(header, contents)
    except ValueError as error:  # also of json and of UTF-8
        contents.value = None
        contents.trouble, contents.todo = _sentence(error), "copy or download it again"
    return contents


class _Damage(ValueError):
    """A sentence of ours."""


def _sentence(error: ValueError) -> str:
    return f"{error}" if isinstance(error, _Damage) else "its header is no valid JSON"


def _header(path: Path, size: int) -> dict[str, dict[str, Any]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise _Damage(
                f"it is cut short, or no safetensors file: its header would have "
                f"{spell_bytes(length)}, the file has {spell_bytes(size)}"
            )
        if length > LARGEST_HEADER:
            raise _Damage(f"its header has {spell_bytes(length)}, more than safetensors allows")
        found = json.loads(file.read(length))
    if not isinstance(found, dict):
        raise _Damage("its header is no JSON object")
    for name, facts in found.items():
        if name != "__metadata__":
            _check(name, facts, size - 8 - length)
    return found


def _check(name: str, facts: Any, room: int) -> None:
    """Whether one line of the header is what the format says."""
    try:
        shape, (start, end) = facts["shape"], facts["data_offsets"]
        width = itemsize(DTYPES[facts["dtype"]])
        whole = all(isinstance(n, int) and n >= 0 for n in (*shape, start, end))
    except (KeyError, TypeError, ValueError) as error:
        raise _Damage(f"its header says something odd of {name!r}") from error
    if not whole or start > end:
        raise _Damage(f"its header says something odd of {name!r}")
    if end > room:
        raise _Damage(
            f"it is cut short: {name!r} would end {spell_bytes(end)} behind the header, where only "
            f"{spell_bytes(room)} are"
        )
    if end - start != math.prod(shape) * width:
        raise _Damage(
            f"{name!r} of shape {tuple(shape)} and dtype {facts['dtype']} needs "
            f"{math.prod(shape) * width:,} bytes and has {end - start:,}"
        )


def _metadata(header: dict[str, Any], contents: Contents) -> None:
    found = header.pop("__metadata__", None)
    if isinstance(found, dict) and found:
        text = ", ".join(f"{key}={value}" for key, value in list(found.items())[:6])
        contents.notes.append(
            ("metadata", "note", f"The file says of itself: {printable(text, 300)}.", "")
        )
    ends = sorted(facts["data_offsets"] for facts in header.values())
    gaps = any(a[1] != b[0] for a, b in pairwise(ends))
    if gaps:
        contents.trouble, contents.todo = "its tensors overlap or leave gaps", "save it again"


def read_index(path: Path) -> Contents:
    """A model in several files, as its index lists them: `model.safetensors.index.json`."""
    contents = Contents("index", path.stat().st_size, reader=SafeReader())
    try:
        table = json.loads(path.read_bytes())["weight_map"]
        shards = sorted({str(name) for name in table.values()})
    except (ValueError, KeyError, TypeError, AttributeError):
        contents.trouble = "it is no index of a model in several files: it has no weight_map"
        contents.todo = "give the index, such as model.safetensors.index.json"
        return contents
    tensors: dict[str, Any] = {}
    for name in shards:
        shard = path.parent / name
        trouble = _add_shard(shard, table, tensors, contents)
        if trouble:
            contents.trouble, contents.todo = (
                f"of its files {printable(name)} {trouble}",
                "copy all of them",
            )
            break
    contents.value = Stored(tensors)
    contents.shards = tuple(str(path.parent / name) for name in shards)
    return contents


def _add_shard(
    shard: Path, table: dict[str, str], tensors: dict[str, Any], contents: Contents
) -> str:
    """Put a file's tensors to the others; what is wrong with it, if anything is."""
    if Path(shard.name) != Path(table_name(table, shard)) or not shard.is_file():
        return "is missing"
    if shard.suffix != ".safetensors":
        return "is not in the safetensors format; inspect the files one by one"
    one = read(shard)
    contents.bytes += one.bytes
    if one.trouble:
        return f"can't be read: {one.trouble}"
    listed = {name for name, file in table.items() if file == shard.name}
    lost = sorted(listed - set(one.value.tensors))
    tensors.update(one.value.tensors)
    return f"lacks {lost[0]!r}, which the index promises" if lost else ""


def table_name(table: dict[str, str], shard: Path) -> str:
    """The name by which the index knows a file; one with a folder in it is none."""
    return next((name for name in table.values() if name == shard.name), "")
