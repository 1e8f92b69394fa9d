"""Which names of a checkpoint meet which names of a model, and what `load_state_dict` would say.

The real function is not called: it changes the model. What it compares is names, shapes and
dtypes, and these are known without the values.
"""

from collections import Counter
from typing import Any

import torch
from torch import nn

from pytorch_lab.checkpoints.item import Item
from pytorch_lab.checkpoints.record import KeyMatch, ModelMatch

LIKELY = ("model", "state_dict", "model_state_dict", "model_state", "net", "network", "weights")


def match(root: Item, model: nn.Module) -> ModelMatch | None:
    """How the checkpoint's best fitting state dict meets the model; None if it has none.

    Example:
        >>> from pytorch_lab.checkpoints.live import LiveReader
        >>> found = match(LiveReader().item({"module.weight": torch.zeros(2, 3)}),
        ...     nn.Linear(3, 2, bias=False))
        >>> found.prefix, found.keys[0].verdict
        ('module.', 'loads')
    """
    live = _state_of(model)
    candidates = state_dicts(root)
    if not candidates:
        return None
    best = max(candidates, key=lambda item: _likeness(item, live))
    prefix = _prefix(best, live)
    keys = [*_wanted(best, live, prefix, _ties(model)), *_unexpected(best, live, prefix)]
    bad = ("missing", "tied", "unexpected", "shape")
    strict = not prefix and not any(key.verdict in bad for key in keys)
    return ModelMatch(type(model).__name__, best.path, prefix, tuple(keys), strict)


def state_dicts(root: Item) -> list[Item]:
    """The dicts from names to tensors, and modules that were pickled whole."""
    found = []
    for item in root.walk():
        named = item.kind == "dict" and any(kid.kind == "tensor" for kid in item.kids)
        outermost = not any(item.path.startswith(f"{one.path}.") for one in found)
        if (named and not _of_optimizer(item)) or (_is_module(item) and outermost):
            found.append(item)
    return found


def _is_module(item: Item) -> bool:
    return item.kind == "object" and (isinstance(item.value, nn.Module) or _holds(item, "training"))


def _holds(item: Item, name: str) -> bool:
    return item.kid(name) is not None and any(kid.kind in ("tensor", "object") for kid in item.kids)


def _of_optimizer(item: Item) -> bool:
    """Whether it is one parameter's moments: `exp_avg`, `momentum_buffer`, ..."""
    return any(kid.name in ("exp_avg", "momentum_buffer", "square_avg", "step", "acc_delta")
               for kid in item.kids)  # fmt: skip


def _state_of(model: nn.Module) -> dict[str, Any]:
    return {key: one for key, one in model.state_dict().items() if isinstance(one, torch.Tensor)}


def tensors_of(item: Item) -> dict[str, Item]:
    """Name -> tensor of a state dict; of a pickled module by its own names."""
    if item.kind == "dict":
        return {kid.key: kid for kid in item.kids if kid.kind == "tensor"}
    found: dict[str, Item] = {}
    for one in item.walk():
        if one.kind == "tensor":
            step = one.path.removeprefix(item.path)
            found[one.key if step.startswith("[") else step.lstrip(".")] = one
    return found


def _likeness(item: Item, live: dict[str, Any]) -> tuple[int, int, int]:
    """How well a dict fits: names that meet, a likely name, its size."""
    prefix = _prefix(item, live)
    keys = {strip(key, prefix) for key in tensors_of(item)}
    return len(keys & live.keys()), int(item.name in LIKELY), len(keys)


def strip(key: str, prefix: str) -> str:
    """A name of the file without the prefix; `_orig_mod.` may stand in the middle.

    Example:
        >>> strip("module.fc.weight", "module."), strip("a._orig_mod.w", "…_orig_mod.")
        ('fc.weight', 'a.w')
    """
    if prefix.startswith("…"):
        return key.replace(prefix[1:], "")
    return key.removeprefix(prefix)


