"""Forward raised: one sentence that names the layer, the line, the shapes, and what to do.

torch's message says that two shapes do not fit; it does not say which layer of the model that was,
nor what the layer wanted. Both are known here: an ordered list of small finders looks at the layer
that raised and at what it was given; the first that sees the reason says it.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pytorch_lab.errors import ModelError
from pytorch_lab.modules.lines import spell_line
from pytorch_lab.modules.outputs import spell, tensors_of
from pytorch_lab.modules.reach import is_library_file
from pytorch_lab.modules.registered import type_name

# torch names the type or the device when these are what does not fit.
_MISMATCH = re.compile(r"type|device")
LONGEST_WORDS = 240  # of the model's own error, in characters
LONGEST_PATH = 120


@dataclass(frozen=True)
class Scene:
    """What raised, and what it was given."""

    error: Exception
    module: nn.Module
    name: str  # "`encoder.fc1`, a Linear"
    inputs: tuple[Any, ...]

    @property
    def words(self) -> str:
        """What the error says; a message of the learner's own may raise in saying it."""
        try:
            return str(self.error)
        except Exception:  # noqa: BLE001 - the learner's own __str__
            return "its message could not be read"

    @property
    def tensor(self) -> torch.Tensor | None:
        """The first tensor that the layer was given."""
        return next(iter(tensors_of(self.inputs)), None)


@dataclass(frozen=True)
class Reason:
    """The three parts of the sentence that depend on the case."""

    expected: str
    got: str
    todo: str


def model_error(
    error: Exception, *, path: str | None, module: nn.Module, inputs: Any, root: nn.Module
) -> ModelError:
    """The error to raise instead of the model's own, which it names."""
    frames = list(_frames(error))
    given = _arguments(module, frames) or tuple(inputs)
    kind = type_name(module)
    name = (
        f"`{_short(path, LONGEST_PATH)}`, {'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
        if path
        else kind
    )
    scene = Scene(error, module, name, given)
    reason = next(filter(None, (finder(scene) for finder in FINDERS)), None) or _anything(scene)
    line = _line(frames)
    words = f"{type(error).__name__}: {_short(scene.words)}"
    return ModelError(
        f"{type_name(root)} could not run: expected {reason.expected}, got {reason.got}, "
        f"in {name}{f', at {line}' if line else ''} ({words}); {reason.todo}."
    )


