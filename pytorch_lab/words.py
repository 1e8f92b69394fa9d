"""Words and columns of a text: plurals, lists, what is too long, and letters two columns wide.

A terminal gives a Chinese letter or an emoji two columns, so a table counts columns and not
characters.
"""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 80  # columns of all our texts
LONGEST = 600  # characters of somebody else's message
BARS = "▁▂▃▄▅▆▇█"


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    Example:
        >>> count(1, "node"), count(2000, "node"), count(2, "leaf", "leaves")
        ('1 node', '2,000 nodes', '2 leaves')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Iterable[object]) -> str:
    """Several things as a sentence has them.

    Example:
        >>> listed(["a"]), listed(["a", "b"]), listed([1, 2, 3]), listed([])
        ('a', 'a and b', '1, 2 and 3', '')
    """
    *others, last = [str(item) for item in items] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def columns(text: str) -> int:
    """How many columns a terminal gives a text.

    Example:
        >>> columns("net"), columns("网络"), columns("é")
        (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):  # drawn over the one before it
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def clip(text: str, width: int, *, end: bool = False) -> str:
    """At most so many columns; "…" stands for what is left out.

    Args:
        text: of one line.
        width: in columns.
        end: keep the end instead of the start.

    Example:
        >>> clip("cross_entropy", 8), clip("cross_entropy", 8, end=True), clip("网络网络", 6)
        ('cross_e…', '…entropy', '网络…')
    """
    if columns(text) <= width:
        return text
    kept = ""
    for letter in reversed(text) if end else text:
        if columns(kept) + _width(letter) >= width:
            break
        kept += letter
    return "…" + kept[::-1] if end else kept + "…"


def pad(text: str, width: int) -> str:
    """With spaces behind it, up to so many columns.

    Example:
        >>> pad("网络", 6) + "|", pad("net", 6) + "|"
        ('网络  |', 'net   |')
    """
    return text + " " * (width - columns(text))


def sparkline(numbers: Sequence[float | None], width: int) -> str:
    """A row of bars from 0, or the lowest if that is negative, to the highest.

    A dot stands where there is nothing, a question mark for NaN and infinities. Where there are
    more numbers than columns, one is taken for each column.

    Example:
        >>> sparkline((0.0, 0.5, None, 1.0), 40), sparkline((-1.0, 1.0, float("nan")), 40)
        ('▁▄·█', '▁█?')
    """
    width = min(width, len(numbers))
    kept = [numbers[k * len(numbers) // width] for k in range(width)]
    finite = [number for number in kept if number is not None and math.isfinite(number)]
    low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
    return "".join(_bar(number, low, (high - low) or 1.0) for number in kept)


def _bar(number: float | None, low: float, span: float) -> str:
    if number is None:
        return "·"
    if not math.isfinite(number):
        return "?"
    return BARS[round((number - low) / span * (len(BARS) - 1) - 1e-9)]


def shortened(message: str, longest: int = LONGEST) -> str:
    """Somebody else's message, with its middle left out if it is very long.

    Example:
        >>> shortened("x" * 1000, 10)
        'xxxxx … 990 more characters … xxxxx'
    """
    if len(message) <= longest:
        return message
    half = longest // 2
    more = count(len(message) - 2 * half, "more character")
    return f"{message[:half]} … {more} … {message[-half:]}"


def message_of(error: BaseException) -> str:
    """What an exception says; one of the reader's own may raise in saying it.

    Example:
        >>> message_of(ValueError("no such layer"))
        'no such layer'
    """
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the reader's own __str__
        return "its message could not be read"


def wrap(text: str, head: str = "", indent: str = "") -> list[str]:
    """Lines of at most `WIDTH` columns, broken between words where there are any.

    Args:
        text: what to break.
        head: before the first line.
        indent: before all others.

    Example:
        >>> wrap("一" * 40 + " end", head="Note  ", indent=" " * 6)[1]
        '      一一一 end'
    """
    lines, line = [], head
    for word in _pieces(text, WIDTH - columns(max(head, indent, key=columns))):
        space = " " if line not in (head, indent) else ""
        if columns(line) + len(space) + columns(word) > WIDTH and space:
            lines.append(line)
            line, space = indent, ""
        line += space + word
    return [*lines, line.rstrip()]


def _pieces(text: str, width: int) -> Iterator[str]:
    """The words; one that is wider than a line in parts."""
    for word in text.split():
        piece = ""
        for letter in word:
            if columns(piece) + _width(letter) > width:
                yield piece
                piece = ""
            piece += letter
        yield piece
