"""The lines of the functions that ran, and no others: what the player shows beside the graph."""

import inspect
import tokenize
from typing import Any

from pytorch_lab.modules.lines import spell_file


def source(record: Any) -> list[dict[str, Any]]:
    """The functions that called an op, in the order in which they first did: their lines alone.

    A stretch of lines is `{"file", "name", "first", "lines"}`, with `first` counted from 1 and the
    file's name as people write it; stretches of a file that touch or overlap are one.
    """
    found: list[dict[str, Any]] = []
    read: dict[str, list[str]] = {}
    done: set[tuple[str, int, str]] = set()
    for site in dict.fromkeys(op.site for op in record.ops if op.line):
        key = (site.file, site.first_line, site.function)
        if key in done:
            continue
        done.add(key)
        if site.file not in read:
            read[site.file] = list(record.source(site.file))
        lines = read[site.file]
        if not lines:
            continue
        first, end = _extent(lines, site)
        name = spell_file(site.file)
        stretch = {"file": site.file, "name": name, "first": first, "lines": lines[first - 1 : end]}
        found.append(stretch)
    return _joined(found)


def _extent(lines: list[str], site: Any) -> tuple[int, int]:
    """The first and the last line of the function around a site, counted from 1."""
    if site.function.endswith("<module>"):
        return 1, len(lines)
    first = max(min(site.first_line, site.line), 1)
    try:
        block = len(inspect.getblock([f"{line}\n" for line in lines[first - 1 :]]))
    except (SyntaxError, tokenize.TokenError, IndentationError):
        block = 1  # the text has changed since it ran
    return first, min(max(first + block - 1, site.end_line), len(lines))


def _joined(stretches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stretches, those of one file that overlap or touch made one, in order of appearance."""
    kept: list[dict[str, Any]] = []
    for new in stretches:
        for old in kept:
            apart = new["first"] > old["first"] + len(old["lines"])
            before = old["first"] > new["first"] + len(new["lines"])
            if old["file"] == new["file"] and not apart and not before:
                low, high = sorted((old, new), key=lambda stretch: stretch["first"])
                skip = low["first"] + len(low["lines"]) - high["first"]
                old.update(first=low["first"], lines=low["lines"] + high["lines"][skip:])
                break
        else:
            kept.append(new)
    return kept
