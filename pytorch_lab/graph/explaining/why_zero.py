"""Why is a gradient exactly zero? The op on its way whose slope is 0."""

from typing import NamedTuple

from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.gradient_story import Story, arriving, zero
from pytorch_lab.graph.explaining.spots import capital, line_of, spot, stem
from pytorch_lab.graph.explaining.why_hook import why_hooked
from pytorch_lab.graph.schema import Node, Op, Value


class _Flat(NamedTuple):
    """Ops with a slope of 0, by the name of the node without "Backward0"."""

    nodes: tuple[str, ...]
    cause: str
    says: str
    fix: str


_FLAT = (
    _Flat(
        ("Sign", "Round", "Floor", "Ceil", "Trunc", "Sgn"),
        "zero_slope",
        "{op} is made of flat steps: its slope is 0 everywhere, so {name} gets a gradient of 0 "
        "through it.",
        "use a smooth step while training, sigmoid((x - t) / 0.1), or pass the gradient straight "
        "through: soft + (hard - soft).detach()",
    ),
    _Flat(
        ("Clamp", "ClampMin", "ClampMax", "Hardtanh", "Hardsigmoid"),
        "clamped",
        "All that goes into {op} lies outside of its range, where its slope is 0, so {name} gets "
        "a gradient of 0.",
        "compute the loss on what was there before the clamp, or use sigmoid or tanh; clamp for "
        "display only",
    ),
    _Flat(
        ("Relu", "Threshold", "Hardshrink", "Softshrink", "Hardswish"),
        "dead_relu",
        "All that goes into {op} lies where its slope is 0, so {name} gets a gradient of 0.",
        "lower the learning rate or the bias that drove it there, or use LeakyReLU or GELU",
    ),
    _Flat(
        ("Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Erf"),
        "saturated",
        "{op} is saturated: its input is so large that its slope is 0 in this dtype, so {name} "
        "gets a gradient of 0.",
        "keep its input small: scale the weights or normalise before it; give logits to a loss "
        "that takes them",
    ),
    _Flat(
        ("MseLoss", "SmoothL1Loss", "HuberLoss"),
        "at_minimum",
        "The loss is at its minimum: prediction and target are equal, so {name} gets a gradient "
        "of 0.",
        "nothing, if that is so; else look whether the target was computed from the prediction",
    ),
    _Flat(
        ("Pow", "Abs", "Cos", "Cosh", "LinalgVectorNorm"),
        "stationary",
        "The input of {op} is just where its slope is 0, so {name} gets a gradient of 0.",
        "nothing, if the loss is smallest there; if training starts there, start elsewhere",
    ),
    _Flat(
        ("Where", "MaskedFill"),
        "masked_out",
        "{op} takes all its values from elsewhere, so {name} gets a gradient of 0.",
        "look at the condition: it leaves nothing of what comes from the parameter",
    ),
)
_PRODUCTS = (
    "Mul",
    "Mm",
    "Bmm",
    "Addmm",
    "Addmv",
    "Mv",
    "Dot",
    "Baddbmm",
    "Convolution",
    "Linear",
    "Div",
)


_FLAT_FOR_SURE = ("zero_slope", "clamped", "dead_relu")  # a hook there is to look at it, perhaps
_BIAS_FIRST = ("addmm", "addmv", "baddbmm", "addbmm")


def why_zero(story: Story) -> Explanation | None:
    """A finder: each element of the gradient that arrived is 0."""
    arrived = story.arrived
    if arrived is None or not zero(arrived):
        return None
    node = _last_with_a_gradient(story)
    if node is None:
        return Explanation(
            "zero_given",
            f"backward was started with a gradient of 0, so {story.name} gets 0.",
            evidence=("the first node received 0",),
            fix="look at what the loss is multiplied by",
        )
    way = story.on_the_way()
    onward = [story.record.nodes[place] for place in node.next if place in way]
    flat = next((flat for flat in _FLAT if stem(node.name) in flat.nodes), None)
    hooked = next(filter(None, (why_hooked(story, node, there, "0") for there in onward)), None)
    if hooked is not None and (flat is None or flat.cause not in _FLAT_FOR_SURE):
        return hooked
    cancelling = _cancelling(story, node)
    if cancelling:
        return _cancels(story, cancelling)
    op = story.op_of(node)
    if flat is not None:
        return _explain(story, node, op, flat)
    factor = _zero_factor(story, node, op) if stem(node.name) in _PRODUCTS else None
    return _times_zero(story, node, op, factor)


