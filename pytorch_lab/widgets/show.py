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


def _played(record: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.player import Player

    if args or kwargs:
        raise UsageError(
            "show(record) expected the record alone, got more beside it; "
            "give inputs when it is made: show(graph.record(model, inputs))."
        )
    return Player(record)


def _tensor(tensor: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab import graph

    if tensor.grad_fn is None:
        raise UsageError(
            "show(tensor) expected a tensor with a grad_fn, got one without: it was not computed "
            "from anything that requires a gradient; "
            "print it, or show the run that made it: show(graph.record(f, x))."
        )
    return _played(graph.of(tensor), *args, **kwargs)


def _lr_curve(curve: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.lr_curve import LrPicture

    _alone("LrCurve", args, kwargs)
    return LrPicture(curve)


def _scheduler(scheduler: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.optim.schedule import steps_to_show, trace_schedule
    from pytorch_lab.widgets.lr_curve import LrPicture

    if not args and "steps" not in kwargs:
        args = (steps_to_show(scheduler),)
    return LrPicture(trace_schedule(scheduler, *args, **kwargs))


def _loader(loader: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.loader import measured

    return measured(loader, *args, **kwargs)


def _timeline(timeline: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.loader import LoaderPicture

    _alone("LoaderTimeline", args, kwargs)
    return LoaderPicture(timeline)


def _randomness(seen: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.randomness import RandomnessPicture

    _alone("WorkerRandomness", args, kwargs)
    return RandomnessPicture(seen)


def _race(path: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.race import Race

    return Race(path, **kwargs)


def _param_groups(record: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.param_groups import GroupsPicture

    _alone("ParamGroups", args, kwargs)
    return GroupsPicture(record)


def _optimizer(optimizer: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.optim import groups
    from pytorch_lab.widgets.param_groups import GroupsPicture

    return GroupsPicture(groups(optimizer, *args, **kwargs))


def _checkpoint_file(path: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.checkpoints import inspect
    from pytorch_lab.widgets.checkpoint import Checkpoint

    return Checkpoint(inspect(path, *args, **kwargs))


def _checkpoint(tree: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.checkpoint import Checkpoint

    _alone("CheckpointTree", args, kwargs)
    return Checkpoint(tree)


def _resume_gap(gap: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.resume import Resume

    _alone("ResumeGap", args, kwargs)
    return Resume(gap)


def _gradient_check(found: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.gradient_check import GradientPicture

    _alone("GradientCheck", args, kwargs)
    return GradientPicture(found)


def _loop(record: Any, *args: Any, **kwargs: Any) -> LabWidget:
    from pytorch_lab.widgets.loop import LoopPicture

    _alone(type(record).__name__, args, kwargs)
    return LoopPicture(record)


def _alone(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise UsageError(
            f"show(record) expected the {name} alone, got more beside it; "
            "give it when the record is made."
        )


HANDLERS = [
    Handler("pytorch_lab.checkpoints.record.CheckpointTree", _checkpoint, "a CheckpointTree"),
    Handler("pytorch_lab.checkpoints.resume.ResumeGap", _resume_gap, "a ResumeGap"),
    Handler("pytorch_lab.customop.record.GradientCheck", _gradient_check, "a GradientCheck"),
    Handler("builtins.str", _checkpoint_file, "the path of a checkpoint"),
    Handler("builtins.dict", _checkpoint_file, "a dict that would be saved"),
    Handler("pathlib.PurePath", _checkpoint_file, "a Path"),
    Handler("pathlib._local.PurePath", _checkpoint_file, "a Path"),  # Python 3.13
    Handler("pytorch_lab.dataloader.timeline.LoaderTimeline", _timeline, "a LoaderTimeline"),
    Handler("pytorch_lab.dataloader.drawn.WorkerRandomness", _randomness, "a WorkerRandomness"),
    Handler("torch.utils.data.dataloader.DataLoader", _loader, "a DataLoader"),
    Handler("pytorch_lab.loop.record.LoopRun", _loop, "a LoopRun"),
    Handler("pytorch_lab.loop.record.LoopRuns", _loop, "several LoopRuns"),
    Handler("pytorch_lab.modules.record.ModuleTree", _module_tree, "a ModuleTree"),
    Handler("torch.nn.modules.module.Module", _module, "an nn.Module"),
    Handler("pytorch_lab.graph.graph_record.GraphRecord", _played, "a GraphRecord"),
    Handler("pytorch_lab.graph.comparing.compare.GraphDiff", _played, "a GraphDiff"),
    Handler("torch.Tensor", _tensor, "a tensor with a grad_fn"),
    Handler("pytorch_lab.optim.curve.LrCurve", _lr_curve, "an LrCurve"),
    Handler("torch.optim.lr_scheduler.LRScheduler", _scheduler, "a scheduler"),
    Handler("pytorch_lab.optim.path.StepPath", _race, "a StepPath"),
    Handler("pytorch_lab.optim.param_groups.ParamGroups", _param_groups, "a ParamGroups"),
    Handler("torch.optim.optimizer.Optimizer", _optimizer, "an optimizer"),
]


def show(x: Any, *args: Any, **kwargs: Any) -> LabWidget:
    """The picture of a record, or of a live object, which is first collected.

    Example:
        >>> import torch
        >>> import pytorch_lab as lab
        >>> print(lab.show(torch.nn.Linear(4, 2)).state["type"])
        Linear

    Args:
        x: an `nn.Module`, a tensor with a `grad_fn`, a scheduler, an optimizer, a checkpoint's
            path or the dict that would be saved, or a record such as a `ModuleTree` or a
            `GraphRecord`.
        args: example inputs for the module: its forward is then run once; for a scheduler how
            many steps to look ahead; for an optimizer its model.
        kwargs: the same, by name.

    Raises:
        UsageError: `x` is nothing that can be shown.
    """
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(x).__mro__}
    for handler in HANDLERS:
        if handler.type in names:
            return handler.draw(x, *args, **kwargs)
    *others, last = dict.fromkeys(handler.says for handler in HANDLERS)
    known = f"{', '.join(others)} or {last}"
    raise UsageError(f"show(x) expected {known}, got {type(x).__name__!r}: {x!r:.60}")
