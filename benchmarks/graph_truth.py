"""What a record of the graph is held against in `graph.py`: found by other means than its own.

The lines come from `inspect`, the nodes from a walk of `next_functions`, the bytes from
`tracemalloc` and the garbage collector, the life of the graph from hooks that die with it.
"""

import ast
import gc
import inspect
import json
import linecache
import tracemalloc
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import pytorch_lab
from pytorch_lab import graph

NOT_THE_READER = tuple(
    str(Path(package.__file__ or "").parent) + "/" for package in (torch, pytorch_lab)
)


# ----------------------------------------------------------------------------------------- memory


class Held(NamedTuple):
    """What is left when only a record is kept."""

    megabytes: float
    alive: int


class Canary:
    """A hook that lives exactly as long as the graph that it hangs on."""

    def __call__(self, gradient: torch.Tensor) -> None:
        """Leave the gradient as it is."""


def held(model: nn.Module, record: Callable[[], Any]) -> Held:
    """Record, drop all else, and weigh what is left.

    Args:
        model: each output of its modules gets a canary and a weak reference.
        record: makes the record.
    """
    record()  # what is filled once, such as the lines of source files, belongs to nobody
    watched: list[weakref.ref[Any]] = []

    def watch(_module: nn.Module, _inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.requires_grad:
            canary = Canary()
            output.register_hook(canary)
            watched.extend((weakref.ref(canary), weakref.ref(output)))

    handles = [module.register_forward_hook(watch) for module in model.modules()]
    gc.collect()
    before = tensor_bytes()
    tracemalloc.start()
    try:
        kept = record()
        for handle in handles:
            handle.remove()
        alive = sum(reference() is not None for reference in watched)
        count = len(watched)
        watched.clear()
        gc.collect()
        python = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    tensors = tensor_bytes() - before
    if not count or kept is None:
        raise RuntimeError("expected outputs to be watched and a record, got none")
    return Held((python + max(tensors, 0)) / 1e6, alive)


def tensor_bytes() -> int:
    """The bytes of all tensors that Python knows, each storage once."""
    storages = {
        one.untyped_storage().data_ptr(): one.untyped_storage().nbytes()
        for one in gc.get_objects()
        if type(one) in (torch.Tensor, nn.Parameter) and one.layout == torch.strided
    }
    return sum(storages.values())


# ------------------------------------------------------------------------------------ source spans


class Wrong(NamedTuple):
    """How many ops there were, and how many of them point to the wrong place."""

    ops: int
    lines: int
    columns: int


Place = tuple[str, int, tuple[int, int] | None]


class Lookout(TorchFunctionMode):
    """Writes down who called which torch function, as `inspect` sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, Place]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name != "__get__":
            self.seen.append((name.strip("_"), _caller()))
        return func(*args, **(kwargs or {}))


def _caller() -> Place:
    """The innermost line that is neither torch's nor this package's nor ours."""
    frame = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and not file.startswith((*NOT_THE_READER, "<")):
            at = inspect.getframeinfo(frame, context=0).positions
            if at is None or at.lineno is None or at.col_offset is None:
                return file, frame.f_lineno, None
            line = linecache.getline(file, at.lineno).encode()
            last = linecache.getline(file, at.end_lineno or at.lineno).encode()
            columns = (
                len(line[: at.col_offset].decode()),
                len(last[: at.end_col_offset].decode()),
            )
            return file, at.lineno, columns
        frame = frame.f_back
    return "", 0, None


def spans(record: Callable[[], graph.GraphRecord]) -> Wrong:
    """Compare each op's place with what the lookout saw of the same op.

    Args:
        record: makes a record; the lookout stands around it.
    """
    lookout = Lookout()
    with lookout:
        made = record()
    lines = columns = 0
    for op, place in _pairs(made, lookout.seen):
        if place is None or (op.file, op.line) != place[:2]:
            lines += 1
            columns += 1
        elif op.columns is None or op.columns != place[2] or not _is_code(op):
            columns += 1
    return Wrong(len(made.ops), lines, columns)


def _pairs(
    record: graph.GraphRecord, seen: list[tuple[str, Place]]
) -> Iterator[tuple[Any, Place | None]]:
    """Each op with the place at which the lookout saw the next function of that name."""
    places: dict[str, deque[int]] = defaultdict(deque)
    for at, (name, _) in enumerate(seen):
        places[name].append(at)
    at = -1
    for op in record.ops:
        later = places[op.name.strip("_")]
        while later and later[0] <= at:
            later.popleft()
        if later:
            at = later.popleft()
        yield op, seen[at][1] if at >= 0 and seen[at][0] == op.name.strip("_") else None


def _is_code(op: Any) -> bool:
    """Whether the columns cut a whole expression or assignment out of the source."""
    lines = [linecache.getline(op.file, n) for n in range(op.line, op.site.end_line + 1)]
    lines[-1] = lines[-1][: op.columns[1]]
    lines[0] = lines[0][op.columns[0] :]
    try:
        ast.parse("(" + "".join(lines) + ")", mode="eval")
    except SyntaxError:
        try:
            ast.parse("".join(lines))
        except SyntaxError:
            return False
    return True


# ---------------------------------------------------------------------------------------- failures


def failures(model: nn.Module, inputs: Any, loss_of: Callable[..., torch.Tensor]) -> list[str]:
    """What does not work on a model: recording, counting, writing in every form."""
    wrong = []
    torch.manual_seed(1)
    record = graph.record(loss_of, model, inputs, backward=True)
    if record.error:
        wrong.append(f"record: {record.error}")
    torch.manual_seed(1)
    names, edges = walk(loss_of(model, inputs))
    ours = sorted(node.name for node in record.nodes[: len(names)])
    if ours != sorted(names):
        wrong.append(f"{len(names)} nodes behind the result, {len(record.nodes)} in the record")
    if sum(len(node.next) for node in record.nodes[: len(names)]) != edges:
        wrong.append(f"not {edges} edges")
    if set(record.backward_order) != set(range(len(names))):
        wrong.append(f"{len(record.backward_order)} nodes ran, not {len(names)}")
    for form in (lambda: json.dumps(record.to_dict()), lambda: str(record)):
        try:
            form()
        except Exception as error:  # noqa: BLE001 - counted and shown
            wrong.append(f"{type(error).__name__}: {error}")
    return wrong


def walk(root: torch.Tensor) -> tuple[list[str], int]:
    """The names of all nodes behind a tensor, and the number of edges between them."""
    seen, names, edges = set(), [], 0
    todo: list[Any] = [root.grad_fn]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        names.append(node.name().rpartition("::")[2])
        following = [next for next, _ in node.next_functions if next is not None]
        edges += len(following)
        todo += following
    return names, edges