def _last_with_a_gradient(story: Story) -> Node | None:
    """The first node on the way that received something and sent only zeros towards the leaf."""
    way = story.on_the_way()
    nodes = story.record.nodes
    for node in story.ran:
        stats = arriving(node)
        if node.index not in way or stats is None or zero(stats):
            continue
        onward = [arriving(nodes[place]) for place in node.next if place in way]
        if onward and all(grad is None or zero(grad) for grad in onward):
            return node
    return None


def _cancelling(story: Story, node: Node) -> list[Node]:
    """The nodes that send to the same place and whose gradients add up to 0 there."""
    way = story.on_the_way()
    for place in node.next:
        if place in way:
            senders = story.senders(story.record.nodes[place])
            live = [one for one in senders if (stats := arriving(one)) and not zero(stats)]
            if len(live) > 1:
                return live
    return []


def _cancels(story: Story, nodes: list[Node]) -> Explanation:
    ops = [op for node in nodes if (op := story.op_of(node)) is not None]
    return Explanation(
        "cancels",
        f"{capital(story.name)} comes into the loss {len(nodes)} times, and the gradients of "
        "these add up to exactly 0: its value makes no difference to the loss.",
        where=ops[0].site.where if ops else "",
        evidence=tuple(
            f"{node.name} sends a part of it{spot(story.op_of(node))}" for node in nodes[:4]
        ),
        fix="nothing, if that is so: what is added to both sides of a difference cancels",
    )


def _facts(story: Story, node: Node, op: Op | None) -> list[str]:
    received = arriving(node)
    length = f" of length {received.norm:.3g}" if received is not None else ""
    facts = [f"{node.name} received a gradient{length} and sent 0"]
    if op is not None and op.inputs:
        value = story.record.values[op.inputs[0]]
        if value.stats is not None:
            facts.append(f"the input of {op.name}: {value.stats.min:.4g} to {value.stats.max:.4g}")
        facts += line_of(story.record, op)
    return facts


def _explain(story: Story, node: Node, op: Op | None, flat: _Flat) -> Explanation:
    name = f"`{op.name}`" if op is not None else node.name
    return Explanation(
        flat.cause,
        flat.says.format(op=name, name=story.name),
        where=op.site.where if op is not None else "",
        evidence=tuple(_facts(story, node, op)),
        fix=flat.fix,
    )


def _zero_factor(story: Story, node: Node, op: Op | None) -> Value | None:
    """The other factor of a product, if it is 0 everywhere; never what is asked about."""
    values = story.record.values
    saved = [values[s.value] for s in node.saved if s.value is not None]
    read = [values[place] for place in _factors(op)] if op is not None else []
    own = values[story.place].storage
    zeros = [
        v for v in (*read, *saved) if v.stats is not None and zero(v.stats) and v.storage != own
    ]
    return next((v for v in zeros if v.kind == "parameter"), zeros[0] if zeros else None)


def _factors(op: Op) -> tuple[int, ...]:
    """What an op multiplies: without the bias."""
    if op.name in _BIAS_FIRST:
        return op.inputs[1:]
    return op.inputs[:2] if op.name.startswith(("linear", "conv")) else op.inputs


def _times_zero(story: Story, node: Node, op: Op | None, factor: Value | None) -> Explanation:
    name = f"`{op.name}`" if op is not None else node.name
    where = op.site.where if op is not None else ""
    facts = _facts(story, node, op)
    if factor is not None and factor.kind == "parameter":
        return Explanation(
            "zero_weights",
            f"The weights `{factor.name}` that {name} multiplies by are 0, so what is before them "
            f"gets a gradient of 0 in this step. They get one themselves: if they were set to 0 "
            "on purpose (the last layer of a residual branch), this ends with the first step.",
            where=where,
            evidence=(f"`{factor.name}`: all elements are 0", *facts),
            fix="nothing, if it is so on purpose; if all layers start at 0, initialise them "
            "randomly",
        )
    says = f"The gradient ends at {name}: it received one and sent 0 towards {story.name}."
    if factor is not None:
        known = f"`{factor.name}`" if factor.name else "the other factor"
        says = f"{name} multiplies by {known}, which is 0, so {story.name} gets a gradient of 0."
        facts.insert(0, f"{known}, shape {factor.shape}: all elements are 0")
    return Explanation(
        "times_zero",
        says,
        where=where,
        evidence=tuple(facts),
        fix="look at what the values are multiplied by: the input, a mask, a weight of the loss",
    )
