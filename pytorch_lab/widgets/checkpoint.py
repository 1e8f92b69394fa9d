"""The X-ray of a checkpoint: what is in a file, what would load in green, what would not in red.

    lab.show("best.pt")                          # looks at the file, runs nothing of it
    lab.show("best.pt", model, optimizer)        # and says what would load into these

It is drawn as a module is: fold, search, choose columns, click a row for all that is known of it.
The lenses ask of every row: is it sound? would it load into the model? into the optimizer?
"""

from typing import Any

from pytorch_lab import words
from pytorch_lab.checkpoints.record import CheckpointTree, Entry, Finding, KeyMatch, Moment
from pytorch_lab.checkpoints.text import KINDS, says_model
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.widgets.base import LabWidget
from pytorch_lab.widgets.xray import OPEN_ROWS, Xray, packed
from pytorch_lab.widgets.xray_rows import Row
from pytorch_lab.widgets.xray_still import picture

# key, heading, width in pixels, numbers at the right edge, which go first where room is short
COLUMNS = (
    ("shape", "Shape or value", 168, False, 0),
    ("bytes", "Bytes", 84, True, 1),
    ("device", "Device", 76, False, 3),
    ("storage", "Storage", 76, True, 4),
)
# What a finding's code says of a row, in the lens of the file.
WORDS = {
    "drags": "-drags more", "alias": "-live weights", "other-device": "-not here",
    "cut-short": "-cut short", "whole-module": "-whole module", "refused": "-refused",
}  # fmt: skip
KEYS = {
    "loads": "+loads", "dtype": "+loads, cast", "shape": "-other shape",
    "unexpected": "-unexpected", "missing": "-missing", "tied": " tied",
}  # fmt: skip
MOMENTS = {"fits": "+fits", "shape": "-other shape", "other": "-other weight",
           "nothing": "-no parameter"}  # fmt: skip
VERDICTS = {"default": "+allowed", "listable": "-to allow", "unknown": "-needs trust",
            "dangerous": "-dangerous"}  # fmt: skip


# What a finding is called in the tree.
TITLES = {
    "danger": "runs foreign code", "refused": "refused by default",
    "whole-module": "a whole module",
    "other-device": "another device", "cut-short": "cut short", "drags": "drags a storage",
    "alias": "live weights", "shared": "shared memory", "no-state-dict": "no state dict",
    "prefix": "a prefix", "wrapped-model": "a wrapped model", "nothing-fits": "nothing fits",
    "strict-false-hides": "strict=False hides it", "shape": "other shapes",
    "missing": "missing parameters", "missing-buffers": "missing buffers",
    "unexpected": "unexpected names", "tied": "tied weights", "dtype": "other dtypes",
    "optimizer-of-another": "a stale optimizer", "no-optimizer": "no optimizer state",
    "groups": "other groups", "moments": "moments of others", "settings": "settings win",
    "scheduler-settings": "the scheduler's settings", "two-faced": "reads in two ways",
    "wrong-name": "a name that misleads", "byte-order": "byte order", "metadata": "metadata",
}  # fmt: skip


class Checkpoint(Xray):
    """The picture of a `CheckpointTree`.

    Example:
        >>> import torch
        >>> from pytorch_lab import checkpoints
        >>> tree = checkpoints.inspect({"w": torch.zeros(2)})
        >>> Checkpoint(tree).state["finding"]
        'It is a dict in memory; nothing needs to be opened.'

    Args:
        tree: what `checkpoints.inspect` found.
    """

    def __init__(self, tree: CheckpointTree) -> None:
        self.checkpoint = tree
        self.root = _Rows(tree).build()
        self.opened = _opened(self.root)
        LabWidget.__init__(self, _state(tree, self.root, self.opened))

    def to_html(self) -> str:
        """The default view as a picture."""
        return picture(self.state, self.root, self.opened)

    def __str__(self) -> str:
        return str(self.checkpoint)


