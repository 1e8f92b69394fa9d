"""A gradient that is finite and wrong: scaled, clipped too early, exploding, pulled twice."""

from pytorch_lab.graph.explaining.cuts import follow, results_of
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.gradient_story import Story, arriving, finite
from pytorch_lab.graph.explaining.spots import line_of, spot
from pytorch_lab.graph.explaining.why_bad_number import is_clip
from pytorch_lab.graph.explaining.why_cut import explain_cut
from pytorch_lab.graph.schema import Node, Op

FEWEST_REPEATS = 10  # of one kind of node, before its growth is looked at
GROWTH = 20.0  # of the gradient over these repeats
LARGE = 100.0  # length of a gradient that is called exploding
SMALL = 1e-4  # growth below which it is called vanishing
_LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "kl_div",
    "poisson_nll_loss",
)


def why_scaled(story: Story) -> Explanation | None:
    """A finder: something multiplied the gradient, and clipping took that for its size."""
    return _clipped_while_scaled(story) or _scaled_by_loss(story)


def why_wrong_size(story: Story) -> Explanation | None:
    """A finder: nothing is NaN or zero, and the gradient is not what was meant."""
    return _target(story) or _constant_part(story) or _growth(story)


def _clipped_while_scaled(story: Story) -> Explanation | None:
    """Clipping before the loss scale was divided out again."""
    ops = story.record.ops
    clip = next((m.op for m in story.life if is_clip(story.record, m.op)), None)
    scale = _scale(story)
    if clip is None or scale is None:
        return None
    unscaled = _first_use_of(story, scale, after=results_of_backward(story))
    if unscaled is None or unscaled > clip.index:
        before = next((m for m in story.life if m.op.kind == "backward"), story.life[0])
        value = story.record.values[scale].stats
        factor = f"{value.max:.6g}" if value is not None else "the loss scale"
        facts = [f"length before clipping {before.stats.norm:.3g}, still times {factor}"]
        if story.final is not None:
            facts.append(f"length in the end {story.final.norm:.3g}")
        if unscaled is not None:
            facts.append(f"divided by the scale only afterwards{spot(ops[unscaled])}")
        return Explanation(
            "clipped_while_scaled",
            f"The gradients were clipped while they were still multiplied by {factor}, the scale "
            "of the loss; dividing it out afterwards leaves almost nothing of them.",
            where=clip.site.where,
            evidence=(*facts, *line_of(story.record, clip)),
            fix="call scaler.unscale_(optimizer) before clip_grad_norm_",
        )
    return None


def results_of_backward(story: Story) -> int:
    """The place of the backward in the run."""
    return next((op.index for op in story.record.ops if op.kind == "backward"), 0)


def _scale(story: Story) -> int | None:
    """What the loss was multiplied by just before backward, if that is a tensor without a graph."""
    root = next(iter(results_of(story.record)), None)
    made = story.record.values[root].op if root is not None else None
    if made is None or story.record.ops[made].name != "mul":
        return None
    values = story.record.values
    factors = [place for place in story.record.ops[made].inputs if not values[place].requires_grad]
    return factors[0] if factors else None


def _first_use_of(story: Story, place: int, after: int) -> int | None:
    """The first op after backward that inverts the scale."""
    storage = story.record.values[place].storage
    touched = {storage}
    for op in story.record.ops[after + 1 :]:
        if any(story.record.values[i].storage in touched for i in op.inputs):
            touched.update(story.record.values[i].storage for i in op.outputs)
            if op.name in ("reciprocal", "div", "true_divide", "rdiv"):
                return op.index
    return None


def _scaled_by_loss(story: Story) -> Explanation | None:
    """`loss.backward(loss)`."""
    op = next((op for op in story.record.ops if op.kind == "backward"), None)
    if op is None or len(op.inputs) < 2 or op.inputs[0] != op.inputs[1]:
        return None
    stats = story.record.values[op.inputs[0]].stats
    times = f"{stats.max:.4g}" if stats is not None else "the loss"
    return Explanation(
        "scaled_by_loss",
        "The loss itself was passed to backward as the incoming gradient, so each gradient is "
        "multiplied by the loss: the smaller it gets, the smaller the steps.",
        where=op.site.where,
        evidence=(f"the first node received {times} instead of 1", *line_of(story.record, op)),
        fix="call loss.backward() without an argument",
    )


