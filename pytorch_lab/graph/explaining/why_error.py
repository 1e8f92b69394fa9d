"""Why did autograd raise? From torch's message to the line that is at fault, which is another one.

graph.why_error(lambda: step(batch))    runs it once, recorded: names lines
graph.why_error(error)                  an exception caught elsewhere: reads its frames
graph.why_error(record)                 a recording that ended in an error
"""

import re
from collections.abc import Callable
from typing import Any

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.explaining.arguments import expect_optional
from pytorch_lab.graph.explaining.crash import Crash, crash_of, crash_of_record
from pytorch_lab.graph.explaining.cuts import exits, follow
from pytorch_lab.graph.explaining.error_words import WORDS
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.observing import observe
from pytorch_lab.graph.explaining.spots import line_of, spot
from pytorch_lab.graph.explaining.why_cut import explain_cut
from pytorch_lab.graph.explaining.why_in_place import why_in_place, why_twice
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.walking.autograd import walk

_LONGEST = 200  # of a message that is quoted
_MEMORY = re.compile(  # of torch's allocators, not of a database's
    r"(?:CUDA|HIP|XPU|MPS)(?: error:| backend)? out of memory"
    r"|Allocator: (?:can't allocate memory|not enough memory)"
)


def why_error(
    error: BaseException | GraphRecord | Callable[[], Any], record: GraphRecord | None = None
) -> Explanation:
    """Say what an error of autograd means, which line is at fault, and what to do.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> def step():
        ...     y = x.exp()
        ...     y += 1
        ...     y.sum().backward()
        >>> print(why_error(step))
        `exp` keeps its own result for backward, and `add_` wrote over it in place
        before backward could use it.
          where   cell line 3
          seen    ExpBackward0 saved `result`, shape (3,), at version 0 (cell line 2)
                  add_ wrote into it: version 1 (cell line 3)
                  cell line 3: y += 1
          fix     make a new tensor instead: x = x + 1 for x += 1, inplace=False in
                    the layer, or clone() before the write

    Args:
        error: an exception, a record whose function raised, or a function without arguments that
            raises; that is run once, recorded.
        record: a recording of the code that raised the exception.

    Raises:
        UsageError: if `error` is none of these, or `record` is no record of an exception's code.
    """
    expect_optional("why_error", "record", record, GraphRecord, "a GraphRecord")
    if isinstance(error, BaseException):
        return _first(error, record)
    if record is not None:
        raise UsageError(
            f"why_error expected record= with an exception only, got it with "
            f"{type(error).__name__}; write why_error(error, record), or leave it out"
        )
    if isinstance(error, GraphRecord):
        return _explain(crash_of_record(error)) if error.error else _no_error()
    if callable(error):
        seen = observe(error)
        try:
            return _first(seen.error, seen.record) if seen.error is not None else _no_error()
        finally:
            seen.forget()
    raise UsageError(
        f"why_error expected an exception, a record or a function that raises, got "
        f"{type(error).__name__}; write why_error(lambda: step(batch))"
    )


def _first(error: BaseException, record: GraphRecord | None) -> Explanation:
    """The error, or the first of those it was raised from that autograd knows."""
    told = _explain(crash_of(error, record))
    seen = {id(error)}  # somebody may have tied the chain into a ring
    inner = error.__cause__ or error.__context__
    while told.cause == "not_autograd" and inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        told = _explain(crash_of(inner, record))
        inner = inner.__cause__ or inner.__context__
    return told


def _no_error() -> Explanation:
    return Explanation(
        "no_error",
        "It ran to its end without an error.",
    )


def _explain(crash: Crash) -> Explanation:
    for pattern, finder in FINDERS:
        if re.search(pattern, crash.message):
            return finder(crash)
    if _MEMORY.search(crash.message):
        return _memory(crash)
    return _by_words(crash)


