"""What one node of torch's graph says of itself: name and kind, what it keeps, when it was made.

What is private in torch is read here: `_raw_saved_*`, `_saved_*` and `_sequence_nr`. Where a
release of torch lacks one, its part of the answer is empty.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import attrgetter, is_not, methodcaller
from typing import Any

import torch

Attributes = tuple[tuple[str, str], ...]

_LEAF_SEQUENCE = 2**64 - 1  # what torch gives AccumulateGrad, so that it runs first
_SAVED = "_raw_saved_"

# Nodes with one output by their formula, of those that are made by the thousand
ONE_OUTPUT = frozenset(
    f"{name}Backward0"
    for name in (
        "Abs", "Add", "Addmm", "Bmm", "Cat", "Clamp", "Clone", "Cos", "Div", "Exp", "Expand",
        "Gelu", "Log", "Mean", "Mm", "Mul", "Neg", "Permute", "Pow", "Relu", "Reshape", "Rsub",
        "Select", "Sigmoid", "Silu", "Sin", "Slice", "Softmax", "Sqrt", "Squeeze", "Stack", "Sub",
        "Sum", "T", "Tanh", "Transpose", "Unsqueeze", "UnsafeView", "View", "Where",
    )
)  # fmt: skip

KNOWN_TYPES: dict[type, tuple[str, str, Attributes]] = {}
SPELLED: dict[Any, str] = {}


def spell(thing: torch.dtype | torch.device) -> str:
    """`float32`, `cpu`."""
    text = SPELLED.get(thing)
    if text is None:
        text = SPELLED[thing] = str(thing).removeprefix("torch.")
    return text


def about_type(node: Any) -> tuple[str, str, Attributes]:
    """The name and the kind of a node, and which attributes hold what it saved.

    Example:
        >>> import torch
        >>> about_type(torch.ones(2, requires_grad=True).exp().grad_fn)
        ('ExpBackward0', 'builtin', (('_raw_saved_result', 'result'),))
    """
    kind = type(node)
    known = KNOWN_TYPES.get(kind)
    if known is None:
        name = node.name().removeprefix("torch::autograd::")
        attributes = tuple(
            (attribute, attribute.removeprefix(_SAVED))
            for attribute in dir(kind)
            if attribute.startswith(_SAVED)
        )
        known = name, _kind_of(node, name), attributes
        if not kind.__name__.endswith("CppFunction"):  # one type for all that torch didn't name
            KNOWN_TYPES[kind] = known
    return known


def _kind_of(node: Any, name: str) -> str:
    if hasattr(node, "variable"):
        return "accumulate"
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        return "builtin"
    if name == "CheckpointFunctionBackward":
        return "checkpoint"
    return "compiled" if name == "CompiledFunctionBackward" else "function"


def saved_tensors(node: Any) -> list[tuple[str, torch.Tensor]]:
    """What a node keeps for backward, by name; not unpacked, and not checked for changes.

    What a saved-tensor hook put in a tensor's place is left out unless it is a tensor.

    Example:
        >>> import torch
        >>> saved_tensors(torch.ones(2, requires_grad=True).square().grad_fn)
        [('self', tensor([1., 1.], requires_grad=True))]
    """
    found: list[tuple[str, Any]] = []
    for attribute, name in about_type(node)[2]:
        try:
            kept = getattr(node, attribute)
        except RuntimeError:  # a list of tensors that is freed
            continue
        if type(kept) is tuple:
            found += [(f"{name}[{number}]", one.data) for number, one in enumerate(kept)]
        else:
            found.append((name, kept.data))
    return [(name, data) for name, data in found if isinstance(data, torch.Tensor)]


def alike(
    nodes: Sequence[Any], places: Iterable[int]
) -> Iterator[tuple[list[int], list[Any], tuple[str, str, Attributes]]]:
    """Nodes of one type together: their places, themselves, and what `about_type` says of them.

    Args:
        nodes: of a graph, by place.
        places: which of them.
    """
    groups: defaultdict[type, list[int]] = defaultdict(list)
    for place in places:
        groups[type(nodes[place])].append(place)
    for kind, group in groups.items():
        about = about_type(nodes[group[0]])
        if kind in KNOWN_TYPES:
            yield group, [nodes[place] for place in group], about
        else:
            for place in group:
                yield [place], [nodes[place]], about_type(nodes[place])


def freed(nodes: Sequence[Any], places: Iterable[int]) -> set[int]:
    """The places of those that can keep something, and keep nothing (any more).

    Args:
        nodes: of a graph, by place.
        places: which of them are asked.

    Example:
        >>> import torch
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> freed([y.grad_fn], [0])
        set()
        >>> y.sum().backward()
        >>> freed([y.grad_fn], [0])
        {0}
    """
    found: set[int] = set()
    for group, same, (_, _, attributes) in alike(nodes, places):
        if attributes:
            held: set[int] = set()
            for attribute, _ in attributes:
                held.update(compress(group, _held(same, attribute)))
            found.update(held.symmetric_difference(group))
    return found


def _held(nodes: list[Any], attribute: str) -> Iterable[bool]:
    """Whether something is behind an attribute of each."""
    try:
        return list(map(is_not, map(attrgetter(f"{attribute}.data"), nodes), repeat(None)))
    except (AttributeError, RuntimeError):  # a list is a tuple here, and an error once it is freed
        return [_holds(node, attribute) for node in nodes]


def _holds(node: Any, attribute: str) -> bool:
    try:
        kept = getattr(node, attribute)
    except RuntimeError:  # a list of tensors that is freed
        return False
    return bool(kept) if type(kept) is tuple else kept.data is not None


def version_saved(node: Any, name: str, tensor: torch.Tensor, listed: Any = None) -> int:
    """The version that a tensor had when it was saved; torch tells it where it is another now.

    Args:
        node: which saved it.
        name: as what.
        tensor: as it is now.
        listed: torch's own record of it if it is in a list.
    """
    try:
        listed.unpack() if listed is not None else getattr(node, f"_saved_{name}")
    except RuntimeError as error:
        expected = re.search(r"expected version (\d+)", str(error))
        if expected:
            return int(expected[1])
    return tensor._version


def is_freed(node: Any) -> bool:
    """Whether nothing is left of what the node saved, be it that it never saved anything.

    Example:
        >>> import torch
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> is_freed(y.grad_fn)
        False
        >>> y.sum().backward()
        >>> is_freed(y.grad_fn)
        True
    """
    return not any(_holds(node, attribute) for attribute, _ in about_type(node)[2])


def sequence_of(node: Any) -> int:
    """Torch's count of nodes when this one was made; -1 for AccumulateGrad."""
    try:
        number = node._sequence_nr()
    except AttributeError:
        return -1
    return -1 if number == _LEAF_SEQUENCE else number


def sequences_of(nodes: Iterable[Any]) -> list[int]:
    """`sequence_of` each; none of them an AccumulateGrad."""
    try:
        return list(map(methodcaller("_sequence_nr"), nodes))
    except AttributeError:
        return list(map(sequence_of, nodes))


def hooks_of(leaf: torch.Tensor) -> int:
    """How many hooks are on a leaf tensor."""
    after = getattr(leaf, "_post_accumulate_grad_hooks", None)
    return len(leaf._backward_hooks or ()) + len(after or ())
