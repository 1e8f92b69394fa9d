"""What a person should know of an optimizer's groups: small finders, each for one thing."""

from collections.abc import Iterator, Sequence
from typing import Any

from pytorch_lab import words
from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.param_groups import Group, Parameter, listed
from pytorch_lab.optim.torch_private import is_hooked
from pytorch_lab.remark import problems_first
from pytorch_lab.words import count


def remarks(
    groups: Sequence[Group], parameters: Sequence[Parameter], found: Sequence[Any], with_model: bool
) -> tuple[Remark, ...]:
    """All that there is to say, problems first.

    Args:
        groups: of the record.
        parameters: of the record.
        found: the live tensors, one for each of the parameters, as `grouping.Found`.
        with_model: whether it is known what should be in the groups.
    """
    said = []
    if with_model:
        said += _absent(parameters, found)
    said += _twice(groups, parameters)
    said += _frozen(parameters, found)
    said += _hooked(groups, parameters, found)
    said += _groups(groups)
    said += _tied(groups, parameters)
    return problems_first(said)


def _absent(parameters: Sequence[Parameter], found: Sequence[Any]) -> Iterator[Remark]:
    """What is in no group, and what the optimizer holds instead."""
    missing = [p for p in parameters if p.trainable and not p.groups]
    foreign = [p for p in parameters if p.foreign]
    held = [p for p in parameters if p.groups and not p.foreign]
    if foreign and not held:
        yield Remark(
            "other_model", "problem",
            f"None of the optimizer's {count(len(foreign), 'tensor')} belongs to this model: it "
            "was made for another one, or for this one before it was copied or built anew. Make "
            "the optimizer from this model's parameters().",
        )  # fmt: skip
        return
    if missing:
        live = {id(p): one for p, one in zip(parameters, found, strict=True)}
        graded = sum(live[id(p)].tensor.grad is not None for p in missing)
        gets = f" ({graded:,} of them with a gradient)" if graded else ""
        yield Remark(
            "in_none", "problem",
            f"{count(len(missing), 'trainable tensor')} {_is(missing)} in no group, so step() "
            f"never changes {'it' if len(missing) == 1 else 'them'}{gets}: "
            f"{listed([p.names[0] for p in missing])}. Make the optimizer after the last change "
            "of the model and of requires_grad, or use add_param_group.",
        )  # fmt: skip
    if foreign:
        replaced = {p.shape for p in foreign}
        yield Remark(
            "foreign", "problem",
            f"The optimizer holds {count(len(foreign), 'tensor')} that the model has not: "
            f"{listed([p.names[0] for p in foreign])}. "
            + ("A layer was replaced after the optimizer was made."
               if missing and len(replaced) else "They belong to another module, or to none."),
        )  # fmt: skip


def _twice(groups: Sequence[Group], parameters: Sequence[Parameter]) -> Iterator[Remark]:
    for p in parameters:
        times = len(p.groups)
        first = groups[p.groups[0]] if p.groups else None
        if first is None or times < 2:
            continue
        name, *others = p.names
        also = f" (also {listed(others)})" if others else ""
        if len(set(p.groups)) == 1:
            yield Remark(
                "twice", "problem",
                f"{name}{also} is {times} times in {first.name}, and is "
                f"updated {times} times in each step. List it once.",
            )  # fmt: skip
            continue
        where = [groups[index] for index in sorted(set(p.groups))]
        names = " and in ".join(group.name for group in where)
        unmade = not any(group.optimizer for group in where)
        yield Remark(
            "in_two", "problem",
            f"{name}{also} is in {names}"
            + (": torch refuses such groups. " if unmade else ": each updates it. ")
            + ("Its names are one tensor: collect by named_parameters(), which gives it once."
               if others else "Put it into one of them."),
        )  # fmt: skip


def _frozen(parameters: Sequence[Parameter], found: Sequence[Any]) -> Iterator[Remark]:
    frozen = [
        (p, one.tensor.grad is not None)
        for p, one in zip(parameters, found, strict=True)
        if p.groups and not p.trainable
    ]
    stale = [p.names[0] for p, has_grad in frozen if has_grad]
    if stale:
        yield Remark(
            "stale_gradient", "problem",
            f"{listed(stale)} {'is' if len(stale) == 1 else 'are'} frozen, but still with a "
            "gradient from before: step() goes on applying it. Set `p.grad = None`.",
        )  # fmt: skip
    idle = [p.names[0] for p, has_grad in frozen if not has_grad]
    if idle:
        yield Remark(
            "frozen", "note",
            f"{count(len(idle), 'frozen tensor')} in the groups without a gradient: step() skips "
            f"{'it' if len(idle) == 1 else 'them'}, weight decay included ({listed(idle)}).",
        )  # fmt: skip


def _hooked(
    groups: Sequence[Group], parameters: Sequence[Parameter], found: Sequence[Any]
) -> Iterator[Remark]:
    """Weight decay acts after a hook on the gradient, so that a zero there protects nothing."""
    for p, one in zip(parameters, found, strict=True):
        decays = [groups[i] for i in p.groups if groups[i].weight_decay]
        if decays and is_hooked(one.tensor):
            yield Remark(
                "hooked_decay", "problem",
                f"{p.names[0]} has a hook on its gradient and weight_decay="
                f"{decays[0].weight_decay:g} ({decays[0].name}): the decay comes after the hook, "
                "so what the hook sets to zero shrinks all the same. Put it into a group with "
                "weight_decay=0.",
            )  # fmt: skip


def _groups(groups: Sequence[Group]) -> Iterator[Remark]:
    for group in groups:
        if not group.n_tensors:
            yield Remark("empty", "note", f"{group.name[:1].upper()}{group.name[1:]} is empty.")
        elif group.lr == 0:
            yield Remark(
                "zero_lr", "note",
                f"{group.name[:1].upper()}{group.name[1:]} has lr 0 now: step() changes nothing "
                "in it.",
            )  # fmt: skip


def _tied(groups: Sequence[Group], parameters: Sequence[Parameter]) -> Iterator[Remark]:
    for p in parameters:
        if len(p.names) > 1 and len(p.groups) == 1:
            yield Remark(
                "tied", "note",
                f"{' = '.join(p.names[:4])} is one tensor, once in "
                f"{words.listed(groups[i].name for i in p.groups)}.",
            )  # fmt: skip
    small = sum(
        1
        for p in parameters
        if len(p.shape or ()) == 1 and any(groups[i].weight_decay for i in p.groups)
    )
    if small:
        yield Remark(
            "decayed_vectors", "note",
            f"Weight decay also pulls on {count(small, 'vector')} (biases, norms); often they get "
            "a group with weight_decay=0.",
        )  # fmt: skip


def _is(things: Sequence[Any]) -> str:
    return "is" if len(things) == 1 else "are"
