"""Where a progress bar is drawn: a notebook's output, a terminal's line, or a file.

In a notebook each picture replaces the one before by its display id, which JupyterLab, VS Code and
Colab all know; nothing has to be listening. A terminal's line is written over. A file gets a line
at the end, one when a number breaks, and two a minute, without control codes.
"""

import shutil
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from pytorch_lab import words
from pytorch_lab.loop.progress_text import BLOCKS, Bar, Trail, line, page


class Screen(Protocol):
    """Something that can be drawn on, at most once in `every_s` seconds."""

    every_s: float

    def draw(self, bars: Sequence[Bar], trail: Trail, *, last: bool) -> None:
        """Show how far the loops are, and what was logged since the outermost began."""


class Notebook:
    """An output that is replaced."""

    every_s = 0.25

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, bars: Sequence[Bar], trail: Trail, *, last: bool) -> None:
        """Show the picture, or replace it."""
        from IPython.display import display

        bundle = {
            "text/html": page(bars, trail, last=last),
            "text/plain": line(bars, last=last),
        }
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class Terminal:
    """A line that is written over."""

    every_s = 0.1

    def __init__(self, file: Any) -> None:
        self._file = file

    def draw(self, bars: Sequence[Bar], trail: Trail, *, last: bool) -> None:
        """Write the line over the one before."""
        width = min(shutil.get_terminal_size().columns, words.WIDTH) - 1
        text = words.pad(words.clip(line(bars, last=last), width), width)
        self._file.write(_spelled(f"\r{text}\n" if last else f"\r{text}", self._file))
        self._file.flush()


class Plain:
    """A file or a pipe: few lines, no control codes."""

    every_s = 30.0

    def __init__(self, file: Any) -> None:
        self._file, self._begun = file, False

    def draw(self, bars: Sequence[Bar], trail: Trail, *, last: bool) -> None:
        """Write a line, but not for the beginning."""
        if self._begun or last:
            self._file.write(_spelled(line(bars, last=last) + "\n", self._file))
            self._file.flush()
        self._begun = True


def _spelled(text: str, file: Any) -> str:
    """The text in letters that the file can take."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate({ord(block): "#" for block in BLOCKS[1:]})
        return plain.encode(encoding, "replace").decode(encoding)
    return text


def screen(file: Any = None) -> Screen | None:
    """The one for where this runs; none in a process without any output."""
    if file is None and _in_notebook():
        return Notebook()
    file = sys.stderr if file is None else file
    if file is None:  # pythonw has no stderr
        return None
    return Terminal(file) if _is_tty(file) else Plain(file)


def _is_tty(file: Any) -> bool:
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # only something with `write`; or closed
        return False


def _in_notebook() -> bool:
    """Whether a kernel runs this; asking loads nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
