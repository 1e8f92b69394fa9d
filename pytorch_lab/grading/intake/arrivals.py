"""What arrived, file by file: a folder, or a zip, which is read in memory and never unpacked.

What comes from strangers can be a trap: a link to a file of yours, a pipe that never ends, a zip
whose files claim places outside of it or grow without end. Here every file gets either a way to
read it, up to a limit, or the fault for which it isn't read. Nothing is written anywhere.

A zip in a zip is a file like any other; whoever wants to look into it calls `in_zip` again.
"""

import functools
import io
import os
import re
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.intake.names import shown
from pytorch_lab.grading.notebooks import MAX_BYTES, why_not

MAX_FILES = 100_000  # in a zip, or in one student's folder
MAX_DIRECTORY_BYTES = 20_000_000  # of a zip: the list of its files, which is read at once
MAX_DEPTH = 8  # folders in each other that are looked through
MAX_PATH = 1000  # characters of a path in a zip
MAX_RATIO = 200  # how much smaller a zip may make a file of more than a few MB
_FEW_BYTES = 10_000_000
_UTF_8 = 0x800  # a zip's flag: the name of this file is UTF-8
_ENCRYPTED = 0x1
_JUNK = {"__macosx", "__pycache__", "thumbs.db", "desktop.ini"}
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class Entry:
    """A file, or a folder, of what arrived.

    Attributes:
        parts: its path, without the name of what it came in.
        fault: why it is not read; empty when it can be.
        is_folder: whether it is a folder.
        size: in bytes, as far as is said before it is read.
        modified: seconds since 1970; in a zip by the clock of whoever made it.
        source: the name of the zip that it came in, or nothing.
        path: where it lies, unless it is in a zip.
    """

    parts: tuple[str, ...]
    fault: str = ""
    is_folder: bool = False
    size: int = 0
    modified: float = 0.0
    source: str = ""
    path: Path | None = None
    opened: Callable[[], bytes] = bytes

    @property
    def name(self) -> str:
        """Its own name, as it can be shown."""
        return shown(self.parts[-1])

    def read(self) -> bytes:
        """What it holds.

        Raises:
            NotebookError: it is not to be read, is too large, or cannot be read.
        """
        if self.fault:
            raise NotebookError(f"{self.name} {self.fault}")
        if self.size > MAX_BYTES:
            raise _too_large(self.name, f"{self.size / 1e6:.0f} MB")
        try:
            content = self.opened()
        except OSError as error:
            raise NotebookError(f"{self.name} cannot be read: {why_not(error)}") from None
        except _BROKEN as error:
            raise NotebookError(f"{self.name} cannot be unpacked: {error}") from None
        if len(content) > MAX_BYTES:
            raise _too_large(self.name, "more than it said")
        return content


def _too_large(name: str, came: str) -> NotebookError:
    return NotebookError(f"{name} is too large: expected up to {MAX_BYTES // 10**6} MB, got {came}")


def in_folder(folder: Path, leave_out: Path | None = None) -> list[Entry]:
    """What lies in a folder, sorted by name; no link is followed.

    Args:
        folder: one that can be listed.
        leave_out: a folder in it that is no part of it.

    Raises:
        OSError: the folder cannot be listed.
    """
    found = []
    for item in sorted(os.scandir(folder), key=lambda item: item.name):
        if is_junk((item.name,)):
            continue
        if leave_out is not None and Path(item.path).resolve() == leave_out.resolve():
            continue
        below: list[Entry] = []
        for entry in _walk(Path(item.path), (item.name,)):
            below.append(entry)
            if len(below) > MAX_FILES:
                below = [replace(below[0], fault=f"holds more than {MAX_FILES} files")]
                break
        found += below
    return found


def _walk(path: Path, parts: tuple[str, ...]) -> Iterator[Entry]:
    """A file as one entry; a folder, followed by what is in it."""
    try:
        known = path.lstat()
        kind = stat.S_IFMT(known.st_mode)
        if kind == stat.S_IFREG:
            yield Entry(
                parts,
                size=known.st_size,
                modified=known.st_mtime,
                path=path,
                opened=lambda: _content(path),
            )
            return
        if kind != stat.S_IFDIR:
            yield Entry(parts, fault=_not_a_file(kind))
            return
        inside = sorted(os.listdir(path)) if len(parts) <= MAX_DEPTH else []
    except OSError as error:
        yield Entry(parts, fault=f"cannot be read: {why_not(error)}")
        return
    yield Entry(parts, is_folder=True)
    for name in inside:
        if not is_junk((name,)):
            yield from _walk(path / name, (*parts, name))


def _not_a_file(kind: int) -> str:
    return "is a link, not a file" if kind == stat.S_IFLNK else "is a device or a pipe, not a file"


