"""The record of a module: plain numbers and strings, no tensor kept alive.

`describe` fills these classes from a live `nn.Module`; the text and the X-ray read nothing else.
Paths are written as Python would reach the thing from the root, without the leading `self.`:
`encoder.layers.0.weight`, `heads[2].bias` (a plain list), `cache['k']` (a dict). The root is `""`.
What only a function can reach is written after its name: `forward(drop=)` is a default argument,
`forward().head` a variable it sees, `forward().Linear` a layer that it makes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One registered parameter or buffer, at its first name."""

    path: str
    kind: str  # "parameter" or "buffer"
    shape: tuple[int, ...] | None  # None while lazy
    dtype: str  # "float32"
    device: str  # "cpu", "cuda:0", "meta"
    requires_grad: bool
    bytes: int
    persistent: bool  # False: a buffer that state_dict() leaves out
    aliases: tuple[str, ...] = ()  # its other names, when it is shared

    @property
    def numel(self) -> int:
        """Number of elements; 0 while lazy."""
        if self.shape is None:
            return 0
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One registered module, at its first path."""

    path: str
    type: str  # class name
    depth: int  # the root has 0
    training: bool
    tensors: tuple[TensorInfo, ...]  # its own, not its children's
    n_parameters: int  # elements, its own and its descendants', each tensor once
    n_trainable: int
    bytes: int  # parameters and buffers, its own and its descendants'
    calls: int | None = None  # None: no example inputs were given
    output_shapes: tuple[str, ...] = ()  # of its last call: "(2, 10)", "{'logits': (2, 10)}"
    lazy: bool = False
    aliases: tuple[str, ...] = ()  # its other paths, when the same object is registered twice
    extra: str = ""  # its extra_repr(): "in_features=4, out_features=2, bias=True"


@dataclass(frozen=True, slots=True)
class Invisible:
    """Something that forward uses or an attribute holds, but that the module does not register."""

    path: str
    kind: str  # "parameter", "module" or "tensor"
    holder: str  # "list", "dict", "dataclass", "attribute", "closure", "forward", ...
    type: str  # "Linear", "Parameter", "Tensor"
    shape: tuple[int, ...] | None  # of the tensor; None for a module
    n_parameters: int  # elements that the optimizer will never see
    why: str  # one sentence
    fix: str  # one sentence, with the call to write
    line: str = ""  # "model.py:12" when it is known where it was made
    used: bool | None = None  # by the forward that was run; None: none was run


@dataclass(frozen=True, slots=True)
class ModuleTree:
    """All that is known about a module. Modules stand in the order of `named_modules()`."""

    type: str
    modules: tuple[ModuleInfo, ...]
    invisible: tuple[Invisible, ...]
    shared: tuple[tuple[str, ...], ...]  # groups of names of one parameter, buffer or module
    frozen: tuple[str, ...]  # paths of parameters with requires_grad=False
    modes: tuple[tuple[str, bool], ...]  # (path, training) where it differs from the root
    unused: tuple[str, ...] | None  # parameters without a part in the output; None: not run
    non_persistent: tuple[str, ...]
    lazy: tuple[str, ...]
    training: bool
    n_parameters: int
    n_trainable: int
    bytes: int

    def __str__(self) -> str:
        from pytorch_lab.modules.text import render

        return render(self)
