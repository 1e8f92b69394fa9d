"""safetensors: a header in JSON that says where each tensor lies. Nothing in it can be run.

Eight bytes give the length of the header, then comes the header, then the data:
https://github.com/huggingface/safetensors#format. The format is read here by hand, so that a
damaged file gives a sentence, and so that the package need not be installed.
"""

import json
from pathlib import Path
from typing import Any

from pytorch_lab.checkpoints.contents import Reader
from pytorch_lab.checkpoints.files import Contents
from pytorch_lab.checkpoints.item import MOST, Item, itemsize, product
from pytorch_lab.checkpoints.unrun import printable
from pytorch_lab.modules.text import spell_bytes

LARGEST_HEADER = 100_000_000  # bytes, as the format has it
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
    "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32",
    "U64": "uint64", "BOOL": "bool", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
OTHER_FORMATS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


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
        stride = tuple(product(shape[i + 1 :]) for i in range(len(shape)))
        return Item(
            name, path, "tensor", "Tensor", value, shape=shape, stride=stride,
            dtype=DTYPES[facts["dtype"]], device="cpu",
            storage=key, stored_bytes=stored,
        )  # fmt: skip


def is_safetensors(path: Path) -> bool:
    """Whether a file begins as safetensors does: a length, then `{`; or is called so.

    The name of a file is no proof: what begins like torch.save's formats is read as that.
    """
    with path.open("rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and length <= path.stat().st_size - 8:
        return True
    return path.suffix == ".safetensors" and not is_of_torch(path)


def is_of_torch(path: Path) -> bool:
    """Whether a file begins as torch.save's formats do, whatever its name says."""
    with path.open("rb") as file:
        return file.read(4).startswith(OTHER_FORMATS)


def read(path: Path) -> Contents:
    """What the header of a file says."""
    contents = Contents("safetensors", path.stat().st_size, reader=SafeReader())
    try:
        header = _header(path, contents)
        contents.value = Stored(header)
    except (ValueError, RecursionError) as error:  # also of json and of UTF-8
        contents.value = None
        contents.trouble, contents.todo = _sentence(error), "copy or download it again"
    return contents


class _Damage(ValueError):
    """A sentence of ours."""


def _sentence(error: Exception) -> str:
    return f"{error}" if isinstance(error, _Damage) else "its header is no valid JSON"


def _header(path: Path, contents: Contents) -> dict[str, dict[str, Any]]:
    size = contents.bytes
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise _Damage(
                f"it is cut short, or no safetensors file: its header would have "
                f"{spell_bytes(length)}, the file has {spell_bytes(size)}"
            )
        if length > LARGEST_HEADER:
            raise _Damage(f"its header has {spell_bytes(length)}, more than safetensors allows")
        twice: list[str] = []
        found = json.loads(file.read(length), object_pairs_hook=lambda p: _table(p, twice))
    if not isinstance(found, dict):
        raise _Damage("its header is no JSON object")
    if twice:
        text = f"Its header has {printable(twice[0], 60)!r} twice: which is read is uncertain."
        contents.notes.append(("two-faced", "problem", text, ""))
    _metadata(found, contents)
    for name, facts in found.items():
        _check(printable(name, 60), facts, size - 8 - length)
    _check_order(found, size - 8 - length)
    return found


def _table(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    """A dict of JSON; a name that comes twice is noted."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            twice.append(name)
        made[name] = value
    return made


def _check(name: str, facts: Any, room: int) -> None:
    """Whether one line of the header is what the format says."""
    try:
        shape, (start, end) = facts["shape"], facts["data_offsets"]
        dtype = facts["dtype"]
        whole = isinstance(shape, list) and all(_is_size(n) for n in (*shape, start, end))
    except (KeyError, TypeError, ValueError) as error:
        raise _Damage(f"its header says something odd of {name!r}") from error
    if dtype not in DTYPES:
        raise _Damage(f"{name!r} has a dtype that is not known here, {printable(str(dtype), 20)!r}")
    if not whole or start > end:
        raise _Damage(f"its header says something odd of {name!r}")
    if end > room:
        raise _Damage(
            f"it is cut short: {name!r} would end {spell_bytes(end)} behind the header, where only "
            f"{spell_bytes(room)} are"
        )
    needed = product((*shape, itemsize(DTYPES[dtype])))
    if end - start != needed:
        shown = printable(str(tuple(shape)), 60)
        raise _Damage(
            f"{name!r} of shape {shown} and dtype {dtype} needs {needed:,} bytes and has "
            f"{end - start:,}"
        )


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number <= MOST


def _check_order(header: dict[str, Any], room: int) -> None:
    """The tensors must fill the space behind the header, without a gap: nothing may hide there."""
    reached = 0
    for start, end in sorted(tuple(facts["data_offsets"]) for facts in header.values()):
        if start != reached:
            raise _Damage("its tensors overlap or leave gaps")
        reached = end
    if reached != room:
        raise _Damage(f"{spell_bytes(room - reached)} at its end belong to no tensor")


def _metadata(header: dict[str, Any], contents: Contents) -> None:
    found = header.pop("__metadata__", None)
    if found is None:
        return
    texts = isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
    if not texts:
        raise _Damage("what its header says of the file itself is no table of texts")
    if found:
        text = ", ".join(f"{key}={value}" for key, value in list(found.items())[:6])
        contents.notes.append(
            ("metadata", "note", f"The file says of itself: {printable(text, 300)}.", "")
        )


def read_index(path: Path) -> Contents:
    """A model in several files, as its index lists them: `model.safetensors.index.json`."""
    contents = Contents("index", path.stat().st_size, reader=SafeReader())
    try:
        with path.open("rb") as file:
            table = json.loads(file.read(LARGEST_HEADER))["weight_map"]
        shards = sorted({str(name) for name in table.values()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        contents.trouble = "it is no index of a model in several files: it has no weight_map"
        contents.todo = "give the index, such as model.safetensors.index.json"
        return contents
    if not shards:
        contents.trouble, contents.todo = "it lists no tensor", "save the model again"
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
    return f"lacks {printable(lost[0], 60)!r}, which the index promises" if lost else ""


def table_name(table: dict[str, str], shard: Path) -> str:
    """The name by which the index knows a file; one with a folder in it is none."""
    return next((name for name in table.values() if name == shard.name), "")