def _short(words: str, longest: int = LONGEST_WORDS) -> str:
    words = " ".join(words.split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def _frames(error: BaseException) -> Iterator[tuple[Any, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _arguments(module: nn.Module, frames: list[tuple[Any, int]]) -> tuple[Any, ...]:
    """What the module's forward was called with, by position or by name: its frame still knows."""
    for frame, _ in reversed(frames):
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        if frame.f_code.co_name == "forward" and names and frame.f_locals.get(names[0]) is module:
            return tuple(frame.f_locals[name] for name in names[1:] if name in frame.f_locals)
    return ()


def _line(frames: list[tuple[Any, int]]) -> str:
    """The last line of the learner's code; without one, the last outside of torch and of us."""
    files = [(frame.f_code.co_filename, line) for frame, line in frames]
    own = [where for where in files if not is_library_file(where[0])]
    foreign = [w for w in files if "/torch/" not in w[0] and "pytorch_lab" not in w[0]]
    places = own[-1:] or foreign[-1:]
    return spell_line(*places[0]) if places else ""


def _too_deep(scene: Scene) -> Reason | None:
    if not isinstance(scene.error, RecursionError):
        return None
    return Reason(
        "a forward that Python's recursion can carry",
        "more calls inside each other than it allows",
        "leave out the example inputs to look at the model without running it",
    )


def _wrong_size(scene: Scene, wanted: int, axis: int, what: str) -> Reason | None:
    """The reason, if one axis of the input is not as long as the layer wants."""
    x = scene.tensor
    if x is None or x.dim() == 0 or -axis > x.dim() or axis >= x.dim() or x.shape[axis] == wanted:
        return None
    shape = f"(..., {wanted})" if axis == -1 else f"(N, {wanted}, ...)"
    return Reason(
        f"an input of shape {shape}",
        spell(x),
        f"give it {wanted} values on axis {axis}, or make the layer with {what}={x.shape[axis]}",
    )


def _no_forward(scene: Scene) -> Reason | None:
    if not isinstance(scene.error, NotImplementedError) or "forward" not in scene.words:
        return None
    return Reason(
        "a module with a forward",
        f"a {type_name(scene.module)}, which has none",
        "leave out the example inputs to look at it without running it",
    )


def _linear(scene: Scene) -> Reason | None:
    if not isinstance(scene.module, nn.Linear):
        return None
    return _wrong_size(scene, scene.module.in_features, -1, "in_features")


def _recurrent(scene: Scene) -> Reason | None:
    if not isinstance(scene.module, nn.RNNBase):
        return None
    return _wrong_size(scene, scene.module.input_size, -1, "input_size")


def _convolution(scene: Scene) -> Reason | None:
    module, x = scene.module, scene.tensor
    if not isinstance(module, nn.modules.conv._ConvNd) or x is None:
        return None
    n = len(module.kernel_size)
    if x.dim() not in (n + 1, n + 2):
        return Reason(
            f"an input with {n + 2} axes, (N, {module.in_channels}, ...)",
            spell(x),
            f"give it a batch of {n}-d images; unsqueeze(0) makes a batch of one",
        )
    return _wrong_size(scene, module.in_channels, x.dim() - n - 1, "in_channels")


def _norm(scene: Scene) -> Reason | None:
    module = scene.module
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        if "more than 1 value per channel" in scene.words:
            return Reason(
                "more than one value per channel while training",
                spell(scene.tensor),
                "call model.eval() first, or give more than one sample",
            )
        return _wrong_size(scene, module.num_features, 1, "num_features")
    if isinstance(module, nn.LayerNorm):
        return _wrong_size(scene, int(module.normalized_shape[-1]), -1, "normalized_shape")
    return None


def _embedding(scene: Scene) -> Reason | None:
    module, x = scene.module, scene.tensor
    if not isinstance(module, nn.Embedding) or x is None:
        return None
    if x.is_floating_point():
        return Reason(
            "whole numbers, the rows to look up",
            f"{str(x.dtype).removeprefix('torch.')} of shape {spell(x)}",
            "give it token numbers, for example torch.randint(0, "
            f"{module.num_embeddings}, {spell(x)})",
        )
    if x.numel() and not x.is_meta and int(x.max()) >= module.num_embeddings:
        return Reason(
            f"numbers below {module.num_embeddings}",
            f"{int(x.max())}",
            f"give it smaller numbers, or make the layer with num_embeddings={int(x.max()) + 1}",
        )
    return None


def _other_dtype_or_device(scene: Scene) -> Reason | None:
    x = scene.tensor
    own = next(scene.module.parameters(), None)
    if x is None or own is None or not _MISMATCH.search(scene.words):
        return None
    if x.device != own.device:
        return Reason(
            f"an input on {own.device}, where the weights are",
            f"one on {x.device}",
            f"move it with x.to({str(own.device)!r})",
        )
    if x.is_floating_point() and x.dtype != own.dtype:
        return Reason(
            f"an input of {own.dtype}, like the weights",
            f"one of {x.dtype}",
            f"convert it with x.to({own.dtype})",
        )
    return None


def _signature(scene: Scene) -> Reason | None:
    words = scene.words
    if not isinstance(scene.error, TypeError) or "argument" not in words:
        return None
    if f"{type(scene.module).__name__}.forward()" not in words:
        return None
    try:
        signature = inspect.signature(scene.module.forward)
    except (TypeError, ValueError):
        return None
    count = len(scene.inputs)
    return Reason(
        f"example inputs that fit forward{signature}",
        f"{count} of them" if count != 1 else "one",
        "give describe(model, ...) what you would give the model",
    )


def _anything(scene: Scene) -> Reason:
    shapes = ", ".join(spell(x) for x in tensors_of(scene.inputs)[:4])
    return Reason(
        "forward to take the example inputs",
        f"an error on inputs of shape {shapes}" if shapes else "an error",
        "call model(...) with the same inputs to see the whole traceback",
    )


FINDERS = (
    _too_deep,
    _no_forward,
    _signature,
    _linear,
    _convolution,
    _norm,
    _embedding,
    _recurrent,
    _other_dtype_or_device,
)
