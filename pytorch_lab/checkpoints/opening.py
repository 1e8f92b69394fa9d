"""Findings about the file itself: whether it opens, whether it is whole, what it drags along."""

from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.checkpoints.case import FEW, Case, some
from pytorch_lab.checkpoints.item import Item, itemsize
from pytorch_lab.checkpoints.live import refused_by_default, shared_with
from pytorch_lab.checkpoints.model_match import state_dicts
from pytorch_lab.checkpoints.names import allow_call, device_is_here
from pytorch_lab.checkpoints.record import Finding, Storage
from pytorch_lab.modules.text import spell_bytes

DRAG_BYTES = 1024  # of a storage that nobody needs, before it is worth a sentence


def _danger(case: Case) -> Iterator[Finding]:
    named = [one for one in case.needed if one.verdict == "dangerous"]
    if named:
        called = ", ".join(f"{one.name}{'(…)' if one.called else ''}" for one in named[:6])
        yield Finding(
            "danger", "problem",
            f"Loading this file with weights_only=False would run {called}: whoever wrote it "
            "decides what that does. Nothing was run here. Don't load it; ask for a file of "
            "tensors alone, best as safetensors.",
        )  # fmt: skip


def _refused(case: Case) -> Iterator[Finding]:
    names = [one.name for one in case.needed if one.verdict in ("listable", "unknown")]
    if not names or case.contents.trouble or any(n.verdict == "dangerous" for n in case.needed):
        return
    if case.contents.reading.refused:
        return  # allowing names would not be enough
    unknown = [one.name for one in case.needed if one.verdict == "unknown"]
    trust = (
        f"What {some(unknown)} would do lies in code that is not in the file: allow it only if you "
        "trust who wrote it."
        if unknown
        else "It is harmless and can be allowed; better save plain numbers: `float(x)`, `dict(d)`, "
        "`torch.from_numpy(a)`."
    )
    yield Finding(
        "refused", "problem",
        f"torch.load refuses it by default, because of {some(names)}. {trust}",
        allow_call(case.contents.reading, case.load(allowed=True)),
    )  # fmt: skip


def _beyond_lists(case: Case) -> Iterator[Finding]:
    refused = case.contents.reading.refused
    if not refused or case.contents.trouble:
        return
    if any(one.verdict == "dangerous" for one in case.needed):
        return
    if all(one.startswith("the pickle instruction") for one in refused):
        what = f"it was written with pickle protocol {case.contents.reading.protocol}"
        cure = "Save it without pickle_protocol."
    else:
        what = refused[0]
        cure = "Save plain dicts and lists instead: `dict(d)`, `list(l)`."
    yield Finding(
        "refused", "problem",
        f"torch.load refuses it by default, and allowing names does not help: {what}. {cure} If "
        "you trust who wrote this file, load it once with weights_only=False and save it anew.",
        case.load(),
    )  # fmt: skip


def _would_be_refused(case: Case) -> Iterator[Finding]:
    """Of a live dict: what torch.load won't take back once it is saved."""
    if case.is_file:
        return
    items = [item for item in case.root.walk() if refused_by_default(item)]
    if items:
        kinds = ", ".join(dict.fromkeys(item.type for item in items))
        yield Finding(
            "refused", "problem",
            f"Saved like this, torch.load will refuse it by default, because of "
            f"{some([item.path for item in items])} ({kinds}). Save plain numbers and tensors: "
            "`float(x)`, `dict(d)`, `torch.from_numpy(a)`, a module's `state_dict()`.",
            paths=tuple(item.path for item in items),
        )  # fmt: skip


def _whole_module(case: Case) -> Iterator[Finding]:
    items = [one for one in state_dicts(case.root) if one.kind == "object"]
    if items and case.contents.format != "other":
        yield Finding(
            "whole-module", "problem",
            f"It holds a module itself ({items[0].type}), not its state_dict: it loads only where "
            "exactly this class can be imported, and runs its code. Save `model.state_dict()`.",
            paths=(items[0].path,),
        )  # fmt: skip


def _other_device(case: Case) -> Iterator[Finding]:
    away: dict[str, list[str]] = {}
    for item in case.root.walk():
        if item.kind == "tensor" and not device_is_here(item.device):
            away.setdefault(item.device, []).append(item.path)
    if away and case.is_file:
        total = sum(len(paths) for paths in away.values())
        yield Finding(
            "other-device", "problem",
            f"{words.count(total, 'tensor')} would go to {some(sorted(away))}, which this machine "
            "lacks: torch.load raises. Say where they shall go.",
            case.load(),
            tuple(path for paths in away.values() for path in paths),
        )  # fmt: skip


