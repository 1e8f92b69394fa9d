"""The X-ray of a module: what it registers in green, what it hides in red, and the fix.

    lab.show(model)                  # looks at the model, changes nothing
    lab.show(model, x)               # and runs one forward: output shapes, calls, unused parameters

Fold and unfold, search, choose columns, click a row for all that is known of it. The three lenses
ask one question each of every row: is it registered? would `to(device)` move it? would `eval()`
reach it?
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

from pytorch_lab import words
from pytorch_lab.modules.record import ModuleTree
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.widgets.base import LabWidget
from pytorch_lab.widgets.xray_rows import Row, fold_repeats, rows
from pytorch_lab.widgets.xray_still import picture

OPEN_ROWS = 40  # how many rows a model opens with, at most

# key, heading, width in pixels, numbers at the right edge, which go first where room is short
COLUMNS = (
    ("shape", "Shape", 108, False, 1),
    ("parameters", "Parameters", 104, True, 0),
    ("output", "Output", 132, False, 2),
    ("dtype", "Dtype", 80, False, 3),
    ("device", "Device", 76, False, 4),
    ("bytes", "Bytes", 76, True, 5),
    ("calls", "Calls", 60, True, 6),
    ("mode", "Mode", 60, False, 7),
)

# What a badge means: its colour, and its sentence.
LEGEND = {
    "frozen": ("blue", "requires_grad is False: the optimizer would not change it"),
    "shared": ("blue", "one and the same object under several names; it is counted once"),
    "train": ("warn", "in train mode, while the root is in eval mode"),
    "eval": ("warn", "in eval mode, while the root is in train mode"),
    "not saved": ("quiet", "a buffer with persistent=False: state_dict() leaves it out"),
    "lazy": ("warn", "its shape is known after the first forward"),
    "unused": ("warn", "it had no part in the output, so backward() gives it no gradient"),
}


class Xray(LabWidget, stem="xray"):
    """The picture of a `ModuleTree`.

    Example:
        >>> from torch import nn
        >>> from pytorch_lab import modules
        >>> Xray(modules.describe(nn.Linear(4, 2))).state["finding"]
        'All 10 parameters are registered'

    Args:
        tree: what `modules.describe` found.
    """

    shared = ("base", "tree")

    def __init__(self, tree: ModuleTree) -> None:
        self.tree = tree
        self.root = rows(tree)
        if _count(self.root) > OPEN_ROWS:
            fold_repeats(self.root)
        self.opened = opened(self.root)
        super().__init__(_state(tree, self.root, self.opened))

    def to_html(self) -> str:
        """The default view as a picture."""
        return picture(self.state, self.root, self.opened)

    def __str__(self) -> str:
        return str(self.tree)


def _count(root: Row) -> int:
    return sum(1 for _ in root.walk())


def opened(root: Row, limit: int = OPEN_ROWS) -> set[int]:
    """The `id`s of the rows that are unfolded at first.

    First the way to what is invisible, then level by level, while at most `limit` rows show.
    """
    is_open = {id(root)}
    shown = 1 + len(root.kids)
    for row in [*_ways_to_invisible(root), *_by_level(root)]:
        if id(row) not in is_open and shown + len(row.kids) <= limit:
            is_open.add(id(row))
            shown += len(row.kids)
    return is_open


def _by_level(root: Row) -> Iterator[Row]:
    """Rows with something below them, the upper levels first; equal neighbours stay folded."""
    queue = deque(root.kids)
    while queue:
        row = queue.popleft()
        if row.kids and row.kind != "repeat":
            yield row
            queue.extend(row.kids)


def _ways_to_invisible(root: Row) -> list[Row]:
    """The rows above something invisible, a parent before its children; one of equal neighbours."""
    order, waiting = [], [root]
    while waiting:
        row = waiting.pop()
        order.append(row)
        waiting += reversed(_one_of_equals(row))
    leads: set[int] = set()
    for row in reversed(order):
        folded = row.kind == "repeat" and not row.registered  # its line says it all
        holds = bool(row.kids) and not row.registered and not folded
        if holds or any(id(kid) in leads for kid in _one_of_equals(row)):
            leads.add(id(row))
    return [row for row in order if id(row) in leads]


def _one_of_equals(row: Row) -> list[Row]:
    return row.kids[:1] if row.kind == "repeat" else row.kids


def _state(tree: ModuleTree, root: Row, is_open: set[int]) -> dict[str, Any]:
    listed = list(root.walk())
    badges = {badge: None for row in listed for badge in row.badges}
    lenses = _lenses(tree, root)
    return {
        "type": tree.type,
        "finding": lenses[0]["finding"],
        "good": lenses[0]["good"],
        "totals": _totals(tree, _hidden(root)),
        "lenses": lenses,
        "columns": _columns(tree),
        "legend": {badge: _meaning(badge) for badge in badges},
        "open": [i for i, row in enumerate(listed) if id(row) in is_open],
        "selected": _worst(root, listed, is_open),
        **packed(root, COLUMNS),
    }


def _worst(root: Row, listed: list[Row], is_open: set[int]) -> int | None:
    """The index of the row whose details are open at first.

    It is the invisible one with most parameters among those that show, the first of equals.
    """
    shown = {id(row) for row, _ in root.levels(is_open)}
    hidden = [
        (i, row.n_parameters)
        for i, row in enumerate(listed)
        if not row.registered
        and id(row) in shown
        and (row.kind != "holder" or id(row) not in is_open)
    ]
    return max(hidden, key=lambda found: found[1])[0] if hidden else None


def _meaning(badge: str) -> list[str]:
    if badge in LEGEND:
        return list(LEGEND[badge])
    if badge.startswith("×"):
        return ["quiet", f"{badge[2:]} neighbours with the same type and structure"]
    _, word, _ = badge.split(" ")
    colour = {"invisible": "bad", "unused": "warn"}.get(word, "blue")
    return [colour, f"unfold it, or search for “{word}”"]


def packed(root: Row, columns: tuple[tuple[Any, ...], ...]) -> dict[str, Any]:
    """Rows as numbers: equal strings are sent once, and equal rows but for their name once."""
    words: dict[str, int] = {}
    bodies: dict[tuple[int, ...], int] = {}
    flat: list[int] = []

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    for row, level in root.levels():
        cells = row.cells | {
            "parameters": f"{row.n_parameters:,}" if row.n_parameters else "",
            "bytes": spell_bytes(row.n_bytes) if row.n_bytes else "",
        }
        facts = "\n".join(f"{label}\t{text}" for label, text in row.facts)
        body = (
            word(row.kind), word(row.type), int(row.registered), *map(word, row.status),
            word("\t".join(row.badges)), word(facts),
            *(word(cells.get(key, "")) for key, *_ in columns),
        )  # fmt: skip
        flat.extend((level, word(row.name), bodies.setdefault(body, len(bodies))))
    return {"words": list(words), "bodies": [list(body) for body in bodies], "rows": flat}


def _columns(tree: ModuleTree) -> list[dict[str, Any]]:
    run = any(info.calls is not None for info in tree.modules)
    tensors = [tensor for info in tree.modules for tensor in info.tensors]
    shown = {"shape", "parameters"}
    if run:
        shown.add("output")
    if len({tensor.device for tensor in tensors}) > 1:
        shown.add("device")
    if len({tensor.dtype for tensor in tensors if tensor.kind == "parameter"}) > 1:
        shown.add("dtype")
    return [
        {
            "key": key,
            "label": label,
            "width": width,
            "end": end,
            "rank": rank,
            "shown": key in shown,
            "missing": "" if run or key not in ("output", "calls") else "needs an example input",
        }
        for key, label, width, end, rank in COLUMNS
    ]


def _totals(tree: ModuleTree, hidden: list[Row]) -> list[str]:
    frozen = tree.n_parameters - tree.n_trainable
    return [
        *([f"{tree.n_parameters:,} registered"] if hidden else []),
        "all trainable" if frozen == 0 else f"{tree.n_trainable:,} trainable, {frozen:,} frozen",
        spell_bytes(tree.bytes),
        words.count(len(tree.modules), "module"),
        f"{'train' if tree.training else 'eval'} mode",
        *([f"{len(tree.shared)} shared"] if tree.shared else []),
        *([f"{len(tree.unused)} unused"] if tree.unused else []),
        *([f"{len(tree.lazy)} lazy"] if tree.lazy else []),
    ]


# --- the three questions --------------------------------------------------------------------------


def _hidden(root: Row) -> list[Row]:
    """What is invisible, without what lies inside another invisible thing."""
    found: list[Row] = []
    stack = [root]
    while stack:
        row = stack.pop()
        if not row.registered and row.kind not in ("holder", "repeat"):
            found.append(row)
        else:
            stack.extend(reversed(row.kids))
    return found


def _lenses(tree: ModuleTree, root: Row) -> list[dict[str, Any]]:
    hidden = _hidden(root)
    questions = (
        ("registered", "Registered", "Status", _finding(tree, hidden)),
        ("move", "to(device) moves", "to(device)", _moves(tree, hidden)),
        ("switch", "eval() switches", "eval()", _switches(tree, hidden)),
    )
    return [
        {"key": key, "label": label, "heading": heading, "finding": finding, "good": good}
        for key, label, heading, (finding, good) in questions
    ]


def _finding(tree: ModuleTree, hidden: list[Row]) -> tuple[str, bool]:
    unseen = sum(row.n_parameters for row in hidden)
    if unseen:
        total = words.count(tree.n_parameters + unseen, "parameter")
        return f"{total}, {unseen:,} of them invisible to the optimizer", False
    if tree.n_parameters == 1:
        text = "The only parameter is registered"
    elif tree.n_parameters:
        text = f"All {tree.n_parameters:,} parameters are registered"
    elif tree.lazy:
        text = f"{words.count(len(tree.lazy), 'tensor')} without a shape until the first forward"
    else:
        text = "No parameters"
    if hidden:
        return f"{text}, but {_things(hidden)} {_verb(hidden, 'is', 'are')} not", False
    return text, True


def _moves(tree: ModuleTree, hidden: list[Row]) -> tuple[str, bool]:
    tensors = [tensor for info in tree.modules for tensor in info.tensors]
    empty = sum(tensor.device == "meta" for tensor in tensors)
    stay = [row for row in hidden if row.kind != "module" or row.n_parameters]
    moving = words.count(len(tensors) - empty, "tensor")
    if empty:
        meta = words.count(empty, "tensor")
        return f"to(device) fails: {meta} on meta without data; use to_empty(device=…)", False
    if stay:
        return f"to(device) would move {moving} and leave {_things(stay)} behind", False
    if not tensors:
        return "to(device) has nothing to move", True
    return (
        f"to(device) would move {'its only tensor' if len(tensors) == 1 else f'all {moving}'}",
        True,
    )


def _switches(tree: ModuleTree, hidden: list[Row]) -> tuple[str, bool]:
    training = sum(info.training for info in tree.modules)
    missed = [row for row in hidden if row.kind == "module"]
    text = f"eval() would switch {words.count(training, 'module')}"
    if not training:
        text = "Every registered module is in eval mode already"
    if missed:
        kinds = ", ".join(dict.fromkeys(row.type for row in missed))
        return f"{text} and not reach {_things(missed)} ({kinds})", False
    return text, True


def _things(hidden: list[Row]) -> str:
    """`2 layers and 1 tensor`, by what they are."""
    nouns = {"module": "layer", "parameter": "parameter tensor", "tensor": "tensor"}
    counts = {noun: sum(row.kind == kind for row in hidden) for kind, noun in nouns.items()}
    said = [words.count(count, noun) for noun, count in counts.items() if count]
    return words.listed(said)


def _verb(hidden: list[Row], one: str, many: str) -> str:
    return one if len(hidden) == 1 else many
