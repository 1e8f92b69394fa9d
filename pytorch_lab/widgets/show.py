"""`show(x)`: the one verb to look at anything.

An ordered list of handlers; the first that knows `x` draws it. A handler names the type it knows
as text, so that looking one up imports no room that is not needed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.base import LabWidget


class Handler(NamedTuple):
    """What one kind of object is called, and how it becomes a widget."""

    type: str  # "module.Class", matched against the classes of x and their bases
    draw: Callable[..., LabWidget]
    says: str  # for the message that lists what can be shown


def _module(model: Any, *example_inputs: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.modules import describe
    from pytorch_lab.widgets.xray import Xray

    return Xray(describe(model, *example_inputs, **kwargs))


def _module_tree(tree: Any, *inputs: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.xray import Xray

    if inputs or kwargs:
        raise UsageError(
            "show(tree) expected the ModuleTree alone, got inputs beside it; "
            "give them with the model itself: show(model, inputs)."
        )
    return Xray(tree)


HANDLERS = [
    Handler("pytorch_lab.modules.record.ModuleTree", _module_tree, "a ModuleTree"),
    Handler("torch.nn.modules.module.Module", _module, "an nn.Module"),
]


def show(x: Any, *args: Any, **kwargs: Any) -> LabWidget:
    """The picture of a record, or of a live object, which is first collected.

    Example:
        >>> import torch
        >>> import pytorch_lab as lab
        >>> print(lab.show(torch.nn.Linear(4, 2)).state["type"])
        Linear

    Args:
        x: an `nn.Module`, or a record such as a `ModuleTree`.
        args: example inputs for the module: its forward is then run once.
        kwargs: the same, by name.

    Raises:
        UsageError: `x` is nothing that can be shown.
    """
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(x).__mro__}
    for handler in HANDLERS:
        if handler.type in names:
            return handler.draw(x, *args, **kwargs)
    known = " or ".join(handler.says for handler in HANDLERS)
    raise UsageError(f"show(x) expected {known}, got {type(x).__name__!r}: {x!r:.60}")