def _by_words(crash: Crash) -> Explanation:
    expression = f"`{crash.expression}`" if crash.expression else "This"
    for words in WORDS:
        found = re.search(words.pattern, crash.message)
        if found:
            given = ("", *(part or "" for part in found.groups()))
            return Explanation(
                words.cause,
                words.says.format(*given, expression=expression),
                where=crash.where,
                evidence=tuple(crash.line),
                fix=words.fix,
            )
    message = " ".join(crash.message.split())
    short = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
    return Explanation(
        "not_autograd",
        f"This is no error of autograd that is known here: {short}",
        where=crash.where,
        evidence=tuple(crash.line),
    )


def _non_scalar(crash: Crash) -> Explanation:
    root = crash.roots[0] if crash.roots else None
    facts = []
    name = "the tensor that backward() is called on"
    if root is not None:
        name = crash.name_of(root) or name
        facts.append(f"{name} has the shape {tuple(root.shape)}: {root.numel()} numbers")
    if crash.record is not None:
        facts += _maker(crash.record)
    return Explanation(
        "non_scalar",
        "backward() needs one number to go down from, and this loss has several.",
        where=crash.where,
        evidence=(*facts, *crash.line),
        fix="reduce it: loss.mean() or loss.sum() (reduction='none' in the loss leaves one number "
        "for each element); for a gradient of each output pass a direction: "
        "loss.backward(torch.ones_like(loss))",
    )


def _maker(record: GraphRecord) -> list[str]:
    """The op that made what the last backward was called on."""
    ran = [op for op in record.ops if op.kind == "backward" and op.inputs]
    made = record.values[ran[-1].inputs[0]].op if ran else None
    return [f"made by {record.ops[made].name}{spot(record.ops[made])}"] if made is not None else []


def _no_grad_fn(crash: Crash) -> Explanation:
    """There is no graph behind what backward was called on: who cut it?"""
    if crash.record is not None:
        told = _cut_in(crash.record)
        if told is not None:
            return told
        if not any(value.requires_grad for value in crash.record.values):
            facts = [f"{len(crash.record.values)} values were met, none asks for a gradient"]
            return _nothing_asks(crash, facts)
    asking = [f"`{name}`" for name, tensor in crash.tensors if tensor.requires_grad]
    frozen = sum(isinstance(tensor, torch.nn.Parameter) for _, tensor in crash.tensors)
    if frozen and not asking:
        return _nothing_asks(crash, [f"{frozen} parameters in sight, none asks for a gradient"])
    such = f", such as {asking[0]}" if asking else ""
    return Explanation(
        "no_graph",
        "There is no graph behind this loss: it was computed under no_grad, from detached values, "
        "from plain numbers, or by an op without a derivative (argmax, a comparison).",
        where=crash.where,
        evidence=(
            f"{len(asking)} tensors in sight ask for a gradient{such}",
            "the loss has requires_grad False and no grad_fn",
            *crash.line,
        ),
        fix="to learn the line, let it run under observation: why_error(lambda: step(batch)). "
        "loss.requires_grad_() silences the error and trains nothing",
    )


def _nothing_asks(crash: Crash, facts: list[str]) -> Explanation:
    return Explanation(
        "nothing_requires_grad",
        "Nothing that this loss was computed from asks for a gradient: all parameters are frozen, "
        "or none was used.",
        where=crash.where,
        evidence=(*facts, *crash.line),
        fix="call requires_grad_() on what should be learned before the loss is computed",
    )


def _cut_in(record: GraphRecord) -> Explanation | None:
    """The first cut on the way from a leaf to the loss, from a record."""
    leaves = [value for value in record.values if value.requires_grad and value.is_leaf]
    earlier = [op for op in record.ops if op.kind == "backward" and op.outputs]
    flows = [(leaf, follow(record, leaf.index)) for leaf in leaves]
    cuts = [(cut, leaf, flow) for leaf, flow in flows for cut in flow.cuts if cut.to_result]
    if cuts:
        cut, leaf, flow = min(cuts, key=lambda found: found[0].op.index)
        return explain_cut(record, cut, f"`{leaf.name}`" if leaf.name else "the leaf", flow)
    if earlier:
        op = earlier[-1]
        return Explanation(
            "no_create_graph",
            "This is computed from gradients that autograd.grad returned without a graph of their "
            "own, so they are constants here.",
            where=op.site.where,
            evidence=(
                "the results of autograd.grad do not ask for a gradient",
                *line_of(record, op),
            ),
            fix="pass create_graph=True where the gradient itself should be learned from",
        )
    for leaf, flow in flows:
        left = exits(record, flow)
        if left:
            name = f"`{leaf.name}`" if leaf.name else "the leaf"
            return explain_cut(record, left[0], name, flow, left[1:])
    return None


