"""Where did a NaN or an infinity come from: the data, the forward, or the way back?"""

from typing import NamedTuple

from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.gradient_story import Story, arriving, finite, percent
from pytorch_lab.graph.explaining.spots import line_of, spot, stem
from pytorch_lab.graph.explaining.why_hook import why_hooked
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Node, Op, Stats, Value

_ATTENTION = (
    "softmax",
    "log_softmax",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
)
_MOST_ROWS = 3


class _Slope(NamedTuple):
    """Ops whose slope is infinite somewhere."""

    nodes: tuple[str, ...]  # their names, without "Backward0"
    at: str  # where
    fix: str


_SLOPES = (
    _Slope(
        ("Sqrt",),
        "its input is 0 somewhere",
        "keep the input away from 0: (x + 1e-8).sqrt(), or torch.linalg.vector_norm, whose slope "
        "at 0 is 0",
    ),
    _Slope(
        ("Rsqrt",), "its input is 0 somewhere", "keep the input away from 0: (x + 1e-8).rsqrt()"
    ),
    _Slope(
        ("Log", "Log2", "Log10"),
        "its input is 0 somewhere",
        "keep the input away from 0: x.clamp_min(1e-8).log(), or use log_softmax or logsigmoid, "
        "which never form the 0",
    ),
    _Slope(
        ("Log1P",),
        "its input is -1 somewhere",
        "keep the input away from -1: x.clamp_min(-1 + 1e-6).log1p()",
    ),
    _Slope(
        ("Pow",),
        "its input is 0 somewhere and the exponent below 1",
        "keep the input away from 0: (x + 1e-8) ** p",
    ),
    _Slope(("Div",), "its divisor is 0 somewhere", "keep the divisor away from 0: a / (b + 1e-8)"),
    _Slope(
        ("Reciprocal",), "its input is 0 somewhere", "keep the input away from 0: 1 / (x + 1e-8)"
    ),
    _Slope(
        ("Acos", "Asin"),
        "its input is -1 or 1 somewhere",
        "clamp the input to -1 + 1e-6 ... 1 - 1e-6",
    ),
    _Slope(("Atan2",), "both its inputs are 0 somewhere", "keep the pair away from (0, 0)"),
    _Slope(
        ("Cdist",),
        "two of its points are equal",
        "leave the diagonal out, or use squared distances",
    ),
)


def why_not_finite(story: Story) -> Explanation | None:
    """A finder: the gradient that arrived is NaN or infinite."""
    arrived = story.arrived
    if arrived is None or finite(arrived):
        return None
    clipped = _clipped(story)
    return clipped or _forward_nan(story) or _on_the_way_back(story) or _forward_inf(story)


def _forward_nan(story: Story) -> Explanation | None:
    """The first op of the forward that made a NaN."""
    for op, inputs, outputs in story.forward_ops():
        bad = [value for value in inputs if value.stats is not None and value.stats.nan]
        if bad:
            return _source(story, op, bad[0])
        if not any(value.stats is not None and value.stats.nan for value in outputs):
            continue
        infinite = [value for value in inputs if value.stats is not None and value.stats.inf]
        if op.name in _ATTENTION:
            return _masked(story, op, infinite or inputs)
        if infinite:
            return _infinity(story, infinite[0], op)
        return _made_here(story, op, inputs, "NaN")
    return None


def _source(story: Story, op: Op, value: Value) -> Explanation:
    """A value that was not finite when it came in."""
    stats = value.stats
    name = f"`{value.name}`" if value.name else f"an input of {op.name}"
    bad = f"{stats.nan} NaN and {stats.inf} infinite of {_count(value)}" if stats else ""
    facts = (
        f"{name}: {bad} when it was read",
        *_poisoned(story),
        *line_of(story.record, op),
    )
    if value.kind == "buffer":
        return Explanation(
            "non_finite_buffer",
            f"{name} was not finite before this run: an earlier batch with NaN or inf went into "
            "the statistics that the module keeps.",
            where=op.site.where,
            evidence=facts,
            fix="reset them (bn.reset_running_stats()), and skip a batch that is not finite before "
            "the forward, not only its step",
        )
    if value.kind == "parameter":
        return Explanation(
            "non_finite_parameter",
            f"{name} was not finite before this run: an earlier step made it so.",
            where=op.site.where,
            evidence=facts,
            fix="start from weights before that step, and ask why_gradient there",
        )
    return Explanation(
        "non_finite_input",
        f"The data is not finite: {name} has NaN or inf, and everything computed from it does, "
        f"{story.name}'s gradient too.",
        where=op.site.where,
        evidence=facts,
        fix="look for it where the batch is made; skip such a batch before the forward: "
        "if not x.isfinite().all(): continue",
    )


