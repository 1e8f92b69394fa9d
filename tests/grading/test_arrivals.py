"""Files from strangers: no link is followed, nothing is unpacked onto the disk or read for ever."""

import io
import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.intake import arrivals
from pytorch_lab.grading.intake.arrivals import Entry, in_folder, in_zip
from pytorch_lab.grading.intake.names import NO_NAME, key, shown
from pytorch_lab.grading.notebooks import MAX_BYTES


def packed(files, method=zipfile.ZIP_DEFLATED):
    """A zip of these files, by name or by `ZipInfo`."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return stream.getvalue()


def special(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def opened(content):
    """The entries of a zip that is in memory."""
    return in_zip(Entry(("a.zip",), opened=lambda: content), "a.zip")


def only(content):
    [entry] = opened(content)
    return entry


@pytest.mark.parametrize(
    ("name", "parts", "says"),
    [
        ("../../evil.ipynb", ("evil.ipynb",), "leads out of the zip, .._.._evil.ipynb"),
        ("a/../../evil.ipynb", ("evil.ipynb",), "leads out of the zip"),
        ("..\\evil.ipynb", ("evil.ipynb",), "leads out of the zip"),
        ("/etc/evil.ipynb", ("evil.ipynb",), "has an absolute path in the zip, _etc_evil.ipynb"),
        ("\\\\server\\evil.ipynb", ("evil.ipynb",), "has an absolute path"),
        ("C:\\evil.ipynb", ("evil.ipynb",), "has an absolute path"),
        ("C:evil.ipynb", ("C:evil.ipynb",), "has an absolute path"),
        (f"{'1_' * 500}.ipynb", (f"{'1_' * 500}"[:79] + "…",), "more than 1000 characters in"),
        ("a\\b.ipynb", ("a", "b.ipynb"), ""),
        ("./a//b.ipynb", ("a", "b.ipynb"), ""),
    ],
)
def test_a_path_in_a_zip_stays_in_it(name, parts, says):
    entry = only(packed([(name, "x")]))
    assert entry.parts == parts
    assert says in entry.fault
    assert bool(says) == bool(entry.fault)
    if says:
        with pytest.raises(NotebookError, match=entry.name):
            entry.read()
    else:
        assert entry.read() == b"x"


def test_only_files_are_read_from_a_zip():
    assert only(packed([(special("a", stat.S_IFLNK | 0o777), "/etc/passwd")])).fault == (
        "is a link, not a file"
    )
    assert "a device or a pipe" in only(packed([(special("a", stat.S_IFIFO), "")])).fault
    assert only(packed([(special("a", stat.S_IFREG | 0o644), "x")])).read() == b"x"
    assert only(packed([("a/", "")])).is_folder
    nameless = (
        b"PK\x01\x02\x14\x03\x14"
        + bytes(39)
        + b"PK\x05\x06"
        + bytes(4)
        + b"\1\0\1\0.\0\0\0"
        + bytes(6)
    )
    assert only(nameless).parts == ("(no name)",)


def test_what_is_packed_to_hurt_is_not_unpacked(tmp_path: Path):
    bomb = only(packed([("a.ipynb", b"0" * 20_000_000)]))
    assert "would unpack to 1" in bomb.fault
    assert bomb.fault.endswith("times its size")
    honest = only(packed([("a.ipynb", b"0" * 5_000_000)]))
    assert len(honest.read()) == 5_000_000
    (tmp_path / "a.zip").write_bytes(
        packed([("a.ipynb", bytes(MAX_BYTES + 1))], zipfile.ZIP_STORED)
    )
    [huge] = in_zip(tmp_path / "a.zip", "a.zip")
    with pytest.raises(NotebookError, match=r"a\.ipynb is too large: expected up to 50 MB, got 50"):
        huge.read()
    assert "method 14" in only(packed([("a", "x")], zipfile.ZIP_LZMA)).fault


def test_a_zip_that_lies_about_a_size_is_still_cut():
    content = bytearray(packed([("a.ipynb", bytes(MAX_BYTES + 10))]))
    at = content.rindex(b"PK\x01\x02")
    struct.pack_into("<LL", content, at + 20, 5_000_000, 9)
    with pytest.raises(NotebookError):
        only(bytes(content)).read()


def test_encrypted_and_broken_files():
    content = bytearray(packed([("a.ipynb", "hello " * 99)]))
    for mark in (b"PK\x01\x02", b"PK\x03\x04"):
        at = content.index(mark) + (8 if mark == b"PK\x01\x02" else 6)
        content[at] |= 1
    assert only(bytes(content)).fault == "is encrypted; hand it in without a password"
    broken = bytearray(packed([("a.ipynb", "hello " * 99)]))
    broken[40:44] = b"\xff\xff\xff\xff"
    with pytest.raises(NotebookError, match=r"a\.ipynb cannot be unpacked: "):
        only(bytes(broken)).read()
    for content in (b"", b"PK", packed([("a", "x")])[:-5], b"PK\x05\x06" + b"\xff" * 18):
        with pytest.raises(NotebookError, match=r"^a\.zip (is not a zip|holds more)"):
            opened(content)


def test_a_list_of_millions_of_files_is_refused_before_it_is_read(monkeypatch):
    content = packed([(f"{number}", "") for number in range(200)])
    assert len(opened(content)) == 200
    monkeypatch.setattr(arrivals, "MAX_FILES", 199)
    with pytest.raises(NotebookError, match=r"a\.zip holds more than 199 files"):
        opened(content)
    monkeypatch.setattr(arrivals, "MAX_DIRECTORY_BYTES", 9000)
    monkeypatch.setattr(zipfile, "ZipFile", None)  # it would read the list
    with pytest.raises(NotebookError, match="holds more than"):
        opened(content)


def test_the_length_of_the_list_is_found_in_a_large_zip_too():
    content = packed([("a", "x")])
    length = struct.unpack_from("<L", content, len(content) - 10)[0]
    assert arrivals._directory_bytes(io.BytesIO(content)) == length
    record = b"PK\x06\x06" + bytes(36) + struct.pack("<QQ", 7_000_000_000, 0)
    end = b"PK\x05\x06" + bytes(8) + b"\xff" * 8 + bytes(2)
    assert arrivals._directory_bytes(io.BytesIO(record + bytes(20) + end)) == 7_000_000_000


def test_names_in_a_zip_in_whatever_encoding():
    def named(raw, flag=0):
        content = packed([("N" * len(raw), "x")]).replace(b"N" * len(raw), raw)
        if flag:
            content = bytearray(content)
            struct.pack_into("<H", content, 6, flag)
            struct.pack_into("<H", content, content.index(b"PK\x01\x02") + 8, flag)
        return only(bytes(content))

    assert named("Zoë.ipynb".encode()).parts == ("Zoë.ipynb",)  # UTF-8 that doesn't say so
    assert named("Zoë.ipynb".encode(), flag=0x800).parts == ("Zoë.ipynb",)
    assert named("Zoë.ipynb".encode("cp437")).parts == ("Zoë.ipynb",)
    assert named("Zoë.ipynb".encode()).read() == b"x"
    nul = named(b"a.ipynb\0.exe")
    assert (nul.parts, nul.fault) == (("a.ipynb .exe",), "has a NUL byte in its name")


def test_a_folder_with_traps(tmp_path: Path):
    (tmp_path / "a.ipynb").write_text("mine")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "a.ipynb")
    (tmp_path / "links").symlink_to("/")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "Thumbs.db").write_text("")
    (tmp_path / "marks").mkdir()
    faults = {e.parts: e.fault for e in in_folder(tmp_path, tmp_path / "marks")}
    assert faults == {
        ("a.ipynb",): "",
        ("link.ipynb",): "is a link, not a file",
        ("links",): "is a link, not a file",
        ("loop",): "",
        ("loop", "again"): "is a link, not a file",
        ("pipe.ipynb",): "is a device or a pipe, not a file",
    }


def test_a_file_that_turns_into_a_pipe_or_a_link_is_not_waited_for(tmp_path: Path):
    file = tmp_path / "a.ipynb"
    file.write_text("mine")
    [entry] = in_folder(tmp_path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(NotebookError, match=r"a\.ipynb cannot be read: 'no longer a file'"):
        entry.read()
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(NotebookError, match=r"a\.ipynb cannot be read: "):
        entry.read()


def test_a_huge_file_is_not_opened_and_a_deep_or_full_folder_is_cut(tmp_path: Path, monkeypatch):
    with (tmp_path / "huge.ipynb").open("wb") as huge:
        huge.truncate(200_000_000)
    deep = tmp_path / "x" / "/".join("d" * 20)
    deep.mkdir(parents=True)
    (deep / "a.ipynb").write_text("")
    entries = in_folder(tmp_path)
    with pytest.raises(NotebookError, match="got 200 MB"):
        entries[0].read()
    assert max(len(entry.parts) for entry in entries) == arrivals.MAX_DEPTH + 1
    monkeypatch.setattr(arrivals, "MAX_FILES", 3)
    assert [e.fault for e in in_folder(tmp_path)] == ["", "holds more than 3 files"]


def test_a_name_shows_nothing_that_cannot_be_seen():
    assert shown("x\u202egnp.ipynb") == "xgnp.ipynb"
    assert shown("a\tb\nc\x00\x1b[31m") == "a b c[31m"
    assert shown("../../etc") == ".._.._etc"
    assert [shown(name) for name in ("", " ", "..", "\u200b", "\ufeff.")] == [NO_NAME] * 5
    assert shown(os.fsdecode(b"Zo\xeb")) == "Zo���"  # a byte that is no text
    assert key("ZOE\u0308") == key("zoë")
    assert key("a" * 300) != key("a" * 299)
    assert shown("a" * 300) == shown("a" * 299)
