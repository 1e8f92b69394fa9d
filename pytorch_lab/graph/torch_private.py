"""Which private names of torch does the graph room stand on, and what if one goes away?

What is imported from torch is looked up once, here, so a release of torch that lacks it still lets
the package be imported; attributes of nodes, tensors and storages are read where they are needed.
`PRIVATE` says of each what it is for and what is different without it.

    from pytorch_lab.graph.torch_private import node_count
    node_count()                    # how many nodes this thread has made by now
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any, NamedTuple

import torch
import torch.overrides


class Private(NamedTuple):
    """One private name."""

    name: str  # as in `torch.overrides._pop_mode`
    why: str  # what it is for
    instead: str  # what stands in for it where torch lacks it


PRIVATE: list[Private] = []


def exists(name: str) -> bool:
    """Whether the torch that is installed has a name.

    Example:
        >>> exists("torch._C._autograd._get_sequence_nr"), exists("torch._C._nothing")
        (True, False)
    """
    return _look_up(name) is not None


def _look_up(name: str) -> Any:
    try:
        return attrgetter(name.removeprefix("torch."))(torch)
    except AttributeError:
        return None


def _private(name: str, why: str, instead: str, stand_in: Any = None) -> Any:
    PRIVATE.append(Private(name, why, instead))
    found = _look_up(name)
    return stand_in if found is None else found


def _any_autocast() -> bool:
    return any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda", "mps", "xpu"))


# Called for each op, so these are torch's own functions and not wrapped

node_count: Callable[[], int] = _private(
    "torch._C._autograd._get_sequence_nr",
    "which op made a node: its number lies between the counts before and after the op",
    "ops have no nodes",
    lambda: 0,
)
is_autocast: Callable[[], bool] = _private(
    "torch._C._is_any_autocast_enabled",
    "whether an op ran under autocast, asked in one call",
    "each kind of device is asked",
    _any_autocast,
)
top_transform: Callable[[], Any] = _private(
    "torch._C._functorch.peek_interpreter_stack",
    "whether a transform of torch.func is running",
    "the ops inside are listed, but not as its parts",
    lambda: None,
)
top_saving_hooks: Callable[[bool], Any] = _private(
    "torch._C._autograd._top_saved_tensors_default_hooks",
    "whether a checkpoint or another hook for saved tensors is active",
    "the ops inside are listed, but not as its parts",
    lambda _: None,
)
set_grad: Callable[[bool], Any] = _private(
    "torch._C._set_grad_enabled",
    "a step of backward runs without gradients, and that costs no context manager",
    "torch.set_grad_enabled, which does the same",
    torch.set_grad_enabled,
)
plain_torch: Callable[[], AbstractContextManager[Any]] = _private(
    "torch._C.DisableTorchFunction",
    "what we ask of tensors is no op of the reader's, and no business of the reader's classes",
    "nothing: classes of the reader's hear of our questions",
    nullcontext,
)

# The stack of modes

push_mode: Callable[[Any], None] = _private(
    "torch.overrides._push_mode",
    "a mode that the reader's code left open goes back above where ours was",
    "it is entered anew",
    lambda mode: mode.__enter__(),
)
pop_mode: Callable[[], Any] = _private(
    "torch.overrides._pop_mode",
    "takes our mode off the stack, and no other",
    "nothing is taken off: a recording would not end",
    lambda: None,
)
count_modes: Callable[[], int] = _private(
    "torch._C._len_torch_function_stack",
    "how many modes are open",
    "none are counted",
    lambda: 0,
)
open_modes: Callable[[], list[Any]] = _private(
    "torch.overrides._get_current_function_mode_stack",
    "finds the recording that runs",
    "it is not found: explanations lack the values they ask about",
    list,
)

# Backward

current_node: Callable[[], Any] | None = _private(
    "torch._C._current_autograd_node",
    "one hook for all nodes can ask which of them is running",
    "a hook for each node, which is slower",
)

plan_of_backward: Callable[[], list[Any]] | None = _private(
    "torch._C._current_graph_task_execution_order",
    "the order of all nodes is told when the first one runs",
    "a hook on each node, which is slower",
)

# Attributes of torch's objects, which are read where they are needed

PRIVATE += [
    Private("torch.autograd.graph.Node._sequence_nr", "the age of a node", "recording fails"),
    Private(
        "torch.autograd.graph.Node._input_metadata", "shapes of gradients", "they are left out"
    ),
    Private(
        "torch.autograd.graph.Node._register_hook_dict",
        "one hook for all nodes",
        "a hook for each node, which is slower",
    ),
    Private("torch.UntypedStorage._cdata", "which tensors share memory", "recording fails"),
    Private(
        "torch.UntypedStorage._weak_ref",
        "the address of a storage that died is not given away again",
        "recording fails",
    ),
    Private("torch.UntypedStorage._free_weak_ref", "gives that address back", "recording fails"),
    Private(
        "torch._dynamo.eval_frame._maybe_set_eval_frame",
        "says when compiled code begins and ends",
        "compiled functions run uncompiled while they are recorded",
    ),
    Private("torch.Tensor._version", "how often a tensor was written to", "recording fails"),
]
