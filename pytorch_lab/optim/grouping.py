"""Which parameter is in which group of the optimizer, which is in none, which is in two?

    print(optim.groups(optimizer, model))
    print(optim.groups([muon, adamw], model))           # several optimizers of one model
    print(optim.groups([{"params": [...]}], model))     # before the optimizer is made

Only looks: nothing is stepped, nothing is changed.
"""

import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from pytorch_lab import words
from pytorch_lab.errors import UsageError
from pytorch_lab.modules.registered import shape_of
from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.group_remarks import remarks
from pytorch_lab.optim.param_groups import Group, Parameter, ParamGroups

NOT_OPTIONS = {"params", "param_names", "lr", "weight_decay", "initial_lr", "name"}


class Raw(NamedTuple):
    """A group as it is held: its options, its tensors, and their names if they are known."""

    optimizer: str
    options: dict[str, Any]
    tensors: list[torch.Tensor]
    names: list[str]


@dataclass(slots=True)
class Found:
    """One tensor while it is looked for; the record keeps no tensor alive."""

    tensor: torch.Tensor
    names: list[str] = field(default_factory=list)
    known_as: str = ""  # the name that the optimizer was given with it
    groups: list[int] = field(default_factory=list)


def groups(optimizer: Any, model: torch.nn.Module | None = None) -> ParamGroups:
    """Who is in which parameter group, with which rate and weight decay.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
        >>> optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
        >>> record = groups(optimizer, net)
        >>> record.in_none
        ('1.weight', '1.bias')
        >>> print(record.problems[0].text)
        2 trainable tensors are in no group, so step() never changes them: 1.weight, 1.bias. ...

    Args:
        optimizer: an optimizer, a list of them, or what an optimizer would be made from: a list of
            parameters or of group dicts.
        model: whose parameters should be in the groups; without it names are unknown.

    Raises:
        UsageError: something else was given, or reading it would use it up.
    """
    if model is not None and not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"groups(optimizer, model) expected an nn.Module as `model`, got "
            f"{type(model).__name__!r}; give the model itself."
        )
    if is_used_up(optimizer):
        return _of_nothing(model)
    raw, spent = _raw_groups(optimizer)
    found = _find(raw, model)
    names = sorted({group.optimizer for group in raw}, key=[g.optimizer for g in raw].index)
    several = len(names) > 1 or (isinstance(optimizer, list | tuple) and len(optimizer) > 1)
    infos = tuple(_group(i, raw, several) for i in range(len(raw)))
    parameters = tuple(_parameter(one, model is not None) for one in found)
    said = remarks(infos, parameters, found, model is not None)
    return ParamGroups(
        optimizer=words.listed(filter(None, names)) or "no optimizer yet",
        model=type(model).__name__ if model is not None else "",
        groups=infos,
        parameters=parameters,
        remarks=(*(_used_up(index) for index in spent), *said),
    )


def is_used_up(value: Any) -> bool:
    """Whether a generator has been read to its end.

    Example:
        >>> params = torch.nn.Linear(2, 2).parameters()
        >>> optimizer = torch.optim.SGD(params, lr=0.1)
        >>> is_used_up(params)
        True
    """
    if not isinstance(value, types.GeneratorType):
        return False
    return inspect.getgeneratorstate(value) == inspect.GEN_CLOSED


def _of_nothing(model: torch.nn.Module | None) -> ParamGroups:
    found = _find([], model)
    return ParamGroups(
        optimizer="no optimizer yet",
        model=type(model).__name__ if model is not None else "",
        groups=(),
        parameters=tuple(_parameter(one, model is not None) for one in found),
        remarks=(_used_up(None),),
    )


def _used_up(index: int | None) -> Remark:
    where = "" if index is None else f" of group {index}"
    return Remark(
        "used_up", "problem",
        f"The generator of parameters{where} is used up: it was read before, by an optimizer or a "
        "loop, and gives nothing any more, so that clip_grad_norm_ with it clips nothing. Keep a "
        "list: `params = list(model.parameters())`.",
    )  # fmt: skip


