"""Which value of a record is this parameter? A record keeps no tensors, only names and shapes."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import nn

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Value


class Found(NamedTuple):
    """A value of a record."""

    place: int
    sure: bool  # known by its name; else it is the only leaf of its shape


def find(record: GraphRecord, parameter: torch.Tensor, model: nn.Module | None) -> Found | None:
    """The value that a parameter was; None if the run did not read it.

    With a model the name decides, and it must be the whole name: `fc.weight` is not
    `sub.fc.weight`. Without one the shape decides, if one leaf only has it.

    Args:
        record: a recording.
        parameter: what is looked for.
        model: whose parameter it is.

    Raises:
        UsageError: several values could be it, or the model is not known in the record.

    Example:
        >>> from pytorch_lab.graph import record
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        >>> rec = record(lambda x: net[1](x), torch.ones(1, 2))
        >>> rec.values[find(rec, net[1].weight, net).place].name, find(rec, net[0].weight, net)
        ('net.1.weight', None)
    """
    shape = tuple(parameter.shape)
    fitting = [value for value in _leaves(record) if value.requires_grad and value.shape == shape]
    own = dict(model.named_parameters()) if model is not None else {}
    name = next((name for name, tensor in own.items() if tensor is parameter), "")
    if not name:
        return _by_shape(fitting, shape)
    at = _places_of(record, own, type(model).__name__)
    named = [value for value in fitting for path in at if value.name == _join(path, name)]
    if len(named) == 1:
        return Found(named[0].index, sure=True)
    known = {_join(path, other) for path in at for other in own}
    strangers = [value for value in fitting if value.name not in known]
    if named or strangers:
        raise _unclear(max(len(named), len(strangers)), shape)
    return None


def _by_shape(fitting: list[Value], shape: tuple[int, ...]) -> Found | None:
    if len(fitting) > 1:
        raise _unclear(len(fitting), shape)
    return Found(fitting[0].index, sure=False) if fitting else None


def _unclear(count: int, shape: tuple[int, ...]) -> UsageError:
    return UsageError(
        f"why_none expected to find a leaf of shape {shape} in the record, found {count} that "
        "could be it; pass the model that was recorded as model= so that it is known by its name, "
        "or a function instead of the record"
    )


def _leaves(record: GraphRecord) -> list[Value]:
    return [value for value in record.values if value.is_leaf and value.op is None]


def _places_of(record: GraphRecord, own: Mapping[str, torch.Tensor], kind: str) -> list[str]:
    """The paths at which the record knows a model: where most names of parameters fit.

    Several of the same class can fit alike.
    """
    shapes = {value.name: value.shape for value in _leaves(record) if value.kind == "parameter"}
    paths = {call.path for call in record.calls if call.type == kind}
    if not paths:  # its methods were called, or its layers
        paths = {
            "",
            *(
                shown[: -len(name) - 1]
                for shown in shapes
                for name in own
                if shown.endswith(f".{name}")
            ),
        }
    fits: dict[str, int] = {}
    for path in paths:
        fitting = {_join(path, name): tuple(tensor.shape) for name, tensor in own.items()}
        below = [name for name in shapes if name.startswith(_join(path, ""))]
        fits[path] = sum(1 if shapes[name] == fitting.get(name) else -1 for name in below)
    most = max(fits.values())
    return [path for path, count in fits.items() if count == most]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
