"""Which rows does the X-ray of a module have, and what does each of them say?

A `ModuleTree` is a flat record; here it becomes a tree of rows in the order of the code: a module,
its own tensors, its other names, its children, and at its holder's place what it does not register.
Everything a row says is worded here; the page and the still picture only draw it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytorch_lab.modules.record import Invisible, ModuleInfo, ModuleTree, TensorInfo
from pytorch_lab.words import count

# The path of something invisible, as Python reads it: names, [0], ['key'] (a key may hold dots and
# brackets); a bracket that nothing closes stands for itself.
STEP = re.compile(r"\['(?:[^'\\]|\\.)*'\]|\[[^\[\]]*\]|[^.\[]+|\[")

# Layers that compute something else in train mode, by the beginning of their name.
MODE_MATTERS = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "BatchNorm", "SyncBatchNorm",
                "LazyBatchNorm", "RReLU")  # fmt: skip


@dataclass(slots=True)
class Row:
    """One line of the X-ray, with the lines below it.

    Each of the three statuses is a sign and a word: `+` good, `-` not, ` ` does not apply.
    """

    name: str
    kind: str  # root, module, parameter, buffer, again, holder, tensor, repeat
    type: str = ""
    registered: bool = True
    status: tuple[str, str, str] = (" ", " ", " ")  # registered, to(device), eval()
    badges: tuple[str, ...] = ()
    cells: dict[str, str] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()
    n_parameters: int = 0
    n_bytes: int = 0
    kids: "list[Row]" = field(default_factory=list)

    def walk(self) -> "Iterator[Row]":
        """This row and all below it, from top to bottom."""
        return (row for row, _ in self.levels())

    def levels(self, is_open: set[int] | None = None) -> "Iterator[tuple[Row, int]]":
        """The same with each row's level, 1 for this one; only what is unfolded, if told."""
        waiting: list[tuple[Row, int]] = [(self, 1)]  # recursion would end before deep models do
        while waiting:
            row, level = waiting.pop()
            yield row, level
            if is_open is None or id(row) in is_open:
                waiting.extend((kid, level + 1) for kid in reversed(row.kids))


def steps(path: str) -> tuple[str, ...]:
    """`heads[2].bias` is `("heads", "[2]", "bias")`."""
    return tuple(STEP.findall(path))


def names(path: str) -> tuple[str, ...]:
    """The same for what is registered, whose names may hold brackets but no dots."""
    return tuple(path.split(".")) if path else ()


def shape_text(shape: tuple[int, ...] | None) -> str:
    """`(64, 3)`; a tensor without dimensions is `()`, a lazy one `not known yet`."""
    if shape is None:
        return "not known yet"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def rows(tree: ModuleTree) -> Row:
    """The row of the root, with all others below it."""
    return _Builder(tree).build()


