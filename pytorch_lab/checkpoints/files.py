"""Which kind of file is it, and what lies in it? Found by its first bytes, as torch.load does.

`torch.save` writes a zip archive: `data.pkl`, which says what there is, and one record for each
storage. Before torch 1.6 it was a row of pickles with the storages behind them. Only the pickles
and the sizes are read, never a tensor: a file of many gigabytes is looked at as fast as a small
one.

https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/serialization/docs/serialization.md
"""

import io
import sys
import tarfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pytorch_lab.checkpoints.contents import Reader
from pytorch_lab.checkpoints.item import itemsize
from pytorch_lab.checkpoints.makers import storage_of
from pytorch_lab.checkpoints.unrun import (
    LARGEST_PICKLE,
    Kept,
    Made,
    Reading,
    Row,
    Table,
    Unreadable,
    follow,
    printable,
)
from pytorch_lab.modules.text import spell_bytes

MAGIC = 0x1950A86A20F9469CFC6C  # what torch.save writes in front of the legacy format
OTHER_OPS = 300_000  # instructions of pickles that torch.load doesn't read, all together
OTHER_BYTES = 16 * 2**20  # likewise
LEGACY_FLOOR = 8  # bytes before each storage: how many elements follow

# What is often taken for a checkpoint: how it begins, what it is, what to do.
OTHERS = (
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself",
     "fetch the file with `git lfs pull`"),
    (b"<!DOCTYPE", "a web page, not the file behind it", "download the file itself, not its page"),
    (b"<html", "a web page, not the file behind it", "download the file itself, not its page"),
    (b"\x89HDF", "an HDF5 file, as Keras writes", "read it with h5py"),
    (b"GGUF", "a GGUF file of llama.cpp", "read it with the gguf package"),
    (b"\x93NUMPY", "a numpy array", "read it with numpy.load"),
    (b"\x1f\x8b", "compressed with gzip", "unpack it first"),
    (b"BZh", "compressed with bzip2", "unpack it first"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it first"),
    (b"Rar!", "a RAR archive", "unpack it first"),
    (b"\x89PNG", "a picture", "give the checkpoint's path"),
    (b"\xff\xd8\xff", "a picture", "give the checkpoint's path"),
    (b"%PDF", "a PDF", "give the checkpoint's path"),
    (b"-----BEGIN PGP", "encrypted with PGP", "decrypt it first"),
    (b"age-encryption.org", "encrypted with age", "decrypt it first"),
    (b"Salted__", "encrypted with openssl", "decrypt it first"),
    (b"\x08\x07\x12\x07pytorch", "an ONNX model", "read it with onnx.load"),
)  # fmt: skip


@dataclass
class Contents:
    """What a file holds, as far as it can be told without running it."""

    format: str
    bytes: int
    value: Any = None
    reading: Reading = field(default_factory=Reading)
    trouble: str = ""  # why torch.load can't read it, however it is called
    todo: str = ""  # what to do then
    notes: list[tuple[str, str, str, str]] = field(default_factory=list)  # code, level, text, fix
    sizes: dict[str, int] = field(default_factory=dict)  # of the storages in the file
    reader: Reader = field(default_factory=Reader)
    shards: tuple[str, ...] = ()  # paths of the files of a model in several


