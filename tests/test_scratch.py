"""A folder that a stranger's code has filled goes, whatever is in it."""

import os
import subprocess
import sys

import pytest

from pytorch_lab import scratch

LEVELS = 2_100  # of two characters each; a path ends at 4096, Python's recursion at 1000


def dig(folder):
    """A tree too deep for any path, and for a recursion."""
    code = "import os\nfor _ in range({}): os.mkdir('d'); os.chdir('d')\nopen('f', 'w')"
    subprocess.run([sys.executable, "-c", code.format(LEVELS)], cwd=folder, check=True)


def test_a_tree_too_deep_for_any_path(tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    dig(folder)
    scratch.remove(folder)
    assert not folder.exists()


def test_closed_folders_links_and_odd_names(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o755)
    (kept / "file").write_text("x")
    folder = tmp_path / "odd"
    for name in ("a/b/c", "a/d", "e"):
        (folder / name).mkdir(parents=True)
        (folder / name / os.fsdecode(b"\xff\n")).write_text("x")
    (folder / "link").symlink_to(kept)
    (folder / "a" / "link").symlink_to(kept)
    (folder / "hard").hardlink_to(kept / "file")
    for name in ("a/b/c", "a/b", "a", "e"):
        (folder / name).chmod(0)
    scratch.remove(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "x"
    assert kept.stat().st_mode & 0o777 == 0o755


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    scratch.remove(tmp_path / "link")
    scratch.remove(tmp_path / "absent")
    assert kept.exists()


def test_what_a_dead_process_left_is_swept_however_deep(tmp_path, monkeypatch):
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    left = tmp_path / f"pytorch-lab-warm-{int(ended.stdout)}-abc"
    left.mkdir()
    dig(left)
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    made = scratch.make("doctest")
    assert [made] == list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave what another user cannot touch")
def test_what_belongs_to_another_stays_without_a_word(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    code = f"""
import os
from pathlib import Path
from pytorch_lab import scratch
os.setuid(65534)
scratch.remove(Path({str(tmp_path / "theirs")!r}))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "theirs").exists()
