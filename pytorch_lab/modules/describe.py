"""Look at a model: everything it registers, everything it hides, and nothing is changed.

tree = modules.describe(model)              # looking only
tree = modules.describe(model, x)           # and one forward, watched
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.modules.invisible import Search
from pytorch_lab.modules.record import Invisible, ModuleInfo, ModuleTree
from pytorch_lab.modules.registered import Registry, is_lazy, module_infos, register, type_name
from pytorch_lab.modules.watch import run


def describe(model: torch.nn.Module, *example_inputs: Any, **example_kwargs: Any) -> ModuleTree:
    """All that is known about a module, as a record of plain numbers and strings.

    Example:
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        >>> tree = describe(net)
        >>> tree.n_parameters, [info.type for info in tree.modules]
        (23, ['Sequential', 'Linear', 'ReLU', 'Linear'])

    Args:
        model: any `nn.Module`.
        example_inputs: what you would call the model with; then its forward runs once.
        example_kwargs: the same, by name.

    Raises:
        UsageError: `model` is not a module.
        ModelError: forward raised.
    """
    check_module(model)
    registry = register(model)
    infos = module_infos(registry)
    search = Search(registry)
    invisible = tuple(found.record for found in search.run())
    if not example_inputs and not example_kwargs:
        return assemble(registry, infos, invisible, None)
    ran = run(search, example_inputs, example_kwargs)
    infos = tuple(
        replace(
            info,
            calls=ran.calls.get(info.path, 0),
            output_shapes=ran.output_shapes.get(info.path, ()),
        )
        for info in infos
    )
    invisible = tuple(replace(i, used=i.path in ran.used_invisible) for i in invisible)
    return assemble(registry, infos, _apart(*invisible, *ran.met), ran.unused)


def _apart(*invisible: Invisible) -> tuple[Invisible, ...]:
    """The same things, with a number after a path that was taken before."""
    times: Counter[str] = Counter()
    apart = []
    for thing in invisible:
        times[thing.path] += 1
        n = times[thing.path]
        apart.append(thing if n == 1 else replace(thing, path=f"{thing.path} #{n}"))
    return tuple(apart)


def check_module(model: Any) -> None:
    """Refuse what is not a module, and say what to give instead."""
    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise UsageError(
            f"describe(model) expected an nn.Module object, got the class {model.__name__} "
            f"itself; make one first: describe({model.__name__}(...))."
        )
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"describe(model) expected an nn.Module, got {type(model).__name__!r}; "
            "give the model itself, not its outputs, weights or state_dict()."
        )
    if "_modules" not in vars(model):
        name = type(model).__name__
        raise UsageError(
            f"describe(model) expected a module that is ready, got a {name} whose "
            f"nn.Module.__init__ never ran; call super().__init__() first in {name}.__init__."
        )


def assemble(
    registry: Registry,
    infos: tuple[ModuleInfo, ...],
    invisible: tuple[Any, ...],
    unused: tuple[str, ...] | None,
) -> ModuleTree:
    """The record from its pieces."""
    root = infos[0]
    slots = registry.slots
    return ModuleTree(
        type=type_name(registry.root),
        modules=infos,
        invisible=invisible,
        shared=shared_groups(registry),
        frozen=tuple(
            s.names[0] for s in slots if s.kind == "parameter" and not s.tensor.requires_grad
        ),
        modes=tuple((i.path, i.training) for i in infos if i.training != root.training),
        unused=unused,
        non_persistent=tuple(s.names[0] for s in slots if not s.persistent),
        lazy=tuple(s.names[0] for s in slots if is_lazy(s.tensor)),
        training=root.training,
        n_parameters=root.n_parameters,
        n_trainable=root.n_trainable,
        bytes=root.bytes,
    )


def shared_groups(registry: Registry) -> tuple[tuple[str, ...], ...]:
    """Names of one thing that is registered in more than one place: modules, then tensors.

    What has several names only because the module around it has is not listed again.
    """
    groups = [tuple(seen.paths) for seen in registry.modules if len(seen.places) > 1]
    groups += [tuple(slot.names) for slot in registry.slots if len(slot.places) > 1]
    return tuple(groups)