def _raw_groups(given: Any) -> tuple[list[Raw], list[int]]:
    """The groups, and the indices of those whose generator is used up."""
    if isinstance(given, Optimizer):
        return [_held(type(given).__name__, group) for group in given.param_groups], []
    if isinstance(given, torch.nn.Module):
        raise UsageError(
            "groups(optimizer, model) expected the optimizer first, got an nn.Module "
            f"({type(given).__name__}); write groups(optimizer, model)."
        )
    if isinstance(given, Iterator):
        _refuse_iterator(given)
    if not isinstance(given, list | tuple) or not given:
        raise UsageError(
            "groups(optimizer, model) expected an optimizer, a list of them, or a list of "
            f"parameters or group dicts, got {given!r:.60}."
        )
    if all(isinstance(one, Optimizer) for one in given):
        return [raw for one in given for raw in _raw_groups(one)[0]], []
    dicts = given if all(isinstance(one, dict) for one in given) else [{"params": given}]
    spent = [i for i, group in enumerate(dicts) if is_used_up(group.get("params"))]
    return [_held("", group | {"params": _listed(group)}) for group in dicts], spent


def _listed(group: dict[str, Any]) -> list[Any]:
    """The parameters that a group dict was given, without reading an iterator."""
    given = group.get("params", [])
    if isinstance(given, torch.Tensor):
        return [given]
    if is_used_up(given):
        return []
    if isinstance(given, Iterator):
        _refuse_iterator(given)
    return list(given)


def _refuse_iterator(given: Any) -> None:
    raise UsageError(
        f"groups(optimizer, model) expected lists of parameters, got a {type(given).__name__}, "
        "which reading would use up; give list(model.parameters())."
    )


def _held(optimizer: str, group: dict[str, Any]) -> Raw:
    """A group as the optimizer has it; the parameters may come with their names."""
    names = list(group.get("param_names", []))
    tensors = []
    for item in group["params"]:
        name, tensor = item if isinstance(item, tuple) and len(item) == 2 else ("", item)
        if not isinstance(tensor, torch.Tensor):
            raise UsageError(
                "groups(optimizer, model) expected tensors in a group, got "
                f"{type(tensor).__name__}: {tensor!r:.60}."
            )
        tensors.append(tensor)
        if name:
            names.append(str(name))
    options = {key: value for key, value in group.items() if key not in ("params", "param_names")}
    return Raw(optimizer, options, tensors, names if len(names) == len(tensors) else [])


def _find(raw: list[Raw], model: torch.nn.Module | None) -> list[Found]:
    """Every tensor once: the model's in order, then the optimizer's own."""
    found: dict[int, Found] = {}
    if model is not None:
        for name, tensor in model.named_parameters(remove_duplicate=False):
            found.setdefault(id(tensor), Found(tensor)).names.append(name)
    for index, group in enumerate(raw):
        for place, tensor in enumerate(group.tensors):
            one = found.setdefault(id(tensor), Found(tensor))
            one.groups.append(index)
            one.known_as = group.names[place] if group.names else one.known_as
    return list(found.values())


def _parameter(found: Found, with_model: bool) -> Parameter:
    shape = shape_of(found.tensor)
    unnamed = found.known_as or f"tensor {shape if shape is not None else 'lazy'}"
    return Parameter(
        names=tuple(found.names) or (unnamed,),
        shape=shape,
        trainable=found.tensor.requires_grad,
        groups=tuple(found.groups),
        foreign=with_model and not found.names,
    )


def _group(index: int, raw: list[Raw], several: bool) -> Group:
    group = raw[index]
    own = index - next(i for i, other in enumerate(raw) if other.optimizer == group.optimizer)
    plain = str(group.options.get("name", f"group {own if several else index}"))
    lr = group.options.get("lr")
    tensors = {id(tensor): tensor for tensor in group.tensors}.values()
    return Group(
        name=f"{group.optimizer} {plain}" if several and group.optimizer else plain,
        optimizer=group.optimizer,
        lr=None if lr is None else float(lr),
        weight_decay=float(group.options.get("weight_decay", 0.0) or 0.0),
        options=tuple(
            (key, _spell(value)) for key, value in group.options.items() if key not in NOT_OPTIONS
        ),
        n_tensors=len(tensors),
        n_elements=sum(t.numel() for t in tensors if shape_of(t) is not None),
    )


def _spell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value!r:.40}" if isinstance(value, int | str | tuple | None) else type(value).__name__
