"""Students' names as they can be shown, and when two of them are one.

A name comes from a file's name or a form that a stranger filled in: it may hold characters that
turn the line around, line ends, bytes that are no text, or nothing at all.
"""

import re
import unicodedata

MAX_LETTERS = 80
NO_NAME = "(no name)"
_JOINERS = "\u200c\u200d"  # they shape letters in Persian and in Indic scripts


def shown(name: str) -> str:
    r"""A name without characters that cannot be seen, in the usual form of Unicode, and not long.

    Example:
        >>> shown("A\u030asa\u202e \n Ek/"), shown("\u200b"), len(shown("a" * 500))
        ('Åsa Ek_', '(no name)', 80)
    """
    made = _visible(name)
    return made if len(made) <= MAX_LETTERS else made[: MAX_LETTERS - 1] + "…"


def _visible(name: str) -> str:
    plain = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    spaced = " ".join(unicodedata.normalize("NFC", plain).split())
    seen = "".join(
        letter for letter in spaced if letter in _JOINERS or unicodedata.category(letter)[0] != "C"
    )
    made = re.sub(r"[/\\]", "_", seen).strip(" " + _JOINERS)
    return made if made.strip("._ ") else NO_NAME


def key(name: str) -> str:
    r"""The same for names that one file system or another takes for one.

    Example:
        >>> key("A\u030asa") == key("åSA"), key("Ada") == key("Bob")
        (True, False)
    """
    bare = "".join(letter for letter in _visible(name) if letter not in _JOINERS)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", bare).casefold())


def unused(name: str, keys: set[str]) -> str:
    """The name, or the first of `name (2)`, `name (3)`, … whose key is none of these.

    Example:
        >>> unused("Ada", {"ada", "ada (2)"})
        'Ada (3)'
    """
    number, made = 1, name
    while key(made) in keys:
        number += 1
        end = f" ({number})"
        made = name[: MAX_LETTERS - len(end)] + end
    return made