class _Builder:
    """Puts every thing of the record at its place, found by the steps of its path."""

    def __init__(self, tree: ModuleTree) -> None:
        self.tree = tree
        self.unused = set(tree.unused or ())
        self.places: dict[tuple[str, ...], Row] = {}
        self.modules: set[tuple[str, ...]] = set()
        self.registered: set[tuple[str, ...]] = set()  # modules, and the other names of things

    def build(self) -> Row:
        for info in self.tree.modules:
            place = names(info.path)
            row = self._module(info)
            self.places[place] = row
            self.modules.add(place)
            if place:
                self.places[place[:-1]].kids.append(row)
            for tensor in info.tensors:
                name = tensor.path[len(info.path) :].lstrip(".")
                row.kids.append(self._tensor(tensor, name))
        self._other_names()
        self.registered = set(self.places)
        for thing in self.tree.invisible:
            self._hide(thing)
        root = self.places[()]
        _look_inside(root)
        return root

    def _module(self, info: ModuleInfo) -> Row:
        other_mode = info.training != self.tree.training
        badges = [
            *(["frozen"] if info.n_parameters and not info.n_trainable else []),
            *(["shared"] if info.aliases else []),
            *([_mode(info.training)] if other_mode else []),
            *(["lazy"] if info.lazy else []),
        ]
        matters = info.type.startswith(MODE_MATTERS)
        facts = [
            ("Class", f"{info.type}({info.extra})" if info.extra else info.type),
            ("Also called", ", ".join(info.aliases)),
            ("Trainable", f"{info.n_trainable:,} of {info.n_parameters:,}"),
            ("Mode", f"{_mode(info.training)}; it computes something else in the other mode"
                     if matters else ""),
        ]  # fmt: skip
        return Row(
            name=names(info.path)[-1] if info.path else info.type,
            kind="module" if info.path else "root",
            type=info.type if info.path else "",
            status=(
                "+registered",
                "+moves" if info.bytes else " nothing to move",
                "+train → eval" if info.training else " already eval",
            ),
            badges=tuple(badges),
            cells={
                "output": ", ".join(info.output_shapes),
                "calls": "" if info.calls is None else f"{info.calls:,}",
                "mode": _mode(info.training),
            },
            facts=tuple(fact for fact in facts if fact[1]),
            n_parameters=info.n_parameters,
            n_bytes=info.bytes,
        )

    def _tensor(self, info: TensorInfo, name: str) -> Row:
        parameter = info.kind == "parameter"
        badges = [
            *(["frozen"] if parameter and not info.requires_grad else []),
            *(["shared"] if info.aliases else []),
            *(["not saved"] if not info.persistent else []),
            *(["lazy"] if info.shape is None else []),
            *(["unused"] if info.path in self.unused else []),
        ]
        facts = [
            ("Also called", ", ".join(info.aliases)),
            ("requires_grad", str(info.requires_grad)),
            ("In state_dict()", "yes" if info.persistent else "no: persistent=False"),
        ]
        return Row(
            name=name,
            kind=info.kind,
            type="Parameter" if parameter else "buffer",
            status=(
                "+registered",
                "-has no data" if info.device == "meta" else "+moves",
                " has no mode",
            ),
            badges=tuple(badges),
            cells={
                "shape": shape_text(info.shape),
                "dtype": info.dtype,
                "device": info.device,
            },
            facts=tuple(fact for fact in facts if fact[1]),
            n_parameters=info.numel if parameter else 0,
            n_bytes=info.bytes,
        )

    def _other_names(self) -> None:
        """A shared thing stands once; at its other places stands a row that points there."""
        for info in self.tree.modules:
            for alias in info.aliases:
                self._again(alias, info.path)
        for info in self.tree.modules:
            for tensor in info.tensors:
                for alias in tensor.aliases:
                    self._again(alias, tensor.path)

    def _again(self, alias: str, first: str) -> None:
        place = names(alias)
        if place[:-1] not in self.modules or place in self.places:
            return  # it has this name only because the module around it is shared
        row = Row(
            name=place[-1],
            kind="again",
            type=f"same as {first}",
            status=("+registered", " see there", " see there"),
            badges=("shared",),
            facts=(("Counted", f"once, at {first}"),),
        )
        self.places[place] = row
        self.places[place[:-1]].kids.append(row)

    def _place(self, path: str) -> tuple[str, ...]:
        """Where an invisible thing goes: below the longest beginning that is registered."""
        end = path.rfind(".")
        while end > 0:
            registered = names(path[:end])
            if registered in self.registered:
                return registered + steps(path[end:])
            end = path.rfind(".", 0, end)
        return steps(path)

    def _hide(self, thing: Invisible) -> None:
        place = self._place(thing.path)
        above = self._holder(place[:-1], thing.holder)
        row = self.places.get(place)
        if row is None:
            row = self.places[place] = Row(name=place[-1], kind=thing.kind)
            above.kids.append(row)
        row.kind, row.type, row.registered = thing.kind, thing.type, False
        row.n_parameters = thing.n_parameters
        row.status = (
            "-invisible",
            "-stays behind",
            "-not reached" if thing.kind == "module" else " has no mode",
        )
        row.cells = {"shape": shape_text(thing.shape)} if thing.kind != "module" else {}
        facts = [
            ("Why", thing.why),
            ("Fix", thing.fix),
            ("Held by", thing.holder),
            ("In forward", {True: "used", False: "not used", None: ""}[thing.used]),
            ("Made at", thing.line),
        ]
        row.facts = tuple(fact for fact in facts if fact[1])

    def _holder(self, place: tuple[str, ...], holder: str) -> Row:
        """The row at `place`; what is not registered there becomes a holder's row."""
        end = len(place)
        while place[:end] not in self.places:
            end -= 1
        above = self.places[place[:end]]
        for at in range(end + 1, len(place) + 1):
            inner = holder if at == len(place) else _holder_of(place[at])
            above = self._add_holder(above, place[:at], inner)
        return above

    def _add_holder(self, above: Row, place: tuple[str, ...], holder: str) -> Row:
        what = "function" if place[-1].endswith("()") else holder
        plain = "a " if what in ("function", "dataclass") else "plain "
        row = Row(
            name=place[-1],
            kind="holder",
            type=what,
            registered=False,
            status=(f"-{plain}{what}", "-stays behind", "-not reached"),
        )
        self.places[place] = row
        above.kids.append(row)
        return row


