"""What is an op inside of: a custom Function, a checkpoint, a transform, an optimizer's step?

Torch announces none of these to a function mode, but all run their Python in frames that can be
recognised. Going up all frames costs microseconds, so it is done only where something hints at a
region: gradients are off, a transform or a hook for saved tensors is active, or one is still open.
"""

import types
from typing import Any, NamedTuple

from torch.utils import checkpoint as _checkpoint

_TRANSFORMS = {
    "vmap.<locals>.wrapped": "vmap",
    "grad.<locals>.wrapper": "grad",
    "grad_and_value.<locals>.wrapper": "grad_and_value",
    "jacrev.<locals>.wrapper_fn": "jacrev",
    "jacfwd.<locals>.wrapper_fn": "jacfwd",
    "functionalize.<locals>.wrapped": "functionalize",
    "jvp": "jvp",
    "vjp": "vjp",
    "linearize": "linearize",
}
_FUNCTIONS = ("function", "compiled")


class Region(NamedTuple):
    """A region that is open: the frame keeps its identity for as long as it is held."""

    frame: types.FrameType
    op: int  # its row
    start_ns: int


class Found(NamedTuple):
    """What going up the frames told."""

    frames: list[tuple[types.FrameType, str, str]]  # frame, kind, name; the outermost first
    optimizer: bool


def look_up(frame: types.FrameType | None, end: types.FrameType | None, is_readers: Any) -> Found:
    """Go up from an op to the frame that started the recording.

    Args:
        frame: where to start.
        end: where to stop.
        is_readers: says of a code object whether the reader wrote it.
    """
    found: list[tuple[types.FrameType, str, str]] = []
    optimizer = False
    outermost = ""  # of the reader's functions met so far, the one nearest to an optimizer
    while frame is not None and frame is not end:
        code = frame.f_code
        special = _SPECIAL.get(code.co_name)
        if special is not None and code.co_filename.endswith(special):
            kind, name = _verdict(code, frame)
            if kind == "optimizer":
                optimizer = optimizer or outermost in ("", "step")
            elif kind:
                found.append((frame, kind, name))
        if is_readers(code):
            outermost = code.co_name
        frame = frame.f_back
    found.reverse()
    return Found(found, optimizer)


# The names of the frames looked for, and how their files end
_FUNCTORCH = ("torch/_functorch/apis.py", "torch/_functorch/eager_transforms.py")
_SPECIAL: dict[str, tuple[str, ...]] = {
    "apply": ("torch/autograd/function.py",),
    "checkpoint": ("torch/utils/checkpoint.py",),
    "wrapper": (*_FUNCTORCH, "torch/optim/optimizer.py"),
    "wrapped": _FUNCTORCH,
    "wrapper_fn": _FUNCTORCH,
    "jvp": _FUNCTORCH,
    "vjp": _FUNCTORCH,
    "linearize": _FUNCTORCH,
}


def _verdict(code: types.CodeType, frame: types.FrameType) -> tuple[str, str]:
    qualname = code.co_qualname
    if code.co_name == "apply":
        cls = frame.f_locals.get("cls")
        if cls is _checkpoint.CheckpointFunction:  # `checkpoint` itself is further up
            return "", ""
        name = getattr(cls, "__name__", "Function")
        return ("compiled" if name == "CompiledFunction" else "function"), name
    if code.co_name == "checkpoint":
        return "checkpoint", "checkpoint"
    if qualname == "Optimizer.profile_hook_step.<locals>.wrapper":
        return "optimizer", "step"
    name = _TRANSFORMS.get(qualname, "")
    return ("transform", name) if name else ("", "")


def arguments_of(frame: types.FrameType) -> tuple[Any, ...]:
    """What a region was called with, as far as its frame still says."""
    held = frame.f_locals
    given = (held.get("args", ()), held.get("kwargs", {}), held.get("primals", ()))
    return tuple(one for one in given if isinstance(one, tuple | dict))


def has_node(kind: str, frame: types.FrameType) -> bool:
    """Whether torch made a node for the region before it ran what is in it."""
    return kind in _FUNCTIONS or (
        kind == "checkpoint" and bool(frame.f_locals.get("use_reentrant"))
    )