def _content(path: Path) -> bytes:
    """What a file holds, if it still is one; a pipe put in its place is not waited for."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    careful |= getattr(os, "O_BINARY", 0)
    with open(os.open(path, os.O_RDONLY | careful), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(0, "no longer a file")
        return stream.read(MAX_BYTES + 1)


def is_junk(parts: tuple[str, ...]) -> bool:
    """Whether it is a hidden file, or one that a system leaves behind.

    Example:
        >>> is_junk(("ada", ".ipynb_checkpoints", "a.ipynb")), is_junk(("ada", "a.ipynb"))
        (True, False)
    """
    return any(part.startswith(".") or part.lower() in _JUNK for part in parts)


def in_zip(given: Path | Entry, name: str) -> list[Entry]:
    """What is in a zip, sorted by path.

    Args:
        given: the zip as a file, or as an entry, which is read again for each file in it: a class
            of zips need not be held in memory.
        name: what it is called, for the messages.

    Raises:
        NotebookError: it is no zip, a broken one, or it holds too much.

    Example:
        >>> in_zip(Entry(("a.zip",), opened=lambda: b"text"), "a.zip")
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: a.zip is not a zip that can be read: ...
    """
    try:
        with given.open("rb") if isinstance(given, Path) else io.BytesIO(given.read()) as stream:
            if _directory_bytes(stream) > MAX_DIRECTORY_BYTES:
                raise NotebookError(f"{name} holds more than {MAX_FILES} files")
        archive = _archive(given)
        every = archive.infolist()
    except OSError as error:
        raise NotebookError(f"{name} cannot be read: {why_not(error)}") from None
    except _BROKEN as error:
        raise NotebookError(f"{name} is not a zip that can be read: {error}") from None
    if len(every) > MAX_FILES:
        raise NotebookError(f"{name} holds more than {MAX_FILES} files")
    opened = functools.partial(_archive, given) if isinstance(given, Entry) else lambda: archive
    made = [_member(opened, info, name) for info in every]
    return sorted((entry for entry in made if not is_junk(entry.parts)), key=lambda e: e.parts)


def _archive(given: Path | Entry) -> zipfile.ZipFile:
    return zipfile.ZipFile(given if isinstance(given, Path) else io.BytesIO(given.read()))


def _directory_bytes(stream: io.BufferedIOBase | io.BytesIO | io.BufferedReader) -> int:
    """How long the list of a zip's files is, before anything reads it into memory."""
    stream.seek(0, io.SEEK_END)
    stream.seek(max(0, stream.tell() - 66_000))
    tail = stream.read()
    found = [0]
    for at in (match.start() for match in re.finditer(rb"PK\x05\x06", tail)):
        found += struct.unpack_from("<L", tail.ljust(at + 22), at + 12)
    if 0xFFFFFFFF in found:  # the length is in the record that zips beyond 4 GB have
        found = [size for size in found if size != 0xFFFFFFFF]
        for at in (match.start() for match in re.finditer(rb"PK\x06\x06", tail)):
            found += struct.unpack_from("<Q", tail.ljust(at + 56), at + 40)
    return max(found)


def _member(archive: Callable[[], zipfile.ZipFile], info: zipfile.ZipInfo, source: str) -> Entry:
    path = _name(info)
    parts, fault = _place(path)
    kind = stat.S_IFMT(info.external_attr >> 16)
    is_folder = path.endswith(("/", "\\"))  # is_dir() fails for an empty name
    if not fault and not is_folder:
        fault = _fault(info, kind)
    return Entry(
        parts,
        fault,
        is_folder=is_folder and not fault,
        size=info.file_size,
        modified=_modified(info),
        source=source,
        opened=lambda: _unpacked(archive(), info),
    )


def _fault(info: zipfile.ZipInfo, kind: int) -> str:
    if kind not in (0, stat.S_IFREG):
        return _not_a_file(kind)
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted; hand it in without a password"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"is packed in a way that is not read (method {info.compress_type})"
    if info.file_size > max(_FEW_BYTES, MAX_RATIO * info.compress_size):
        return f"would unpack to {info.file_size / max(1, info.compress_size):.0f} times its size"
    return ""


def _name(info: zipfile.ZipInfo) -> str:
    """A file's name in a zip; many programs write UTF-8 without saying so."""
    if info.flag_bits & _UTF_8:
        return info.orig_filename
    try:
        return info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename


def _place(path: str) -> tuple[tuple[str, ...], str]:
    """The parts of a path in a zip, or its last part and why it is not taken for one."""
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".")]
    last = (parts or ["(no name)"])[-1:]
    if len(path) > MAX_PATH:
        return (shown(last[0]),), f"has a path of more than {MAX_PATH} characters in the zip"
    if "\0" in path:
        return (last[0].replace("\0", " "),), "has a NUL byte in its name"
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", path):
        return tuple(last), f"has an absolute path in the zip, {shown(path)}"
    if ".." in parts:
        name = last if last != [".."] else ["(no name)"]
        return tuple(name), f"has a path that leads out of the zip, {shown(path)}"
    return tuple(parts or last), ""


def _modified(info: zipfile.ZipInfo) -> float:
    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as stream:
        return stream.read(MAX_BYTES + 1)
