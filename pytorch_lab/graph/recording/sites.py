"""Which expression of the reader's own code called this op?

A place is a pair of code and offset, found by going up the frames; it costs well below a
microsecond. Python knows for each instruction the line and the columns of the expression that it
belongs to, so in `(x @ w).relu() * 2` each of the three ops has its own.

The reader's code is everything but torch, Python's own library and this package: a model of
`transformers` has its lines in `transformers`.
"""

import sysconfig
import types
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import islice
from linecache import getline
from pathlib import Path
from typing import Any

import torch

from pytorch_lab.graph.schema import NOWHERE, Site

_SKIPPED = (
    str(Path(torch.__file__).parent) + "/",
    str(Path(__file__).parents[2]) + "/",
    "<frozen ",
)
_TYPED = "<string>"  # the file of `python -c` and `exec`, and of what Python writes for a class
_STANDARD = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib")})
_INSTALLED = ("/site-packages/", "/dist-packages/")


def is_readers(file: str) -> bool:
    """Whether a line of this file is one that the reader may want to see.

    Example:
        >>> is_readers("/home/me/model.py"), is_readers(torch.nn.__file__)
        (True, False)
    """
    file = file.replace("\\", "/")
    if file.startswith(_SKIPPED):
        return False
    installed = any(part in file for part in _INSTALLED)
    return installed or not file.startswith(_STANDARD)


def is_readers_code(code: types.CodeType) -> bool:
    """Whether a function is one that the reader may want to see.

    Example:
        >>> is_readers_code(compile("x + 1", "<string>", "eval"))
        True
        >>> is_readers_code(Site.__new__.__code__)  # of a named tuple
        False
    """
    if code.co_filename != _TYPED:
        return is_readers(code.co_filename)
    of_dataclass = code.co_qualname.startswith("__create_fn__")
    of_namedtuple = code.co_varnames[:1] == ("_cls",)
    return not (of_dataclass or of_namedtuple)


class Sites:
    """The places met in one recording; each is decoded once while its code lives."""

    def __init__(self) -> None:
        # By id: a code object compares, and hashes, all that it consists of. The last item of each
        # keeps it alive, so that no other code gets its id.
        self._codes: dict[int, tuple[dict[int, Site] | None, types.CodeType]] = {}
        self.compiled = False  # whether some of the code was to be compiled

    def here(self, frame: types.FrameType | None) -> Site:
        """The innermost place of the reader's, from `frame` outwards; always the same object."""
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            known = codes.get(id(code))
            if known is None:
                known = self._meet(code)
                self.compiled = self.compiled or _is_compiled(frame)
            decoded = known[0]
            if decoded is not None:
                site = decoded.get(frame.f_lasti)
                if site is None:
                    site = decoded[frame.f_lasti] = decode(code, frame.f_lasti)
                return site
            frame = frame.f_back
        return NOWHERE

    def without_source(self) -> list[str]:
        """The files of the reader's that ops were met in, and whose text is nowhere."""
        files = {code.co_filename for decoded, code in self._codes.values() if decoded}
        return sorted(file for file in files if not getline(file, 1) and file.startswith("<"))

    def is_readers_code(self, code: types.CodeType) -> bool:
        """Whether the reader wrote it."""
        known = self._codes.get(id(code)) or self._meet(code)
        return known[0] is not None

    def _meet(self, code: types.CodeType) -> tuple[dict[int, Site] | None, types.CodeType]:
        known = self._codes[id(code)] = (_sites_in(code), code)
        return known


_decoded: dict[int, tuple[dict[int, Site] | None, weakref.ref[types.CodeType]]] = {}


def _sites_in(code: types.CodeType) -> dict[int, Site] | None:
    """What was decoded of this code by now, in any recording; None if it isn't the reader's."""
    key = id(code)
    known = _decoded.get(key)
    if known is None or known[1]() is not code:
        sites: dict[int, Site] | None = {} if is_readers_code(code) else None
        known = _decoded[key] = (sites, weakref.ref(code, partial(_forget, _decoded, key)))
    return known[0]


def _forget(decoded: dict[int, Any], key: int, _: weakref.ref[types.CodeType]) -> None:
    """Given the dict, since at Python's end some code outlives the names of this file."""
    decoded.pop(key, None)


def _is_compiled(frame: types.FrameType | None) -> bool:
    """Whether a function of `torch.compile` is running; asked once for each code that is met."""
    while frame is not None and frame.f_code.co_name != "compile_wrapper":
        frame = frame.f_back
    return frame is not None and "_dynamo" in frame.f_code.co_filename


def where_raised(error: BaseException) -> Site:
    """The innermost place of the reader's that an exception came through."""
    where = NOWHERE
    trace = error.__traceback__
    while trace is not None:
        if is_readers_code(trace.tb_frame.f_code):
            where = decode(trace.tb_frame.f_code, trace.tb_lasti)
        trace = trace.tb_next
    return where


def decode(code: types.CodeType, offset: int) -> Site:
    """The line and the columns of one instruction.

    Example:
        >>> code = compile("y = 2 * (a + b)", "model.py", "exec")
        >>> [decode(code, i).columns for i in range(0, len(code.co_code), 2)][-3]
        (0, 1)
    """
    first, last, start, end = next(
        islice(_positions(code), offset // 2, None), (None, None, None, None)
    )
    line = first or code.co_firstlineno
    columns = None
    if start is not None and end is not None:
        columns = (
            _characters(code.co_filename, line, start),
            _characters(code.co_filename, last or line, end),
        )
    return Site(
        code.co_filename, line, columns, last or line, code.co_qualname, code.co_firstlineno
    )


def _positions(code: types.CodeType) -> Iterator[tuple[int | None, ...]]:
    return iter(code.co_positions())


def _characters(file: str, line: int, count: int) -> int:
    """Python counts columns in bytes of UTF-8; `str` counts characters."""
    text = getline(file, line)
    if not text or text.isascii():
        return count
    return len(text.encode()[:count].decode(errors="ignore"))
