"""How a sentence of a lesson is written for each kind of reader.

Sentences may hold `code` and **bold**, nothing else. `base.js` has the same rule in `prose()`;
here are the two spellings for readers without JavaScript.
"""

import html
import re
import textwrap
from typing import Any

from pytorch_lab.errors import UsageError

WIDTH = 78  # columns of our text/plain, so that it fits 80


def to_html(sentence: str) -> str:
    """The sentence as HTML.

    Example:
        >>> to_html("a `list` is **not** < registered")
        'a <code>list</code> is <strong>not</strong> &lt; registered'
    """
    escaped = html.escape(sentence, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)


def to_text(sentence: str, indent: str = "", first: str | None = None) -> str:
    """The sentence for a terminal: no marks of bold, wrapped; `first` opens the first line.

    Example:
        >>> print(to_text("a `list` is **not** registered", first="- "))
        - a `list` is not registered
    """
    plain = re.sub(r"\*\*([^*]+)\*\*", r"\1", sentence)
    opening = indent if first is None else first
    return textwrap.fill(plain, WIDTH, initial_indent=opening, subsequent_indent=indent)


def sentence(where: str, what: str, got: Any) -> str:
    """`got`, if it is a text that says something.

    Raises:
        UsageError: it is no text, or an empty one.
    """
    if not isinstance(got, str) or not got.strip():
        raise UsageError(f"{where} expected {what} as a sentence, got {got!r}; write one.")
    return got.strip()