def _target(story: Story) -> Explanation | None:
    """Both sides of the loss depend on the parameter."""
    flow = follow(story.record, story.place)
    for op in story.record.ops:
        if op.name not in _LOSSES or len(op.inputs) < 2:
            continue
        prediction, target = op.inputs[:2]
        if prediction in flow.alive and target in flow.alive and prediction != target:
            made = story.record.values[target].op
            facts = [f"both inputs of {op.name} lead back to {story.name}"]
            if made is not None:
                facts.append(
                    f"the target is made by {story.record.ops[made].name}"
                    f"{spot(story.record.ops[made])}"
                )
            return Explanation(
                "target_carries_gradient",
                f"The target of `{op.name}` has a graph as well and leads back to {story.name}: "
                "the loss pulls the target towards the prediction, too.",
                where=op.site.where,
                evidence=(*facts, *line_of(story.record, op)),
                fix="if the target is meant to stand still, compute it under torch.no_grad() or "
                "detach() it; in a symmetric loss it is right as it is",
            )
    return None


def _constant_part(story: Story) -> Explanation | None:
    """A part of the loss was copied out of the graph, so it does not count."""
    flow = follow(story.record, story.place)
    for cut in flow.cuts:
        if cut.to_result and cut.cause == "copied":
            told = explain_cut(story.record, cut, story.name, flow)
            return Explanation(
                "part_constant",
                f"{story.name} gets a gradient, but a part of the loss is a constant for it. "
                f"{told.says}",
                where=told.where,
                evidence=told.evidence,
                fix=told.fix,
            )
    return None


def _growth(story: Story) -> Explanation | None:
    """The gradient grows or shrinks from repeat to repeat on its way back."""
    arrived = story.arrived
    end = story.final or arrived
    if arrived is None or end is None or not finite(arrived):
        return None
    rows: dict[str, list[Node]] = {}
    way = story.on_the_way()
    for node in story.ran:
        if node.index in way and node.kind == "builtin" and arriving(node) is not None:
            rows.setdefault(node.name, []).append(node)
    long = [row for row in rows.values() if len(row) >= FEWEST_REPEATS]
    for row in long:
        first, last = (arriving(row[place]) for place in (0, -1))
        if first is None or last is None or not first.norm:
            continue
        ratio = last.norm / first.norm
        if ratio >= GROWTH and end.norm >= LARGE:
            return _grows(story, row, ratio)
        if 0 < ratio <= SMALL:
            return _shrinks(story, row, ratio)
    return None


def _place_of(story: Story, row: list[Node]) -> tuple[str, list[str]]:
    op: Op | None = story.op_of(row[0])
    if op is None:
        return "", []
    return op.site.where, line_of(story.record, op)


def _lengths(story: Story, row: list[Node]) -> str:
    stats = [arriving(row[place]) for place in (0, len(row) // 2, -1)]
    lengths = ", ".join(f"{one.norm:.3g}" for one in stats if one is not None)
    return f"its length at the first, middle and last of {len(row)} {row[0].name}: {lengths}"


def _grows(story: Story, row: list[Node], ratio: float) -> Explanation:
    where, line = _place_of(story, row)
    step = ratio ** (1 / (len(row) - 1))
    arrived = story.arrived
    size = f"{arrived.norm:.3g}" if arrived is not None else "large"
    return Explanation(
        "exploding",
        f"The gradient grows on its way back through {len(row)} repeats of the same step, "
        f"{step:.3f} times at each, {ratio:.3g} times in all, and arrives at {story.name} with "
        f"length {size}.",
        where=where,
        evidence=(_lengths(story, row), *line),
        fix="clip it between backward and step: "
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0); shorter sequences or a gated cell",
    )


def _shrinks(story: Story, row: list[Node], ratio: float) -> Explanation:
    where, line = _place_of(story, row)
    return Explanation(
        "vanishing",
        f"The gradient shrinks on its way back through {len(row)} repeats of the same step, to "
        f"{ratio:.2g} of its length: {story.name} hardly feels the first of them.",
        where=where,
        evidence=(_lengths(story, row), *line),
        fix="residual connections, normalisation, or a gated cell (LSTM, GRU); ReLU instead of "
        "sigmoid",
    )