class _Rows:
    """A row for each entry, and before them what to know: findings, and names asked for."""

    def __init__(self, tree: CheckpointTree) -> None:
        self.tree = tree
        self.about: dict[str, list[Finding]] = {}
        for finding in tree.findings:
            for path in finding.paths:
                self.about.setdefault(path, []).append(finding)
        keys = tree.model.keys if tree.model is not None else ()
        self.keys = {key.path: key for key in keys if key.path}
        self.moments = {m.path: m for m in (tree.optimizer.moments if tree.optimizer else ())}

    def build(self) -> Row:
        tree = self.tree
        first = tree.entries[0] if tree.entries else Entry("", "", 0, "cut", "")
        root = self._row(first)
        root.name, root.kind, root.type = tree.source, "root", first.type or KINDS[tree.format]
        root.kids += [*self._findings(), *self._names(), *self._absent()]
        above = [root]
        for entry in tree.entries[1:]:
            row = self._row(entry)
            del above[entry.depth :]
            above[-1].kids.append(row)
            above.append(row)
        return root

    def _row(self, entry: Entry) -> Row:
        status = (self._of_file(entry), self._of_model(entry), self._of_optimizer(entry))
        kind = "" if entry.type == "Tensor" else entry.type
        shown = {
            "shape": f"{entry.shape} {entry.dtype}" if entry.shape is not None else entry.text,
            "device": entry.device,
            "bytes": spell_bytes(entry.bytes) if entry.bytes else "",
            "storage": spell_bytes(entry.stored_bytes) if entry.storage else "",
        }
        return Row(
            entry.name, entry.kind, kind, not status[0].startswith("-"), status,
            ("requires grad",) if entry.requires_grad else (), shown, self._facts(entry),
            n_bytes=entry.bytes,
        )  # fmt: skip

    def _of_file(self, entry: Entry) -> str:
        words = [WORDS[f.code] for f in self.about.get(entry.path, ()) if f.code in WORDS]
        if words:
            return words[0]
        if any(f.code == "shared" for f in self.about.get(entry.path, ())):
            return " shares memory"
        return "+whole" if entry.kind == "tensor" else " "

    def _of_model(self, entry: Entry) -> str:
        key = self.keys.get(entry.path)
        return KEYS[key.verdict] if key is not None else " "

    def _of_optimizer(self, entry: Entry) -> str:
        moment = self.moments.get(entry.path)
        return MOMENTS[moment.verdict] if moment is not None else " "

    def _facts(self, entry: Entry) -> tuple[tuple[str, str], ...]:
        found = [("In Python", f"checkpoint{entry.path}")] if entry.path else []
        findings = self.about.get(entry.path, [])
        if findings:
            found.append(("Why", " ".join(f.text for f in findings)))
            found += [("Code", _one_line(f.fix)) for f in findings[:1] if f.fix]
        key, moment = self.keys.get(entry.path), self.moments.get(entry.path)
        if key is not None and key.in_model:
            found += [("Name in the model", key.key), ("In the model", key.in_model)]
        if moment is not None:
            found += _of_moment(moment)
        if entry.storage:
            found.append(("Its storage", f"{entry.storage}, {spell_bytes(entry.stored_bytes)}"))
        return tuple(found)

    def _findings(self) -> list[Row]:
        if not self.tree.findings:
            return []
        rows = [_finding(one) for one in self.tree.findings]
        return [Row("what to know", "holder", words.count(len(rows), "finding"), kids=rows)]

    def _names(self) -> list[Row]:
        odd = [one for one in self.tree.needed if one.verdict != "default"]
        rows = [
            Row(
                one.name, "name", "", False, (VERDICTS[one.verdict], " ", " "),
                cells={"shape": f"called {one.called}×" if one.called else "named"},
                facts=(("Why", one.why),),
            )
            for one in odd
        ]  # fmt: skip
        kind = words.count(len(odd), "name")
        return [Row("names it asks for", "holder", kind, kids=rows)] if rows else []

    def _absent(self) -> list[Row]:
        match = self.tree.model
        gone = [] if match is None else [*match.of("missing"), *match.of("tied")]
        rows = [_missing(key) for key in gone]
        kind = words.count(len(rows), "tensor")
        return [Row("not in the file", "holder", kind, kids=rows)] if rows else []


def _finding(one: Finding) -> Row:
    sign = "-" if one.level == "problem" else " "
    facts = [("Why", one.text)]
    if one.fix:
        facts.append(("Code", _one_line(one.fix)))
    word = f"{sign}{one.level}"
    return Row(TITLES[one.code], "finding", "", sign != "-", (word, word, word), facts=tuple(facts))


