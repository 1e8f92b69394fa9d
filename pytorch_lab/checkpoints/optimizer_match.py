"""Which moments of a saved optimizer would meet which parameters of a live one?

An optimizer saves no names: its state belongs to positions. So a model that was built in another
order, or an optimizer that was given its parameters in another order, gets the moments of other
parameters. `load_state_dict` compares the sizes of the groups and nothing else; a wrong shape
raises at the first `step()`, an equal one never.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from pytorch_lab.checkpoints.item import PLAIN, Item, spell
from pytorch_lab.checkpoints.live import same_value
from pytorch_lab.checkpoints.record import ModelMatch, Moment, OptimizerMatch
from pytorch_lab.checkpoints.unrun import Made, Row, Table

# What a scheduler counts; everything else in its state is a setting.
COUNTERS = frozenset((
    "last_epoch", "_step_count", "_last_lr", "_get_lr_called_within_step", "_is_initial",
    "verbose", "best", "num_bad_epochs", "cooldown_counter", "T_cur", "mode_worse", "optimizer",
    "_schedulers", "_initial_step",
))  # fmt: skip
STRANGER = "a tensor outside the model"
OWN_RATES = ("params", "param_names")


def optimizer_state(root: Item) -> Item | None:
    """The first dict that an optimizer's `state_dict()` gave."""
    return next((item for item in root.walk() if item.kind == "dict" and is_optimizer(item)), None)


def is_optimizer(item: Item) -> bool:
    """Whether a dict has what an optimizer saves."""
    return item.kid("state") is not None and item.kid("param_groups") is not None


def scheduler_state(root: Item) -> Item | None:
    """The first dict that a scheduler's `state_dict()` gave."""
    return next(
        (one for one in root.walk() if one.kind == "dict" and one.kid("last_epoch") is not None),
        None,
    )


def match(
    root: Item, optimizer: torch.optim.Optimizer, model: nn.Module | None, found: ModelMatch | None
) -> OptimizerMatch | None:
    """How the saved state meets an optimizer; None if the checkpoint has none."""
    saved = optimizer_state(root)
    if saved is None:
        return None
    groups = _groups(saved)
    live = [group["params"] for group in optimizer.param_groups]
    moments = _moments(saved, groups, optimizer, model, found, root)
    sizes = tuple(len(_positions(group)) for group in groups)
    live_sizes = tuple(len(parameters) for parameters in live)
    return OptimizerMatch(
        type(optimizer).__name__, saved.path, sizes, live_sizes, tuple(moments),
        tuple(_settings(groups, optimizer)), sizes == live_sizes,
    )  # fmt: skip


def _groups(saved: Item) -> list[Item]:
    groups = saved.kid("param_groups")
    return groups.kids if groups is not None else []


def _positions(group: Item) -> list[Any]:
    """The numbers of a group's parameters, as values; also when the row of them is folded."""
    item = group.kid("params")
    return listed(item.value) if item is not None else []


def _moments(
    saved: Item, groups: list[Item], optimizer: torch.optim.Optimizer, model: nn.Module | None,
    found: ModelMatch | None, root: Item,
) -> list[Moment]:  # fmt: skip
    names = _live_names(optimizer, model)
    before = _saved_names(groups, root, found)
    states = {kid.name.strip("[]"): kid for kid in getattr(saved.kid("state"), "kids", [])}
    live = [one for group in optimizer.param_groups for one in group["params"]]
    moments = []
    place = 0
    for g, group in enumerate(groups):
        for position in _positions(group):
            state = states.get(str(position))
            parameter = live[place] if place < len(live) else None
            saved_for = before[place] if place < len(before) else ""
            meets = names[place] if place < len(names) else ""
            moments.append(_moment(place, g, state, parameter, saved_for, meets))
            place += 1
    return moments


def _moment(
    place: int, group: int, state: Item | None, parameter: torch.Tensor | None, saved_for: str,
    meets: str,
) -> Moment:  # fmt: skip
    shape = _shape(state)
    own = tuple(parameter.shape) if parameter is not None else None
    if parameter is None:
        verdict = "nothing"
    elif shape is not None and shape != own:
        verdict = "shape"
    elif saved_for and meets and saved_for != meets and not meets.startswith(STRANGER):
        verdict = "other"
    else:
        verdict = "fits"
    path = state.path if state is not None else ""
    return Moment(place, group, saved_for, meets, shape, own, verdict, path)


def _shape(state: Item | None) -> tuple[int, ...] | None:
    """The shape of the moments at a position: of its largest tensor that is no counter."""
    tensors = [kid for kid in state.kids if kid.shape] if state is not None else []
    named = {kid.name: kid for kid in tensors}
    for name in ("exp_avg", "momentum_buffer", "square_avg", "sum", "eta", "prev"):
        if name in named:
            return named[name].shape
    return None


