"""What is asked of a graph to be filled in by hand, and what a wrong number may mean.

A blank is one number: a local derivative on an edge, or the gradient of a step. Numbers that
learners come to by a known slip (a sign, a factor left out, a path forgotten) are worked out
beforehand, each with a sentence that names the slip and not the answer.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytorch_lab.graph.by_hand import Step
from pytorch_lab.graph.formulas import formula

ZERO = 1e-6  # what counts as 0 for an answer of 0


class Slip(NamedTuple):
    """A wrong number and what it tells about how it was found."""

    value: float
    slack: float
    says: str


class Blank(NamedTuple):
    """A number to be filled in."""

    key: str  # its name in the learner's progress
    label: str  # "∂v1/∂a" on an edge, "a.grad" at a step
    asks: str  # the same in a sentence, for who hears the page
    answer: float
    slack: float
    slips: tuple[Slip, ...]  # the nearest that fits speaks, the first of equals
    otherwise: str  # for a number that is no known slip
    rule: str  # how it is worked out, without numbers; offered after some tries

    def is_right(self, guess: float) -> bool:
        """Whether `guess` is close enough; `near` in derivatives.js has the same rule."""
        return abs(guess - self.answer) <= self.slack

    def says(self, guess: float) -> str:
        """What a wrong guess may mean; `meant` in derivatives.js has the same rule."""
        fits = [slip for slip in self.slips if abs(guess - slip.value) <= slip.slack]
        nearest = min(fits, key=lambda slip: abs(guess - slip.value), default=None)
        return nearest.says if nearest else self.otherwise


def slopes(steps: Sequence[Step], tolerance: float) -> list[Blank]:
    """The local derivatives, edge by edge from the leaves to the result.

    Example:
        >>> from pytorch_lab.graph.by_hand import work_out
        >>> steps = work_out(lambda a, b: a * b, {"a": 2.0, "b": -3.0}, "here")
        >>> [(blank.label, blank.answer) for blank in slopes(steps, 0.01)]
        [('∂L/∂a', -3.0), ('∂L/∂b', 2.0)]
        >>> slopes(steps, 0.01)[0].says(2.0)
        'That is ∂L/∂b, the derivative by the other input.'

    Args:
        steps: of the graph.
        tolerance: how far off a number may be, as a share of the answer: 0.01 is 1 %.
    """
    return [_slope(steps, step, at, tolerance) for step in steps for at in range(len(step.inputs))]


def gradients(steps: Sequence[Step], tolerance: float) -> list[Blank]:
    """The gradients of all steps, from the result back to the leaves.

    Example:
        >>> from pytorch_lab.graph.by_hand import work_out
        >>> steps = work_out(lambda a: a * a + a, {"a": 2.0}, "here")
        >>> blank = gradients(steps, 0.01)[-1]
        >>> blank.label, blank.answer
        ('a.grad', 5.0)
        >>> blank.rule
        'The chain rule: a.grad = ∂v1/∂a · v1.grad + ∂v1/∂a · v1.grad + ∂L/∂a · L.grad.'
    """
    return [_gradient(steps, at, tolerance) for at in reversed(range(len(steps)))]


def _slope(steps: Sequence[Step], step: Step, at: int, tolerance: float) -> Blank:
    source, answer = steps[step.inputs[at]], step.slopes[at]
    by, of = source.name, step.name
    label = f"∂{of}/∂{by}"
    others = {steps[end].name: d for end, d in zip(step.inputs, step.slopes, strict=True)}
    same = [d for end, d in zip(step.inputs, step.slopes, strict=True) if end == step.inputs[at]]
    found = [
        (-answer, "The size is right, the sign is not: does "
                  f"{of} grow or shrink when {by} grows?"),
        *((d, f"That is ∂{of}/∂{name}, the derivative by the other input.")
          for name, d in others.items() if name != by),
        (sum(same), f"Both arrows come from {by}. On this one count {by} here alone, and keep the "
                    "other still; the two are added later."),
        (answer * step.gradient, f"That is the effect on {steps[-1].name}, at the end of the "
                                 f"graph. Here only this one step counts: how fast {of} moves."),
        (0.0, f"0 would mean that {of} does not move at all when {by} moves."),
        (step.value, f"That is the value of {of}, not how fast it moves."),
        (source.value, f"That is the value of {by}, not how fast {of} moves with it."),
        (1 / answer if answer else 0.0, f"That is one over it: {of} moves, {by} is moved."),
    ]  # fmt: skip
    ordinal = f", arrow {at + 1} of {len(step.inputs)}" if len(same) > 1 else ""
    return Blank(
        key=f"{label} {at}",
        label=label,
        asks=f"local derivative of {of} = {step.text} by {by}{ordinal}",
        answer=answer,
        slack=_slack(answer, tolerance),
        slips=_slips(answer, tolerance, found),
        otherwise=f"Not that. Move {by} up by a little, say 0.001, and keep all else still: by "
        f"how much does {of} = {step.text} move, for each 0.001?",
        rule=_rule(step, at, label),
    )


def _rule(step: Step, at: int, label: str) -> str:
    """The op's formula with the learner's names in it: `∂L/∂v2 = 1 − L²`."""
    known = formula(step.node)
    if known is None or at >= len(known.gradients):
        return f"Look at {step.name} = {step.text} as a function of this one letter."
    letters = [line.partition(" = ")[0].removeprefix("dL/d") for line in known.gradients]
    names = dict(zip(letters, step.operands, strict=False))
    spare = [word for word in _words(known.says) if word not in names and word not in "yασ"]
    numbers = [name for name in step.operands if name not in names.values()]
    names |= dict(zip(spare, numbers, strict=False)) | {"y": step.name, "α": "1"}
    line = known.gradients[at].partition(" = ")[2].partition("; ")[0]
    for sign, meant in (("α · ", ""), ("β · ", ""), ("dL/dy · ", ""), ("dL/dy", "1")):
        line = line.replace(sign, meant)
    line = re.sub(_LETTER, lambda found: names.get(found[0], found[0]), line)
    line = re.sub(r"^\(([^()]*)\)$", r"\1", line)
    sigmoid = "; σ is the sigmoid" if "σ" in line else ""
    return f"The rule for this op: {label} = {line}{sigmoid}."


_LETTER = r"(?<!\w)[^\W\d_](?![^\W²³]|\()"  # one that stands alone, no function and no word


def _words(text: str) -> list[str]:
    return re.findall(_LETTER, text.partition(";")[0])


def _gradient(steps: Sequence[Step], at: int, tolerance: float) -> Blank:
    step, last = steps[at], steps[-1].name
    paths = [
        (above, slope)
        for above in steps
        for end, slope in zip(above.inputs, above.slopes, strict=True)
        if end == at
    ]
    if not paths:
        found = _end_slips(step)
        otherwise = rule = f"{last}.grad is how fast {last} moves when {last} itself is moved."
    elif len(paths) == 1:
        found = _path_slips(step, last, *paths[0])
        rule = f"The chain rule: {step.name}.grad = {_term(step, paths[0][0])}."
        otherwise = (
            f"Not that. Follow the arrow down from {step.name}: the local derivative on it, times "
            "the gradient at its end."
        )
    else:
        found = _fork_slips(step, paths)
        terms = " + ".join(_term(step, above) for above, _ in paths)
        rule = f"The chain rule: {step.name}.grad = {terms}."
        otherwise = (
            f"Not that. Follow each of the {len(paths)} arrows down from {step.name}: the local "
            "derivative on it, times the gradient at its end. Then add."
        )
    if paths:
        found += [
            (-step.gradient, "The size is right, the sign is not: look at the signs on the way."),
            (0.0, f"0 would mean that {last} does not move at all when {step.name} moves."),
            (step.value, f"That is the value of {step.name}, not how fast {last} moves with it."),
        ]
    return Blank(
        key=f"{step.name}.grad",
        label=f"{step.name}.grad",
        asks=f"gradient of {step.name}, how fast {last} moves with it",
        answer=step.gradient,
        slack=_slack(step.gradient, tolerance),
        slips=_slips(step.gradient, tolerance, found),
        otherwise=otherwise,
        rule=rule,
    )


def _term(step: Step, above: Step) -> str:
    return f"∂{above.name}/∂{step.name} · {above.name}.grad"


def _end_slips(step: Step) -> list[tuple[float, str]]:
    name = step.name
    return [
        (step.value, f"That is the value of {name}. How fast does {name} move with itself?"),
        (0.0, f"0 would mean that {name} does not move when it is moved."),
    ]


def _path_slips(step: Step, last: str, above: Step, slope: float) -> list[tuple[float, str]]:
    return [
        (slope, "That is the local derivative alone: the factor of the chain is missing. Multiply "
                f"it by {above.name}.grad."),
        (above.gradient, f"That is the gradient that arrives at {above.name}. Multiply it by the "
                         f"local derivative ∂{above.name}/∂{step.name}."),
        (above.gradient + slope, "The chain rule multiplies along a path; you added."),
    ]  # fmt: skip


def _fork_slips(step: Step, paths: list[tuple[Step, float]]) -> list[tuple[float, str]]:
    come = [above.gradient * slope for above, slope in paths]
    alone = [
        (one, f"That is only what comes back through {above.name}. {step.name} is used "
              f"{len(paths)} times: what comes back on all paths is added.")
        for (above, _), one in zip(paths, come, strict=True)
    ]  # fmt: skip
    return [
        *alone,
        (sum(slope for _, slope in paths), "Those are the local derivatives alone. Multiply each "
            "by the gradient at the end of its arrow, then add."),
        (math.prod(come), "You multiplied the paths. Multiply along one path; paths are added."),
        (come[0] - sum(come[1:]), "You took one path from the other. Paths are added, each with "
                                  "its own sign."),
        (sum(come) / len(come), "That is the mean of the paths. They are added: each use counts "
                                "in full."),
    ]  # fmt: skip


def _slack(value: float, tolerance: float) -> float:
    return max(abs(value) * tolerance, ZERO)


def _slips(answer: float, tolerance: float, found: list[tuple[float, str]]) -> tuple[Slip, ...]:
    """The slips that can be told from the answer; last one for a number that is nearly right."""
    close = Slip(answer, 0.15 * abs(answer), "Close. Work it out with one digit more.")
    told = (Slip(value, _slack(value, tolerance), says) for value, says in found)
    apart = (slip for slip in told if abs(slip.value - answer) > 3 * _slack(answer, tolerance))
    return (*apart, close)


def state(blank: Blank) -> dict[str, Any]:
    """What JavaScript needs of it."""
    return blank._asdict() | {"slips": [slip._asdict() for slip in blank.slips]}