def _one_line(code: str) -> str:
    """Code as a fact: the facts of a row are sent in lines."""
    return code.replace("\n", "\v")


def _missing(key: KeyMatch) -> Row:
    word = KEYS[key.verdict]
    return Row(
        key.key, "tensor", "", word[0] != "-", (" ", word, " "),
        cells={"shape": key.in_model}, facts=(("In the model", key.in_model),),
    )  # fmt: skip


def _of_moment(moment: Moment) -> list[tuple[str, str]]:
    found = [("Position", f"{moment.position}, in group {moment.group}")]
    if moment.saved_for:
        found.append(("Saved for", moment.saved_for))
    if moment.meets:
        found.append(("Meets", f"{moment.meets} {moment.parameter_shape}"))
    return found


def _opened(root: Row) -> set[int]:
    """The rows that are unfolded at first: those above something wrong, then level by level."""
    above = {id(kid): row for row in root.walk() for kid in row.kids}
    wrong = [row for row in root.walk() if any(s.startswith("-") for s in row.status)]
    wanted = [root]
    for row in wrong:
        way = []
        while id(row) in above:
            row = above[id(row)]
            way.append(row)
        wanted += reversed(way)
    levels = sorted(root.levels(), key=lambda found: found[1])
    is_open, shown = set(), 1
    for row in [*wanted, *(row for row, _ in levels)]:
        if row.kids and id(row) not in is_open and shown + len(row.kids) <= OPEN_ROWS:
            is_open.add(id(row))
            shown += len(row.kids)
    return is_open


def _state(tree: CheckpointTree, root: Row, is_open: set[int]) -> dict[str, Any]:
    listed = list(root.walk())
    lenses = _lenses(tree)
    # It opens where something is wrong: a sound file whose names don't fit is no good news.
    lens = next((i for i, one in enumerate(lenses) if not one["good"]), 0)
    problem = next((i for i, row in enumerate(listed) if row.status[0] == "-problem"), None)
    return {
        "type": tree.source,
        "finding": lenses[lens]["finding"],
        "good": lenses[lens]["good"],
        "lens": lens,
        "totals": _totals(tree),
        "lenses": lenses,
        "columns": _columns(tree),
        "legend": {
            "requires grad": ["blue", "it was saved as a Parameter, or asks for a gradient"]
        },
        "open": [i for i, row in enumerate(listed) if id(row) in is_open],
        "selected": problem,
        "says": {"tree": "Contents of", "why": "What to know", "count": ""},
        **packed(root, COLUMNS),
    }


def _lenses(tree: CheckpointTree) -> list[dict[str, Any]]:
    found = [("file", "The file", "In the file", tree.verdict, _is_sound(tree))]
    if tree.model is not None:
        good = tree.model.strict
        found.append(("model", "Into the model", "Model", says_model(tree.model), good))
    if tree.optimizer is not None:
        moments = tree.optimizer.moments
        fits = sum(one.verdict == "fits" for one in moments)
        says = f"{fits} of {words.count(len(moments), 'position')} fit {tree.optimizer.optimizer}"
        good = tree.optimizer.loads and fits == len(moments)
        found.append(("optimizer", "Into the optimizer", "Optimizer", says, good))
    return [
        {"key": key, "label": label, "heading": heading, "finding": finding, "good": good}
        for key, label, heading, finding, good in found
    ]


def _is_sound(tree: CheckpointTree) -> bool:
    return tree.opens == "default" and not any(f.code in WORDS for f in tree.problems)


def _totals(tree: CheckpointTree) -> list[str]:
    tensors = sum(entry.kind == "tensor" for entry in tree.entries)
    return [
        KINDS[tree.format],
        spell_bytes(tree.bytes),
        words.count(tensors, "tensor"),
        words.count(len(tree.storages), "storage"),
        words.count(len(tree.problems), "problem"),
    ]


def _columns(tree: CheckpointTree) -> list[dict[str, Any]]:
    shown = {"shape", "bytes"}
    if len({entry.device for entry in tree.entries if entry.device}) > 1:
        shown.add("device")
    if any(one.bytes != one.needed for one in tree.storages):
        shown.add("storage")
    return [
        {"key": key, "label": label, "width": width, "end": end, "rank": rank,
         "shown": key in shown, "missing": ""}
        for key, label, width, end, rank in COLUMNS
    ]  # fmt: skip
