"""What ships with the course to learn from, so that everything runs offline.

Numbers are generated where they are needed; a text can't be.
"""

from pathlib import Path


def text() -> str:
    """A morning in a harbour: 44 lines, one sentence each, plain ASCII.

    It was written for this course and is given to the public domain (CC0).

    Example:
        >>> text().splitlines()[0]
        'The harbour wakes before the town does.'
        >>> len(text().splitlines()), len(set(text().lower().split()))
        (44, 212)
    """
    return Path(__file__).with_name("harbour.txt").read_text("utf-8")
