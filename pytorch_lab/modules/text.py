"""A module's record as text that reads well at 80 columns and is the same in every run.

One line for each module: the tree, the shape it gave (or its weight's, if nothing was run), its own
parameters, and what is special about it. The column of parameters adds up to the total: what is
shared is counted where it comes first, and a line that stands for several equal siblings (`×12`)
shows their parameters together.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytorch_lab.modules.record import Invisible, ModuleInfo, ModuleTree, TensorInfo
from pytorch_lab.words import WIDTH, clip, count, pad

NAME, SHAPE, COUNT = 37, 18, 12  # widths of the columns; the marks get the rest
MOST_LISTED = 6  # names in one line of the totals


@dataclass(eq=False)
class _Node:
    info: ModuleInfo
    name: str
    children: list["_Node"] = field(default_factory=list)
    signature: int = 0  # equal for subtrees that read the same
    times: int = 1
    turns: bool = False  # its mode is not its parent's


def render(tree: ModuleTree) -> str:
    """The tree, its totals, and what is invisible.

    Example:
        >>> import torch
        >>> from pytorch_lab.modules import describe
        >>> print(render(describe(torch.nn.Linear(4, 2))).splitlines()[2].rstrip())
        Linear                                (2, 4)                       10
    """
    unused = set(tree.unused or ())
    ran = tree.modules[0].calls is not None
    header = _line("module", "output" if ran else "weight", "parameters", "")
    lines = [header.rstrip(), "─" * WIDTH]
    root = _nest(tree)
    turns = [node.info for *_, node in _walk(root) if node.turns]
    for prefix, below, times, node in _walk(_fold(root)):
        lines.extend(_module_lines(prefix, below, times, node, unused, ran))
    lines.append("─" * WIDTH)
    lines.extend(_totals(tree, turns))
    lines.extend(_invisible(tree.invisible))
    return "\n".join(line.rstrip() for line in lines)


def _nest(tree: ModuleTree) -> _Node:
    """The modules as a tree again: they stand in order, each with its depth."""
    above: list[_Node] = []
    for info in tree.modules:
        own = info.path
        if above and above[min(info.depth, len(above)) - 1].info.path:
            own = info.path.removeprefix(above[info.depth - 1].info.path + ".")
        node = _Node(info, own or tree.type)
        del above[info.depth :]
        if above:
            node.turns = info.training != above[-1].info.training
            above[-1].children.append(node)
        above.append(node)
    return above[0]


def _fold(root: _Node) -> _Node:
    """Let one node stand for a run of equal siblings: `0 … 11`."""
    order, stack = [], [root]
    while stack:
        order.append(stack.pop())
        stack.extend(order[-1].children)
    numbers: dict[object, int] = {}
    for node in reversed(order):  # children before their parents
        folded: list[_Node] = []
        for child in node.children:
            if folded and folded[-1].signature == child.signature and _counts_on(folded[-1], child):
                folded[-1].times += 1
                continue
            folded.append(child)
        node.children = folded
        inner = tuple((c.signature, c.times, c.name) for c in folded)
        key = (_reads(node.info), inner)
        node.signature = numbers.setdefault(key, len(numbers))
    return root


def _counts_on(first: _Node, following: _Node) -> bool:
    """Whether the names go on counting, as a list's do: 3 after 0, 1 and 2."""
    if not (first.name.isdigit() and following.name.isdigit()):
        return False
    return int(following.name) == int(first.name) + first.times


def _reads(info: ModuleInfo) -> object:
    """What the lines of a module depend on."""
    tensors = tuple(
        (t.path.rpartition(".")[2], t.shape, t.dtype, t.requires_grad, t.aliases)
        for t in info.tensors
    )
    return info.type, info.extra, info.training, tensors, info.calls, info.output_shapes, info.lazy


def _walk(root: _Node) -> Iterator[tuple[str, str, int, _Node]]:
    """Each node with the branches before it and before its second line, and how often it is."""
    stack: list[tuple[str, str, int, _Node]] = [("", "", 1, root)]
    while stack:
        prefix, below, times, node = stack.pop()
        yield prefix, below + ("│  " if node.children else ""), times, node
        for i, child in enumerate(reversed(node.children)):
            branch, rest = ("├─ ", "│  ") if i else ("└─ ", "   ")
            stack.append((below + branch, below + rest, times * child.times, child))


def _module_lines(
    prefix: str, below: str, times: int, node: _Node, unused: set[str], ran: bool
) -> Iterator[str]:
    info = node.info
    name = f"{node.name}: {info.type}" if info.path else info.type
    if node.times > 1:
        last = int(node.name) + node.times - 1
        name = f"{node.name}…{last}: {info.type} ×{node.times}"
    own = sum(t.numel for t in info.tensors if t.kind == "parameter") * times
    shape = _output_shape(info.output_shapes) if ran else _weight_shape(info.tensors)
    first, *more = _marks(node, unused) or [""]
    name = clip(_clip_branches(prefix) + name, NAME)
    yield _line(name, clip(shape, SHAPE), f"{own:,}" if own else "", first)
    for mark in more:
        yield _line(clip(_clip_branches(below), NAME), "", "", mark)