def _count(value: Value) -> int:
    count = 1
    for size in value.shape:
        count *= size
    return count


def _poisoned(story: Story) -> list[str]:
    """Norm layers that mixed the NaN into what they keep."""
    kept: dict[str, None] = {}
    for op, inputs, _ in story.forward_ops():
        if op.name not in ("batch_norm", "instance_norm"):
            continue
        first = inputs[0].stats
        if first is not None and not finite(first):
            names = [value.name for value in inputs if value.kind == "buffer"]
            kept.update(dict.fromkeys(names))
    if not kept:
        return []
    return [f"the running statistics took it up: {', '.join(f'`{name}`' for name in kept)}"]


def _infinity(story: Story, value: Value, reader: Op) -> Explanation:
    """Where an infinity that later became NaN came from."""
    values = story.record.values
    while value.op is not None:
        op = story.record.ops[value.op]
        bad = [i for i in op.inputs if (s := values[i].stats) is not None and not finite(s)]
        if not bad:
            return _made_here(story, op, [values[i] for i in op.inputs], "inf")
        value = values[bad[0]]
    return _source(story, reader, value)


def _made_here(story: Story, op: Op, inputs: list[Value], what: str) -> Explanation:
    facts = [f"{op.name} was given finite numbers and made {what}{spot(op)}"]
    facts += [_range(op, value) for value in inputs[:2] if value.stats is not None]
    return Explanation(
        "overflow" if what == "inf" else "nan_in_forward",
        f"`{op.name}` makes {what} out of finite numbers, in the forward already; the gradient of "
        f"{story.name} cannot be better.",
        where=op.site.where,
        evidence=(*facts, *line_of(story.record, op)),
        fix="look at the input of that op: too large for exp or a power, 0 under a log or a "
        "division, negative under a root; use the stable form (logsumexp, log_softmax, log1p)",
    )


def _range(op: Op, value: Value) -> str:
    stats = value.stats
    if stats is None:
        return ""
    name = f"`{value.name}`" if value.name else f"the input of {op.name}"
    zeros = f", {percent(stats.zeros)} zeros" if stats.zeros else ""
    return f"{name}: {stats.min:.4g} to {stats.max:.4g}{zeros}"


def _masked(story: Story, op: Op, inputs: list[Value]) -> Explanation:
    """A softmax over nothing but -inf."""
    facts = []
    for value in inputs:
        rows = _rows_of_minus_inf(value)
        if rows:
            listed = ", ".join(map(str, rows[:_MOST_ROWS]))
            facts.append(f"row {listed} of the mask or scores, shape {value.shape}, is all -inf")
            break
    else:
        facts.append(f"{op.name} was given -inf and made NaN{spot(op)}")
    return Explanation(
        "fully_masked",
        f"`{op.name}` has a row in which everything is masked: a softmax over nothing but -inf is "
        f"0 / 0 = NaN, and backward spreads it to {story.name}, even if those rows are left out "
        "of the loss.",
        where=op.site.where,
        evidence=(*facts, *line_of(story.record, op)),
        fix="leave empty samples out, or keep one key visible in each row; masking the result "
        "afterwards does not help",
    )


def _rows_of_minus_inf(value: Value) -> list[int]:
    numbers, width = value.numbers, value.shape[-1] if value.shape else 0
    if not numbers or not width:
        return []
    infinite = float("-inf")
    return [
        start // width
        for start in range(0, len(numbers), width)
        if all(number == infinite for number in numbers[start : start + width])
    ]