def _mode(training: bool) -> str:
    return "train" if training else "eval"


def _holder_of(step: str) -> str:
    if step.startswith("['"):
        return "dict"
    return "list" if step.startswith("[") else "object"


def _bottom_up(root: Row) -> list[Row]:
    """A row and all below it, each after its own kids."""
    return list(root.walk())[::-1]


def _look_inside(root: Row) -> None:
    """Count what is invisible, unused or frozen at or below each row, and tell the rows above."""
    found: dict[int, Counter[str]] = {}
    for row in _bottom_up(root):
        found[id(row)] = _count(row, found)


def _count(row: Row, found: dict[int, Counter[str]]) -> Counter[str]:
    below: Counter[str] = Counter()
    for kid in row.kids:
        below += found[id(kid)]
    if row.kind == "holder":
        _sum_up(row, below["invisible"])
    elif row.registered:
        if below["invisible"]:
            stays = "stays" if below["invisible"] == 1 else "stay"
            row.status = (row.status[0], f"-{below['invisible']:,} inside {stays}", row.status[2])
        row.badges += tuple(
            f"{below[word]:,} {word} inside"
            for word in ("invisible", "unused", "frozen")
            if below[word] and word not in row.badges
        )
    own = [word for word in ("unused", "frozen") if word in row.badges and not row.kids]
    if not row.registered and row.kind != "holder":
        own.append("invisible")
    return below + Counter(own)


def _sum_up(holder: Row, hidden: int) -> None:
    """A holder counts what it holds, and gives the reason and the fix of the first of them."""
    holder.n_parameters = sum(kid.n_parameters for kid in holder.kids)
    reasons = next((kid.facts for kid in holder.kids if kid.facts), ())
    holder.facts = (
        ("Holds", f"{count(hidden, 'thing')} that no module registers"),
        *(fact for fact in reasons if fact[0] in ("Why", "Fix")),
    )


# --- repeats: twelve equal blocks in a row become one line ----------------------------------------


def fold_repeats(root: Row, at_least: int = 3) -> None:
    """Put runs of neighbours that differ in nothing but their name under one row `× n`."""
    _Shapes(at_least).visit(root)


class _Shapes:
    """Numbers for equal structure: two rows with the same number differ in their name alone."""

    def __init__(self, at_least: int) -> None:
        self.at_least = at_least
        self.known: dict[object, int] = {}

    def visit(self, root: Row) -> None:
        found: dict[int, int] = {}
        for row in _bottom_up(root):
            found[id(row)] = self._number(row, [found[id(kid)] for kid in row.kids])

    def _number(self, row: Row, numbers: list[int]) -> int:
        key = (
            row.kind, row.type, row.registered, row.status, row.badges, tuple(row.cells.items()),
            tuple(fact for fact in row.facts if fact[0] not in ("Made at",)), row.n_parameters,
            tuple(zip((kid.name for kid in row.kids), numbers, strict=True)),
        )  # fmt: skip
        row.kids = list(self._runs(row.kids, numbers))
        return self.known.setdefault(key, len(self.known))

    def _runs(self, kids: list[Row], numbers: list[int]) -> Iterator[Row]:
        start = 0
        while start < len(kids):
            end = start
            while end < len(kids) and numbers[end] == numbers[start]:
                end += 1
            run = kids[start:end]
            if len(run) >= self.at_least and run[0].kind in ("module", "parameter", "tensor"):
                yield _repeat(run)
            else:
                yield from run
            start = end


def _repeat(run: list[Row]) -> Row:
    first, last = run[0], run[-1]
    why = tuple(fact for fact in first.facts if fact[0] in ("Why", "Fix"))
    stays = first.status[1].startswith("-") and first.registered
    return Row(
        name=f"{first.name} … {last.name}",
        kind="repeat",
        type=first.type,
        registered=first.registered,
        status=(first.status[0], "-some stay" if stays else first.status[1], first.status[2]),
        badges=(f"× {len(run)}", *first.badges),
        cells=dict(first.cells),
        facts=(("Holds", f"{len(run)} × {first.type} with the same structure"), *why),
        n_parameters=sum(row.n_parameters for row in run),
        n_bytes=sum(row.n_bytes for row in run),
        kids=run,
    )
