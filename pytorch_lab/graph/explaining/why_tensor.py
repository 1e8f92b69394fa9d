"""What do a tensor itself, its model and its optimizer tell about its gradient?"""

import torch
from torch import nn

from pytorch_lab.graph.explaining.answers import old_copy
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.living import shares_memory
from pytorch_lab.graph.explaining.spots import capital

_WHICH_OP = "to learn which op it was: why_gradient(parameter, lambda: loss_fn(net(x), y))"


def name_of(parameter: torch.Tensor, model: nn.Module | None) -> str:
    """What a sentence calls the parameter."""
    for name, own in model.named_parameters() if model is not None else ():
        if own is parameter:
            return f"`{name}`"
    return "this tensor"


def grad_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Its `.grad`, without the warning that asking a non-leaf gives."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def at_once(parameter: torch.Tensor, name: str) -> Explanation | None:
    """What the tensor itself tells, whatever the loss is."""
    grad = grad_of(parameter)
    if grad is not None:
        return has_grad(grad, name)
    if parameter.requires_grad and not parameter.is_leaf and not parameter.retains_grad:
        made_by = parameter.grad_fn.name() if parameter.grad_fn is not None else "an op"
        return Explanation(
            "non_leaf",
            f"{capital(name)} is the result of an operation, not a leaf: backward "
            "passes its gradient on and keeps none.",
            evidence=(
                f"its grad_fn is {made_by}",
                "is_leaf is False, retain_grad() was not called",
            ),
            fix="to look at the gradient: call retain_grad() on it before backward(); to learn it: "
            "do the computation first and requires_grad_() or nn.Parameter(...) last",
        )
    return None


def has_grad(grad: torch.Tensor, name: str) -> Explanation:
    """The explanation for a gradient that is there; it may be zero or NaN all the same."""
    there = f"The gradient is there: `.grad` of {name} is not None"
    fact = f"`.grad` has the shape {tuple(grad.shape)}"
    values = grad.detach().to_dense() if grad.layout is not torch.strided else grad.detach()
    if values.numel() and not values.any():
        return Explanation(
            "zero_gradient",
            f"{there}, but every element of it is 0: an op on the way has the slope 0 here.",
            evidence=(fact, "all elements are 0"),
            fix=_WHICH_OP,
        )
    bad = int((~values.isfinite()).sum())
    if bad:
        return Explanation(
            "not_finite",
            f"{there}, but it holds NaN or inf.",
            evidence=(fact, f"{bad} of {values.numel()} are not finite"),
            fix=_WHICH_OP,
        )
    return Explanation("has_grad", f"{there}.", evidence=(fact,))


def alias(name: str, of: str) -> Explanation:
    """The explanation for a tensor that shares the memory of a leaf and isn't it."""
    return Explanation(
        "alias",
        f"{capital(name)} looks into the memory of {of}, but is another tensor, made "
        "by `.data`, detach() or a view; the gradient goes to the leaf itself.",
        evidence=("both share one storage; only the other is in the graph",),
        fix="ask the parameter itself for `.grad`: net.fc.weight, not net.fc.weight.data",
    )


def not_asking(parameter: torch.Tensor, name: str) -> Explanation:
    """The explanation for a tensor that doesn't ask for a gradient."""
    if not (parameter.is_floating_point() or parameter.is_complex()):
        kind = str(parameter.dtype).removeprefix("torch.")
        return Explanation(
            "integer_leaf",
            f"{capital(name)} holds whole numbers ({kind}); only floating point and "
            "complex tensors can have a gradient.",
            evidence=(f"dtype is {kind}",),
            fix="make it with a floating point dtype: torch.zeros(3, requires_grad=True)",
        )
    if parameter.is_inference():
        return Explanation(
            "inference",
            f"{capital(name)} was made in inference_mode, which leaves everything "
            "out that a gradient needs.",
            evidence=("is_inference() is True",),
            fix="clone() it outside of inference_mode, or make it under torch.no_grad()",
        )
    frozen = isinstance(parameter, nn.Parameter)
    return Explanation(
        "not_requires_grad",
        f"{capital(name)} does not ask for a gradient"
        + (": it is a parameter that somebody froze." if frozen else "."),
        evidence=("requires_grad is False", "is_leaf is True"),
        fix="call requires_grad_() on it before the loss is computed"
        + ("" if frozen else ", or make it an nn.Parameter"),
    )


def other_owner(
    parameter: torch.Tensor,
    name: str,
    optimizer: torch.optim.Optimizer | None,
    model: nn.Module | None,
) -> Explanation | None:
    """The model or the optimizer that was named holds another tensor."""
    owned = list(model.parameters()) if model is not None else []
    if model is not None and not any(own is parameter for own in owned):
        for own in owned:
            if shares_memory(own, parameter):
                return alias(name, "a parameter of the model")
        same = sum(own.shape == parameter.shape for own in owned)
        return old_copy(
            name,
            [f"0 of {len(owned)} parameters of the model are this tensor; {same} have its shape"],
        )
    held = [p for group in (optimizer.param_groups if optimizer else ()) for p in group["params"]]
    if optimizer is not None and owned and not any(p is own for p in held for own in owned):
        return Explanation(
            "optimizer_of_another",
            "The optimizer holds none of the model's parameters: its zero_grad() and step() are "
            "for other tensors.",
            evidence=(f"0 of {len(held)} tensors in the optimizer belong to the model",),
            fix="make the optimizer from the parameters of this model, after it is built",
        )
    return None