def _live_names(optimizer: torch.optim.Optimizer, model: nn.Module | None) -> list[str]:
    known = {id(one): name for name, one in model.named_parameters()} if model is not None else {}
    found = []
    for group in optimizer.param_groups:
        given = group.get("param_names") or [""] * len(group["params"])
        for one, name in zip(group["params"], given, strict=False):
            found.append(known.get(id(one)) or name or f"{STRANGER} {_sizes(one)}"
                         if model is not None else name or f"parameter {len(found)}")  # fmt: skip
    return found


def _sizes(tensor: torch.Tensor) -> str:
    return str(tuple(tensor.shape))


def _saved_names(groups: list[Item], root: Item, found: ModelMatch | None) -> list[str]:
    """The names that the positions had: as the file says, else by the order of its weights."""
    given = [_strings(group.kid("param_names")) for group in groups]
    if groups and all(given):
        return [name for names in given for name in names]
    if found is None or len(groups) != 1:
        return []
    return _by_order(root, found, len(_positions(groups[0])))


def _by_order(root: Item, found: ModelMatch, count: int) -> list[str]:
    """Names of the weights in the file's order, if they are as many as the optimizer had."""
    home = next((item for item in root.walk() if item.path == found.path), None)
    keys = [(kid.key, kid) for kid in home.kids if kid.kind == "tensor"] if home else []
    floating = [(name, kid) for name, kid in keys if kid.dtype in ("float32", "float64", "float16",
                "bfloat16") and not name.endswith(("running_mean", "running_var"))]  # fmt: skip
    distinct: dict[tuple[str, int], str] = {}
    for name, kid in floating:  # a tied weight has two names and one position
        distinct.setdefault((kid.storage, kid.offset), name)
    names = list(distinct.values())
    buffers = {key.path for key in found.of("missing")}
    named = [name for name in names if name not in buffers]
    prefix = found.prefix
    return [name.removeprefix(prefix) for name in named] if len(named) == count else []


def _strings(item: Item | None) -> list[str]:
    if item is None:
        return []
    return [one for one in listed(item.value) if isinstance(one, str)]


def _settings(groups: list[Item], optimizer: torch.optim.Optimizer) -> list[tuple[str, str, str]]:
    """What loading would change in the groups: the file's settings win."""
    found = []
    for g, (group, live) in enumerate(zip(groups, optimizer.param_groups, strict=False)):
        for kid in group.kids:
            if kid.name in OWN_RATES or kid.name not in live:
                continue
            saved = value_of(kid)
            if saved is not kid and not same_value(saved, live[kid.name]):
                what = f"{kid.name} of group {g}" if len(groups) > 1 else kid.name
                found.append((what, spell(saved), spell(live[kid.name])))
    return found


def listed(value: Any) -> list[Any]:
    """The items of a list or tuple, live or of a pickle; nothing for anything else."""
    if isinstance(value, Row):
        return value.items
    return list(value) if isinstance(value, list | tuple) else []


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    """The pairs of a dict or Counter, live or of a pickle."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, Made):
        return value.pairs or _pairs(value.arg(0))
    return value.pairs if isinstance(value, Table) else []


def value_of(item: Item) -> Any:
    """Plain things, and tuples, lists and dicts of them, as Python has them; else the item."""
    if isinstance(item.value, PLAIN) and item.kind == "value":
        return item.value
    items = listed(item.value)
    if items and all(isinstance(one, PLAIN) for one in items):
        return tuple(items) if item.type == "tuple" else items
    pairs = _pairs(item.value)
    if item.kind == "dict" and pairs and all(type(v) in PLAIN for pair in pairs for v in pair):
        return dict(pairs)
    return item


def scheduler_settings(saved: Item, scheduler: Any = None) -> list[tuple[str, Any, Any]]:
    """The settings that a scheduler's state brings along; with a live one, those that differ.

    Example:
        >>> from pytorch_lab.checkpoints.live import LiveReader
        >>> state = LiveReader().item({"step_size": 20, "gamma": 0.1, "last_epoch": 3})
        >>> scheduler_settings(state)
        [('step_size', 20, None), ('gamma', 0.1, None)]
    """
    found = []
    for kid in saved.kids:
        value = value_of(kid)
        if kid.name in COUNTERS or value is kid or value is None:
            continue
        if scheduler is None:
            found.append((kid.name, value, None))
        elif hasattr(scheduler, kid.name) and not same_value(value, getattr(scheduler, kid.name)):
            found.append((kid.name, value, getattr(scheduler, kid.name)))
    return found
