"""What is this torch function to a reader: an op, a way out of torch, or a mere question?

A function mode sees everything: additions, but also `x.shape` and `len(x)`. A getter makes nothing
and is left out; an exit makes no tensor either, but the graph ends there, so it stays.
"""

import types
from typing import Any, NamedTuple


class Trait(NamedTuple):
    """The verdict on one function."""

    name: str
    kind: str  # see `schema.KINDS`; "" is left out
    may_write: bool  # whether its arguments must be looked at again afterwards
    leaves_all: bool = False  # whether what is known of tensors before it holds after it, too


_KEPT_GETTERS = {
    "T": "op",
    "mT": "op",
    "H": "op",
    "mH": "op",
    "real": "op",
    "imag": "op",
    "data": "detach",
}
_EXITS = frozenset(
    {
        "item",
        "numpy",
        "tolist",
        "equal",
        "allclose",
        "is_nonzero",
        "__bool__",
        "__int__",
        "__float__",
        "__complex__",
        "__index__",
        "__array__",
        "__contains__",
        "__dlpack__",
    }
)
_SKIPPED = frozenset(
    {
        "__dir__",
        "__format__",
        "__hash__",
        "__len__",
        "__repr__",
        "__str__",
        "_is_view",
        "_nnz",
        "_set_grad_enabled",
        "_typed_storage",
        "cdist_shape",
        "data_ptr",
        "dense_dim",
        "dim",
        "element_size",
        "get_device",
        "has_names",
        "is_coalesced",
        "is_complex",
        "is_conj",
        "is_contiguous",
        "is_floating_point",
        "is_inference",
        "is_neg",
        "is_pinned",
        "is_same_size",
        "is_set_to",
        "is_shared",
        "is_signed",
        "is_tensor",
        "ndimension",
        "nelement",
        "numel",
        "numpy_T",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "retain_grad",
        "result_type",
        "size",
        "sparse_dim",
        "storage",
        "storage_offset",
        "storage_type",
        "stride",
        "type",
        "untyped_storage",
    }
)
_MEMORY = frozenset({"_typed_storage", "storage", "untyped_storage", "_set_grad_enabled"})
_PLAIN = {
    "true_divide": "div",
    "truediv": "div",
    "floordiv": "floor_divide",
    "radd": "add",
    "rmul": "mul",
    "rsub": "rsub",
    "rtruediv": "rdiv",
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "idiv": "div_",
    "ifloordiv": "floor_divide_",
    "ipow": "pow_",
    "imod": "remainder_",
    "iand": "bitwise_and_",
    "ior": "bitwise_or_",
    "ixor": "bitwise_xor_",
    "ilshift": "lshift_",
    "irshift": "rshift_",
}


_IN_PLACE = frozenset({"setitem", *(name for name in _PLAIN if name.startswith("i"))})
_WRITERS = (
    "batch_norm",
    "embedding",
    "instance_norm",
    "moving_avg",
    "multi_head_attention",
    "rrelu",
)
_FUNCTIONAL = ("torch.functional", "torch.nn.functional")
# What its functions are; an op that somebody registered, `torch.ops.mine.op`, is none of these.
_OF_TORCH = (
    types.BuiltinFunctionType,
    types.FunctionType,
    types.GetSetDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
)


def trait_of(func: Any) -> Trait:
    """The verdict on a function as a mode receives it.

    Example:
        >>> import torch
        >>> trait_of(torch.Tensor.relu_), trait_of(torch.Tensor.item).kind
        (Trait(name='relu_', kind='op', may_write=True, leaves_all=False), 'exit')
        >>> trait_of(torch.Tensor.shape.__get__).kind, trait_of(torch.Tensor.data.__get__).kind
        ('', 'detach')
    """
    known = TRAITS.get(func)
    if known is None:
        known = _judge(func)
        if (getattr(func, "__module__", None) or "torch").startswith("torch"):
            TRAITS[func] = known
    return known


TRAITS: dict[Any, Trait] = {}  # of torch's own functions, which never die


def _judge(func: Any) -> Trait:
    name = getattr(func, "__name__", None) or str(func)
    if name in ("__get__", "__set__"):
        return _property(name, getattr(getattr(func, "__self__", None), "__name__", ""))
    if name in _SKIPPED or name.startswith("_record_function"):
        return Trait(name, "", False, name not in _MEMORY)
    name_, kind = _kind(name, getattr(func, "__module__", None) or "")
    may_write = _may_write(func, name)
    known = isinstance(func, _OF_TORCH) and kind in ("op", "exit")
    return Trait(name_, kind, may_write, known and not may_write)


def _may_write(func: Any, name: str) -> bool:
    """By its name; `out=` and `inplace=True` are for the caller to see."""
    if name.endswith("__"):
        return name.strip("_") in _IN_PLACE
    if name.endswith("_") or any(part in name for part in _WRITERS):
        return True
    return isinstance(func, types.FunctionType) and func.__module__ not in _FUNCTIONAL


def _property(access: str, name: str) -> Trait:
    if access == "__set__":
        return Trait(f"set_{name}", "op" if name == "data" else "", False)
    return Trait(name, _KEPT_GETTERS.get(name, ""), False, name != "data")


def _kind(name: str, module: str) -> tuple[str, str]:
    if name in _EXITS:
        return name.strip("_"), "exit"
    if name in ("detach", "detach_"):
        return name, "detach"
    if name == "backward" or (name == "grad" and module.startswith("torch.autograd")):
        return name, "backward"
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        name = _PLAIN.get(name, name)
    elif name.endswith("_packet"):
        name = name.removesuffix("_packet")
    return name.split(".")[0], "op"