def read(path: Path) -> Contents:
    """What lies in a file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(0)
        contents = Contents("other", size)
        try:
            _read(file, head, contents)
        except Unreadable as error:
            contents.trouble = contents.trouble or f"{error}"
            contents.todo = contents.todo or "copy or download it again"
    return contents


def _read(file: BinaryIO, head: bytes, contents: Contents) -> None:
    if not head:
        contents.trouble, contents.todo = "it is empty", "save it again"
    elif not head.strip(b"\0"):
        contents.trouble = "it begins with nothing but zeros, as after a crash while it was written"
        contents.todo = "take an older one, and save through `os.replace` next time"
    elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        _read_zip(file, contents)
    elif _begins_like_tar(file):
        contents.format = "tar"
        contents.trouble = "it is in the tar format of torch before 0.2, which weights_only refuses"
        contents.todo = "if you trust it: `torch.load(path, weights_only=False)`, and save it anew"
    elif other := next((one for one in OTHERS if head.startswith(one[0])), None):
        contents.trouble, contents.todo = f"it is {other[1]}", other[2]
    elif head[:1] == b"\x80" or head[:1] in b"(]}lcdN":
        _read_pickles(file, contents)
    else:
        contents.trouble = f"it is no checkpoint: it begins with {head[:8]!r}"
        contents.todo = "give a file that torch.save or safetensors wrote; it may also be encrypted"


def _begins_like_tar(file: BinaryIO) -> bool:
    file.seek(257)
    found = file.read(5) == b"ustar"
    file.seek(0)
    return found and tarfile.BLOCKSIZE == 512


# --- zip ------------------------------------------------------------------------------------------


def _read_zip(file: BinaryIO, contents: Contents) -> None:
    contents.format = "zip"
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        contents.trouble = (
            f"it is cut short: the directory at the end of the archive is missing after "
            f"{spell_bytes(contents.bytes)}"
        )
        contents.todo = (
            "copy or download it again; when saving, write another name first and "
            "`os.replace` it, so that a crash can't leave half a file"
        )
        raise Unreadable(contents.trouble) from error
    with archive:
        records = archive.infolist()
        if _refused(records, contents):
            return
        names = [record.filename for record in records]
        root = f"{names[0].partition('/')[0]}/" if names else ""  # as torch takes it
        main = next((name for name in names if name.lower() == f"{root}data.pkl".lower()), "")
        if not main:
            _say_which_zip(names, contents)
            return
        _read_main(archive, main, contents)
        _other_pickles(archive, [n for n in names if n.endswith(".pkl") and n != main], contents)
        if f"{root}constants.pkl" in names:
            contents.trouble = "it is a TorchScript archive, a program, and not a checkpoint"
            contents.todo = "if you trust it: `torch.jit.load(path).state_dict()`, and save that"
        contents.sizes = {
            record.filename.removeprefix(f"{root}data/"): record.file_size
            for record in records
            if record.filename.startswith(f"{root}data/")
        }
        _byte_order(archive, f"{root}byteorder", names, contents)


def _refused(records: list[zipfile.ZipInfo], contents: Contents) -> bool:
    """What makes an archive unreadable, or readable in two ways."""
    # torch asks for names without regard to case: "DATA.PKL" may be what it reads as data.pkl.
    counted = Counter(one.filename.lower() for one in records)
    twice = [name for name, times in counted.items() if times > 1]
    if any(record.flag_bits & 1 for record in records):
        contents.trouble, contents.todo = "it is encrypted with a password", "unpack it first"
    elif twice:
        contents.trouble = f"it has two records named {twice[0]!r}: which is read is uncertain"
        contents.todo = "don't load it: nothing that torch.save writes looks so"
        contents.notes.append(("two-faced", "problem", f"{contents.trouble}.", ""))
    elif records and min(record.header_offset for record in records) != 0:
        contents.trouble = "it is two files in one: another archive lies behind its first bytes"
        contents.todo = "don't load it: nothing that torch.save writes looks so"
        contents.notes.append(("two-faced", "problem", f"{contents.trouble}.", ""))
    return bool(contents.trouble)


def _say_which_zip(names: list[str], contents: Contents) -> None:
    if any(name.endswith("archive_format") for name in names):
        contents.trouble = "it is an exported program (.pt2)"
        contents.todo = "`torch.export.load(path)`, if you trust it"
    elif any(name.endswith(".npy") for name in names):
        contents.trouble, contents.todo = "it is a .npz of numpy", "read it with numpy.load"
    else:
        some = printable(", ".join(sorted(names)[:3])) or "nothing"
        contents.trouble = f"it is a zip archive without a data.pkl; it holds {some}"
        contents.todo = "if a checkpoint lies in it, unpack it first"


def _read_main(archive: zipfile.ZipFile, name: str, contents: Contents) -> None:
    contents.reading = follow(io.BytesIO(_record(archive, name, contents)))
    contents.value = contents.reading.value


def _record(archive: zipfile.ZipFile, name: str, contents: Contents) -> bytes:
    if archive.getinfo(name).file_size > LARGEST_PICKLE:
        size = spell_bytes(archive.getinfo(name).file_size)
        contents.todo = "don't load it, unless you know why it is so large"
        raise Unreadable(f"its {name.rpartition('/')[2]} would unpack to {size}")
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, ValueError) as error:
        raise Unreadable(f"its {name.rpartition('/')[2]} is damaged: {error}") from error


def _other_pickles(archive: zipfile.ZipFile, names: list[str], contents: Contents) -> None:
    """torch.load reads data.pkl alone; what else there is may be read by others."""
    size, ops = sum(archive.getinfo(name).file_size for name in names), OTHER_OPS
    for name in names:
        if size > OTHER_BYTES or ops <= 0:
            contents.notes.append(_too_many(len(names), size))
            return
        try:
            other = follow(io.BytesIO(_record(archive, name, contents)), ops)
        except Unreadable:
            ops -= OTHER_OPS // 10  # it may have been long
            continue
        ops -= other.ops
        for wanted, called in other.globals.items():
            before = contents.reading.globals.get(wanted, 0)
            contents.reading.globals[wanted] = before + called


def _too_many(count: int, size: int) -> tuple[str, str, str, str]:
    text = (
        f"Beside data.pkl it holds {count:,} more pickles, {spell_bytes(size)} unpacked. "
        "torch.load does not read them, and they were not followed here; nothing that torch.save "
        "writes looks so."
    )
    return "two-faced", "problem", text, ""


def _byte_order(archive: zipfile.ZipFile, name: str, names: list[str], contents: Contents) -> None:
    if name not in names:
        return
    order = _record(archive, name, contents).decode("latin1")
    if order not in ("little", "big"):
        contents.trouble = f"its byte order is {order[:20]!r}, and not little or big"
        contents.todo = "copy or download it again"
    elif order != sys.byteorder:
        text = f"It was written in {order}-endian byte order; torch.load turns the bytes around."
        contents.notes.append(("byte-order", "note", text, ""))


# --- a row of pickles -----------------------------------------------------------------------------


def _read_pickles(file: BinaryIO, contents: Contents) -> None:
    """The legacy format; or a pickle that torch.save did not write."""
    first = follow(file)
    if first.value != MAGIC:
        contents.format = "pickle"
        contents.reading, contents.value = first, first.value
        contents.trouble = "it is a plain pickle, which torch.save did not write"
        contents.todo = (
            "read it with the pickle module if you trust it, and save it anew with torch.save"
        )
        return
    contents.format = "legacy"
    follow(file)  # the version of the format
    follow(file)  # sizes of C types
    contents.reading = follow(file)
    contents.value = contents.reading.value
    keys = follow(file).value
    names = [str(key) for key in keys.items] if isinstance(keys, Row) else []
    widths = _widths(contents.value)
    for name in names:
        count = int.from_bytes(file.read(LEGACY_FLOOR), "little")
        contents.sizes[name] = size = count * widths.get(name, 1)
        if file.tell() + size > contents.bytes:
            contents.sizes[name] = max(0, contents.bytes - file.tell())
            break
        file.seek(size, io.SEEK_CUR)


def _widths(value: Any) -> dict[str, int]:
    """Bytes of an element, for each storage that a value looks at."""
    found: dict[str, int] = {}
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        if isinstance(one, Kept):
            key, dtype, *_ = storage_of(one)
            found[key] = itemsize(dtype)
        elif isinstance(one, Row | Table | Made):
            seen.add(id(one))
            waiting += _inside(one)
    return found


def _inside(one: Row | Table | Made) -> list[Any]:
    if isinstance(one, Row):
        return one.items
    if isinstance(one, Table):
        return [value for _, value in one.pairs]
    return [one.args, one.state, *one.items, *(value for _, value in one.pairs)]
