"""A checkpoint's record as text that reads well at 80 columns and is the same in every run."""

import textwrap
from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.checkpoints.record import CheckpointTree, Entry, Finding, ModelMatch
from pytorch_lab.checkpoints.unrun import printable
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.remark import remark_lines

MOST_ROWS = 40
NAME, WHAT, SIZE = 33, 22, 9  # widths of the columns; the marks get the rest
KINDS = {"zip": "a torch.save archive", "legacy": "torch.save's format before 1.6",
         "pickle": "a plain pickle", "safetensors": "safetensors", "index": "a sharded model",
         "dict": "in memory", "tar": "a torch 0.1 archive", "other": "unknown"}  # fmt: skip


def render(tree: CheckpointTree) -> str:
    """The rows, whether it opens, and what a person should know.

    Example:
        >>> import torch
        >>> from pytorch_lab import checkpoints
        >>> print(checkpoints.inspect({"w": torch.zeros(2, 3)}))
        a dict: in memory, 24 B
        ✓ It is a dict in memory; nothing needs to be opened.
        <BLANKLINE>
        w                                 (2, 3) float32              24 B
    """
    lines = [f"{tree.source}: {KINDS[tree.format]}, {spell_bytes(tree.bytes)}"]
    sign = {"default": "✓", "listed": "·", "moved": "·"}.get(tree.opens, "✗")
    lines += words.wrap(tree.verdict, f"{sign} ", "  ")
    lines += _rows(tree)
    lines += _matches(tree)
    lines += _findings(tree.findings)
    return "\n".join(line.rstrip() for line in lines)


def _rows(tree: CheckpointTree) -> Iterator[str]:
    marks = marked(tree)
    shown = tree.entries[1:] or ()
    for place, entry in enumerate(shown):
        if not place:
            yield ""
        if place == MOST_ROWS:
            yield f"… and {words.count(len(shown) - MOST_ROWS, 'more row')}"
            return
        name = words.clip("  " * (entry.depth - 1) + entry.name, NAME)
        size = spell_bytes(entry.bytes) if entry.bytes else ""
        what = words.clip(describe(entry), WHAT)
        line = f"{words.pad(name, NAME)} {words.pad(what, WHAT)} {size:>{SIZE}}"
        yield words.clip(f"{line}  {', '.join(marks.get(entry.path, []))}".rstrip(), words.WIDTH)


def describe(entry: Entry) -> str:
    """What a row is, in few words."""
    if entry.shape is not None:
        return f"{entry.shape} {entry.dtype}"
    if entry.text:
        return entry.text
    return entry.type


def marked(tree: CheckpointTree) -> dict[str, list[str]]:
    """Path -> the codes of the problems with it."""
    found: dict[str, list[str]] = {}
    for finding in tree.problems:
        for path in finding.paths:
            found.setdefault(path, []).append(f"✗ {finding.code}")
    return found


def _matches(tree: CheckpointTree) -> Iterator[str]:
    if tree.model is not None:
        yield ""
        yield from words.wrap(says_model(tree.model), "Model: ", "       ")
    if tree.optimizer is not None:
        fits = sum(one.verdict == "fits" for one in tree.optimizer.moments)
        text = f"{fits} of {words.count(len(tree.optimizer.moments), 'position')} fit"
        yield from words.wrap(f"{text} {tree.optimizer.optimizer}", "Optimizer: ", "           ")


def says_model(match: ModelMatch) -> str:
    """`load_state_dict` in one sentence.

    Example:
        >>> says_model(ModelMatch("Net", "", "", (), True))
        'Net would load as it stands: 0 tensors'
    """
    fits = len(match.of("loads")) + len(match.of("dtype"))
    wanted = sum(key.verdict != "unexpected" for key in match.keys)
    if match.strict:
        return f"{match.model} would load as it stands: {words.count(fits, 'tensor')}"
    parts = [f"{fits} of {words.count(wanted, 'tensor')} fit"]
    if match.prefix:
        parts[0] += f" once `{printable(match.prefix.removeprefix('…'), 60)}` is removed"
    for verdict, noun in (("missing", "missing"), ("unexpected", "unexpected"),
                          ("shape", "of another shape"), ("tied", "tied")):  # fmt: skip
        if match.of(verdict):
            parts.append(f"{len(match.of(verdict))} {noun}")
    return f"{match.model} would not load as it stands: {', '.join(parts)}"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield from remark_lines([finding])
        if finding.fix:
            yield textwrap.indent(finding.fix, "    ")