def _unused_input(crash: Crash) -> Explanation:
    found = re.search(r"at index (\d+)", crash.message)
    place = int(found[1]) if found else 0
    given = next((f.f_locals.get("inputs") for f in crash.inner if f.f_code.co_name == "grad"), ())
    name, facts = "an input", []
    given = given if isinstance(given, tuple | list) else (given,)
    tensor = given[place] if place < len(given) else None
    if isinstance(tensor, torch.Tensor):
        name = crash.name_of(tensor) or f"input {place}"
        facts.append(f"the graph has {len(crash.leaves)} leaves; {name} is none of them")
        if tensor.grad_fn is not None and crash.roots and walk([tensor]).nodes:
            facts[-1] = f"{name} is a result of its own; the outputs were not computed from it"
    return Explanation(
        "unused_input",
        f"autograd.grad was asked for the gradient of {name}, which the output does not depend on "
        "(or only through something that was cut).",
        where=crash.where,
        evidence=(*facts, *crash.line),
        fix="use it in the computation, the very tensor and not a copy; if it may be unused, pass "
        "allow_unused=True and expect None",
    )


def _non_leaf(crash: Crash) -> Explanation:
    param = next((f.f_locals.get("param") for f in reversed(crash.inner)), None)
    facts = []
    if isinstance(param, torch.Tensor) and param.grad_fn is not None:
        known = crash.name_of(param) or "it"
        facts.append(f"{known} has the grad_fn {param.grad_fn.name()}")
    return Explanation(
        "non_leaf",
        "The optimizer was given the result of an operation, not a leaf: changing it would change "
        "nothing that the computation starts from.",
        where=crash.where,
        evidence=(*facts, *crash.line),
        fix="do the computation first and requires_grad_() or nn.Parameter(...) last: "
        "w = (torch.randn(3) * 0.01).requires_grad_()",
    )


def _memory(crash: Crash) -> Explanation:
    """Memory ran out: does somebody keep graphs?"""
    kept = [
        (name, tensor)
        for name, tensor in crash.tensors
        if tensor.grad_fn is not None and ("[" in name or "." in name)
    ]
    if not kept:
        return Explanation(
            "out_of_memory",
            "Memory ran out, and no variable in sight keeps a graph alive.",
            where=crash.where,
            evidence=tuple(crash.line),
            fix="make the batch smaller, evaluate under torch.no_grad(), or use checkpointing",
        )
    sizes = [(len(walk([tensor])), name) for name, tensor in kept]
    most, name = max(sizes)
    return Explanation(
        "graph_kept_alive",
        "Memory ran out while results with their graphs are kept from step to step: each of them "
        "holds all that its forward saved.",
        where=crash.where,
        evidence=(
            f"{len(kept)} kept results have a graph, such as `{name}` with {most} nodes",
            *crash.line,
        ),
        fix="keep numbers, not tensors: history.append(loss.item()), total += loss.item(); "
        "detach() a state that is carried on",
    )


FINDERS: tuple[tuple[str, Callable[[Crash], Explanation]], ...] = (
    (r"needed for gradient computation has been modified by an inplace operation", why_in_place),
    (r"Trying to backward through the graph a second time", why_twice),
    (r"can be implicitly created only for scalar outputs", _non_scalar),
    (r"does not require grad and does not have a grad_fn", _no_grad_fn),
    (r"appears to not have been used in the graph", _unused_input),
    (r"can't optimize a non-leaf Tensor", _non_leaf),
)