def _prefix(item: Item, live: dict[str, Any]) -> str:
    """What stands before the model's names in the file: the most frequent one that helps."""
    keys = tensors_of(item).keys()
    plain = len(keys & live.keys())
    if any("_orig_mod." in key for key in keys):
        inner = len({key.replace("_orig_mod.", "") for key in keys} & live.keys())
        if inner > max(plain, sum(key.removeprefix("_orig_mod.") in live for key in keys)):
            return "…_orig_mod."
    ends: Counter[str] = Counter()
    for key in keys:
        steps = key.split(".")
        for cut in range(1, len(steps)):
            if ".".join(steps[cut:]) in live:
                ends[".".join(steps[:cut]) + "."] += 1
    if not ends:
        return ""
    best, times = ends.most_common(1)[0]
    return best if times > plain else ""


def wrapped(model: ModelMatch) -> str:
    """The prefix that the model's names have and the file's don't: it is compiled or wrapped."""
    missing = [key.key for key in model.of("missing")]
    unexpected = {key.key for key in model.of("unexpected")}
    for prefix in ("_orig_mod.", "module."):
        named = [key.removeprefix(prefix) for key in missing if key.startswith(prefix)]
        if named and len(named) == len(missing) and unexpected & set(named):
            return prefix
    return ""


def _ties(model: nn.Module) -> dict[str, str]:
    """Each name of a shared parameter, and the first name of the same one."""
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    for name, one in model.named_parameters(remove_duplicate=False):
        if id(one) in first:
            found[name] = first[id(one)]
            found[first[id(one)]] = name
        first.setdefault(id(one), name)
    return found


def _wanted(item: Item, live: dict[str, Any], prefix: str, ties: dict[str, str]) -> list[KeyMatch]:
    by_key = {strip(key, prefix): one for key, one in tensors_of(item).items()}
    counted = not item_version(item)
    found = []
    for key, tensor in live.items():
        saved = by_key.get(key)
        if saved is None and counted and key.endswith("num_batches_tracked"):
            continue  # load_state_dict puts 0 there when the file is older than it
        if saved is None:
            verdict = "tied" if ties.get(key) in by_key else "missing"
            found.append(KeyMatch(key, verdict, in_model=_facts(tensor)))
            continue
        found.append(_compare(key, saved, tensor))
    return found


def item_version(item: Item) -> int:
    """The version of the format that BatchNorm wrote into the metadata; 0 without any."""
    metadata = getattr(item.value, "_metadata", None)
    if metadata is None:
        state = getattr(item.value, "state", None)
        return 2 if state is not None else 0
    return 2


def _facts(tensor: torch.Tensor) -> str:
    if nn.parameter.is_lazy(tensor):
        return "not known yet"
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _compare(key: str, saved: Item, tensor: torch.Tensor) -> KeyMatch:
    in_file = f"{saved.shape} {saved.dtype}" if saved.shape is not None else saved.type
    in_model = _facts(tensor)
    verdict = "loads"
    if in_model == "not known yet" or saved.shape is None:
        verdict = "loads"
    elif saved.shape != tuple(tensor.shape) and not _one_number(saved.shape, tensor):
        verdict = "shape"
    elif saved.dtype != in_model.rpartition(" ")[2]:
        verdict = "dtype"
    return KeyMatch(key, verdict, saved.path, in_file, in_model)


def _one_number(shape: tuple[int, ...], tensor: torch.Tensor) -> bool:
    """Whether it is (1,) for (), as files of torch 0.3 have it; that loads."""
    return shape == (1,) and tensor.dim() == 0


def _unexpected(item: Item, live: dict[str, Any], prefix: str) -> list[KeyMatch]:
    return [
        KeyMatch(key, "unexpected", one.path, f"{one.shape} {one.dtype}")
        for key, one in tensors_of(item).items()
        if strip(key, prefix) not in live
    ]