def _on_the_way_back(story: Story) -> Explanation | None:
    """The first node that received finite gradients and sent others."""
    way = story.on_the_way()
    for node in story.ran:
        stats = arriving(node)
        if node.index not in way or stats is None or finite(stats):
            continue
        senders = story.senders(node)
        if not senders:
            return Explanation(
                "gradient_given",
                "backward was started with a gradient that is not finite already.",
                evidence=(f"{node.name} is the first node and received it",),
                fix="call backward() without an argument",
            )
        sender = _likeliest(senders)
        hooked = None if _slope_at(sender) else why_hooked(story, sender, node, _kind(stats))
        return hooked or _slope_of(story, sender, stats)
    return None


def _likeliest(senders: list[Node]) -> Node:
    return next((node for node in senders if _slope_at(node) is not None), senders[-1])


def _slope_at(node: Node) -> _Slope | None:
    return next((slope for slope in _SLOPES if stem(node.name) in slope.nodes), None)


def _slope_of(story: Story, node: Node, sent: Stats) -> Explanation:
    op = story.op_of(node)
    for value in (story.record.values[i] for i in op.inputs) if op is not None else ():
        if op is not None and value.stats is not None and not finite(value.stats):
            return _infinity(story, value, op)  # it came in with the numbers of the forward
    name = f"`{op.name}`" if op is not None else node.name
    received = arriving(node)
    length = f", {received.norm:.3g} of length," if received is not None else ""
    facts = [f"{node.name} received a finite gradient{length} and sent {_kind(sent)}"]
    where = ""
    if op is not None:
        where = op.site.where
        facts += [
            _range(op, value)
            for value in (story.record.values[i] for i in op.inputs[:2])
            if value.stats is not None
        ]
        facts += line_of(story.record, op)
    arrived = story.arrived
    became = _kind(arrived) if arrived is not None else "NaN"
    slope = _slope_at(node)
    if slope is not None:
        return Explanation(
            "infinite_slope",
            f"The slope of {name} is infinite here: {slope.at}. The gradient of {story.name} "
            f"became {became} behind it.",
            where=where,
            evidence=tuple(facts),
            fix=slope.fix,
        )
    return Explanation(
        "gradient_overflow",
        f"Going back through {name}, the gradient became {_kind(sent)}: the numbers that it is "
        "multiplied by are too large for the dtype, or 0 met inf.",
        where=where,
        evidence=tuple(facts),
        fix="look at the size of the inputs there: scale the data, or skip the step when the "
        "gradient is not finite",
    )


def _kind(stats: Stats) -> str:
    return "NaN" if stats.nan else "inf" if stats.inf else "a finite one"


def _forward_inf(story: Story) -> Explanation | None:
    for op, inputs, outputs in story.forward_ops():
        made = any(value.stats is not None and value.stats.inf for value in outputs)
        if made and all(value.stats is None or finite(value.stats) for value in inputs):
            return _made_here(story, op, inputs, "inf")
    return None


def _clipped(story: Story) -> Explanation | None:
    """clip_grad_norm_ met an infinite norm: it scales by 0, and 0 * inf is NaN."""
    for before, after in zip(story.life, story.life[1:], strict=False):
        if not is_clip(story.record, after.op):
            continue
        origin = _on_the_way_back(story) or _forward_inf(story)
        facts = [f"before clipping: {before.stats.inf} inf and {before.stats.nan} NaN"]
        facts += [f"after it: {after.stats.inf} inf and {after.stats.nan} NaN"]
        if origin is not None and origin.where:
            facts.append(f"it was not finite since {origin.where}: {origin.evidence[0]}")
        return Explanation(
            "clipped_infinity",
            "The gradient was infinite before clipping. Its norm is inf, so clip_grad_norm_ "
            "scales by 1 / inf: what was finite becomes 0, what was infinite NaN.",
            where=after.op.site.where,
            evidence=(*facts, *line_of(story.record, after.op)),
            fix="skip the step when the norm is not finite: norm = clip_grad_norm_(...); "
            "if norm.isfinite(): optimizer.step(); or error_if_nonfinite=True",
        )
    return None


def is_clip(record: GraphRecord, op: Op) -> bool:
    """Whether an op that changed a gradient is a clipping: by norm or by value."""
    if op.kind != "op" or not op.in_place:
        return False
    names = {other.name for other in record.ops if other.site == op.site}
    by_norm = any("norm" in name for name in names)
    return by_norm or any("clamp" in name for name in (op.name, *names))