def _short_storage(case: Case) -> Iterator[Finding]:
    """The pickle promises more bytes than the file has."""
    if case.contents.format not in ("zip", "legacy") or not case.contents.sizes:
        if any(one.bytes for one in case.storages) and case.contents.format in ("zip", "legacy"):
            yield _cut([one for one in case.storages if one.bytes], case)
        return
    short = [one for one in case.storages if case.contents.sizes.get(one.key, 0) < one.bytes]
    if short:
        yield _cut(short, case)


def _beyond_storage(case: Case) -> Iterator[Finding]:
    """A tensor that claims more than its storage has."""
    if case.contents.format not in ("zip", "legacy"):
        return
    paths = [one.path for one in case.root.walk() if one.storage and _last(one) > one.stored_bytes]
    if paths:
        case.contents.trouble = case.contents.trouble or "it is forged or damaged"
        case.contents.todo = case.contents.todo or "copy or download it again"
        yield Finding(
            "cut-short", "problem",
            f"{some(paths)} would look behind the end of the storage. torch.load raises.",
            paths=tuple(paths),
        )  # fmt: skip


def _last(item: Item) -> int:
    """Where the last byte lies that a tensor looks at, from the start of its storage."""
    if not item.shape or 0 in item.shape:
        reach = 0 if item.shape else 1
    else:
        pairs = zip(item.shape, item.stride, strict=False)
        reach = 1 + sum((size - 1) * step for size, step in pairs)
    return (item.offset + reach) * itemsize(item.dtype) if reach else 0


def _cut(short: list[Storage], case: Case) -> Finding:
    paths = [path for one in short for path in one.paths]
    case.contents.trouble = case.contents.trouble or "it is cut short or damaged"
    return Finding(
        "cut-short", "problem",
        f"The data of {words.count(len(short), 'storage')} is missing or too short "
        f"({some(paths)}): the file is cut short or damaged. Copy or download it again.",
        paths=tuple(paths),
    )  # fmt: skip


# --- what it carries ------------------------------------------------------------------------------


def _drags(case: Case) -> Iterator[Finding]:
    heavy = [
        one
        for one in case.storages
        if one.bytes - one.needed > DRAG_BYTES and one.bytes > 1.1 * one.needed
    ]
    if heavy:
        paths = [path for one in heavy for path in one.paths]
        total, needed = sum(one.bytes for one in heavy), sum(one.needed for one in heavy)
        few = {path: f"checkpoint{path} = checkpoint{path}.clone()" for path in paths[:FEW]}
        yield Finding(
            "drags", "problem",
            f"{some(paths)} {'is a view' if len(paths) == 1 else 'are views'} of something larger: "
            f"{spell_bytes(needed)} are needed, and the whole {spell_bytes(total)} of "
            "the storage are saved. Clone before saving.",
            "\n".join(few.values()), tuple(paths),
        )  # fmt: skip


def _aliases(case: Case) -> Iterator[Finding]:
    if case.is_file or case.model is None:
        return
    shared = shared_with(case.root, case.model)
    if shared:
        first, name = shared[0]
        where = case.meets.path if case.meets is not None else ""
        yield Finding(
            "alias", "problem",
            f"{words.count(len(shared), 'tensor')} of it {'is' if len(shared) == 1 else 'are'} the "
            f"model's own memory: `{first.path}` shares it with `{name}`, and goes on changing "
            "with every step. Copying the dict alone does not help; copy what is in it.",
            f"import copy\ncheckpoint{where} = copy.deepcopy(checkpoint{where})"
            if where
            else "import copy\ncheckpoint = copy.deepcopy(checkpoint)",
            tuple(item.path for item, _ in shared),
        )  # fmt: skip


def _inside_shared(case: Case) -> Iterator[Finding]:
    tied = [one for one in case.storages if len(one.paths) > 1]
    if tied:
        group = tied[0]
        yield Finding(
            "shared", "note",
            f"{words.count(len(tied), 'storage')} {'is' if len(tied) == 1 else 'are'} looked at by "
            f"several tensors, and saved once: {some(list(group.paths))}. Loaded, they share "
            "memory again.",
            paths=tuple(path for one in tied for path in one.paths),
        )  # fmt: skip


FINDERS = (
    _danger,
    _refused,
    _beyond_lists,
    _would_be_refused,
    _whole_module,
    _other_device,
    _short_storage,
    _beyond_storage,
    _drags,
    _aliases,
    _inside_shared,
)