def _line(name: str, shape: str, number: str, mark: str) -> str:
    return clip(f"{pad(name, NAME)} {pad(shape, SHAPE)} {number:>{COUNT}} {mark}", WIDTH)


def _clip_branches(prefix: str) -> str:
    return prefix if len(prefix) <= NAME - 12 else f"{len(prefix) // 3}·· "


def _output_shape(shapes: tuple[str, ...]) -> str:
    """The shapes in short: of a dict the first entry, as `logits=(2, 10)`."""
    text = " ".join(shapes)
    key, found, value = text.removeprefix("{'").partition("': ")
    return f"{key}={value.removesuffix('}')}" if found and text.startswith("{'") else text


def _weight_shape(tensors: tuple[TensorInfo, ...]) -> str:
    for tensor in tensors:
        if tensor.kind == "parameter":
            return "lazy" if tensor.shape is None else str(tensor.shape)
    return ""


def _marks(node: _Node, unused: set[str]) -> list[str]:
    info = node.info
    parameters = [t for t in info.tensors if t.kind == "parameter"]
    frozen = [t for t in parameters if not t.requires_grad]
    idle = [t for t in parameters if t.path in unused]
    marks = []
    if node.turns:
        marks.append("train" if info.training else "eval")
    for name, some in (("frozen", frozen), ("unused", idle)):
        if some:
            part = "" if len(some) == len(parameters) else f" {len(some)}/{len(parameters)}"
            marks.append(name + part)
    if info.aliases:
        marks.append(count(len(info.aliases) + 1, "place"))
    elif any(t.aliases for t in info.tensors):
        marks.append("shared")
    if info.lazy:
        marks.append("lazy")
    if info.calls is not None and info.calls > 1:
        marks.append(f"{info.calls} calls")
    return marks


def _totals(tree: ModuleTree, turns: list[ModuleInfo]) -> Iterator[str]:
    frozen = tree.n_parameters - tree.n_trainable
    parts = f"{tree.n_trainable:,} trainable, {frozen:,} frozen"
    yield _fact("Parameters", f"{tree.n_parameters:,}: {parts}")
    yield _fact("Memory", f"{spell_bytes(tree.bytes)} of parameters and buffers")
    yield _fact("Mode", "train" if tree.training else "eval")
    yield from _listed("  train in", [info.path for info in turns if info.training])
    yield from _listed("  eval in", [info.path for info in turns if not info.training])
    for names in tree.shared:
        yield from _listed("Shared", list(names), " = ")
    yield from _listed("Frozen", list(tree.frozen))
    yield from _listed("Unused", list(tree.unused or ()))
    yield from _listed("Not saved", list(tree.non_persistent))
    yield from _listed("Lazy", list(tree.lazy))


def _fact(label: str, text: str) -> str:
    return f"{label:<12}{text}"


def _listed(label: str, names: list[str], glue: str = ", ") -> Iterator[str]:
    if not names:
        return
    more = len(names) - MOST_LISTED
    text = glue.join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
    yield from _wrapped(_fact(label, text), " " * 12)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=True
    )


def _invisible(things: tuple[Invisible, ...]) -> Iterator[str]:
    if not things:
        yield _fact("Invisible", "nothing")
        return
    yield ""
    yield "Invisible: parameters(), to(), train() and state_dict() do not see"
    groups: dict[tuple[str, str], list[Invisible]] = {}
    for thing in things:
        groups.setdefault((thing.why, thing.fix), []).append(thing)
    for (why, fix), members in groups.items():
        for thing in members[:MOST_LISTED]:
            yield from _wrapped(f"  ✗ {thing.path}  {_what(thing)}", "      ")
        if len(members) > MOST_LISTED:
            yield f"  ✗ and {len(members) - MOST_LISTED} more of the kind"
        yield from _wrapped(f"    Why: {why}", "         ")
        yield from _wrapped(f"    Fix: {fix}", "         ")


def _what(thing: Invisible) -> str:
    facts = [thing.type if thing.shape is None else f"{thing.type} {thing.shape}"]
    if thing.n_parameters and thing.kind == "module":
        facts.append(count(thing.n_parameters, "parameter"))
    if thing.line:
        facts.append(thing.line)
    if thing.used is False:
        facts.append("not used in this forward")
    return ", ".join(facts)


def spell_bytes(count: int) -> str:
    """Bytes for people: `spell_bytes(1536)` is `'1.5 KiB'`."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
