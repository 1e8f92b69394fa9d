"""Findings about what would load: names, shapes, prefixes; moments, groups, settings."""

from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.checkpoints.case import FEW, Case, quoted, some
from pytorch_lab.checkpoints.item import spell
from pytorch_lab.checkpoints.model_match import wrapped
from pytorch_lab.checkpoints.optimizer_match import scheduler_settings, scheduler_state
from pytorch_lab.checkpoints.record import Finding, KeyMatch, Moment
from pytorch_lab.checkpoints.unrun import printable


def _no_state(case: Case) -> Iterator[Finding]:
    if case.model is not None and case.meets is None and not case.contents.trouble:
        yield Finding(
            "no-state-dict", "problem",
            "It holds no state dict, so nothing in it could be loaded into the model.",
        )  # fmt: skip


def _prefixed(case: Case) -> Iterator[Finding]:
    meets = case.meets
    if meets is None or not meets.prefix:
        return
    hidden = {"module.": "DataParallel or DistributedDataParallel",
              "_orig_mod.": "torch.compile", "…_orig_mod.": "torch.compile"}  # fmt: skip
    shown = meets.prefix.removeprefix("…")
    named = printable(shown, 60)
    who = hidden.get(meets.prefix, "something that held the model")
    count = sum(shown in key.path for key in meets.keys if key.path)
    yield Finding(
        "prefix", "problem",
        f"{words.count(count, 'name')} of the file {'has' if count == 1 else 'have'} `{named}` "
        f"where the model has nothing: the state_dict was taken from {who}. Remove it.",
        _without_prefix(case, meets.prefix),
        tuple(key.path for key in meets.keys if shown in key.path),
    )  # fmt: skip


def _without_prefix(case: Case, prefix: str) -> str:
    if prefix.startswith("…"):
        take = f'{{name.replace("{prefix[1:]}", ""): one for name, one in state.items()}}'
        return f"state = {case.state}\nstate = {take}\nmodel.load_state_dict(state)"
    consume = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
    return f"state = {case.state}\n{consume}(state, {quoted(prefix)})\nmodel.load_state_dict(state)"


def _model_is_wrapped(case: Case) -> Iterator[Finding]:
    prefix = wrapped(case.meets) if case.meets is not None else ""
    if prefix:
        inner = f"model.{prefix.rstrip('.')}"
        yield Finding(
            "wrapped-model", "problem",
            f"The model's names begin with `{prefix}` and the file's don't: the model is compiled "
            "or wrapped, the file was not. Load into what is inside.",
            f"{inner}.load_state_dict({case.state})",
        )  # fmt: skip


def _shapes(case: Case) -> Iterator[Finding]:
    bad = list(case.meets.of("shape")) if case.meets is not None else []
    if bad:
        first = bad[0]
        yield Finding(
            "shape", "problem",
            f"{_keys(bad)} {'has another shape' if len(bad) == 1 else 'have other shapes'}: "
            f"`{first.key}` is {first.in_file.rpartition(' ')[0]} in the file and "
            f"{first.in_model.rpartition(' ')[0]} in the model. strict=False raises all the same; "
            "leave them out.",
            f"own = model.state_dict()\nstate = {{n: t for n, t in {_stripped(case)}.items() "
            "if n not in own or t.shape == own[n].shape}\n"
            "model.load_state_dict(state, strict=False)",
            tuple(key.path for key in bad),
        )  # fmt: skip


def _stripped(case: Case) -> str:
    prefix = case.meets.prefix if case.meets is not None else ""
    if not prefix:
        return f"({case.state})"
    if prefix.startswith("…"):
        return f'{{n.replace("{prefix[1:]}", ""): t for n, t in {case.state}.items()}}'
    return f"{{n.removeprefix({quoted(prefix)}): t for n, t in {case.state}.items()}}"


def _keys(keys: list[KeyMatch]) -> str:
    return words.count(len(keys), "tensor")


def _missing(case: Case) -> Iterator[Finding]:
    meets = case.meets
    if meets is None or wrapped(meets):
        return
    missing, unexpected = list(meets.of("missing")), list(meets.of("unexpected"))
    if case.model is not None and missing:
        buffers = {name for name, _ in case.model.named_buffers()}
        gone = [key.key for key in missing if key.key not in buffers]
        if gone:
            yield Finding(
                "missing", "problem",
                f"The file lacks {words.count(len(gone), 'parameter')} of the model: {some(gone)}. "
                "load_state_dict raises; with strict=False they keep the values they have.",
            )  # fmt: skip
        lost = [key.key for key in missing if key.key in buffers]
        if lost:
            yield Finding(
                "missing-buffers", "problem",
                f"The file lacks {words.count(len(lost), 'buffer')} of the model: {some(lost)}, as "
                "when only parameters() were saved or averaged. Save the whole state_dict.",
            )  # fmt: skip
    if unexpected:
        yield Finding(
            "unexpected", "problem",
            f"The file has {words.count(len(unexpected), 'tensor')} that the model doesn't know: "
            f"{some([key.key for key in unexpected])}. load_state_dict raises; strict=False "
            "ignores them.",
            paths=tuple(key.path for key in unexpected),
        )  # fmt: skip


def _tied(case: Case) -> Iterator[Finding]:
    tied = [key.key for key in case.meets.of("tied")] if case.meets is not None else []
    if tied:
        yield Finding(
            "tied", "note",
            f"{some(tied)} {'is' if len(tied) == 1 else 'are'} not in the file, and need not be: "
            "the model ties it to a weight that is. strict=False is right here.",
            f"model.load_state_dict({_stripped(case)}, strict=False)",
        )  # fmt: skip


def _nothing_fits(case: Case) -> Iterator[Finding]:
    meets = case.meets
    if meets is None or wrapped(meets):
        return
    fits = len(meets.of("loads")) + len(meets.of("dtype"))
    wanted = sum(key.verdict != "unexpected" for key in meets.keys)
    if wanted and not fits and not meets.of("shape"):
        yield Finding(
            "nothing-fits", "problem",
            f"Not one of the model's {words.count(wanted, 'name')} is in the file. "
            "load_state_dict(strict=False) would load nothing and raise nothing: the model would "
            "stay untrained.",
        )  # fmt: skip
    elif wanted and meets.prefix:
        yield Finding(
            "strict-false-hides", "note",
            "With strict=False, and the prefix left where it is, loading would raise nothing and "
            "load nothing.",
        )  # fmt: skip


def _dtypes(case: Case) -> Iterator[Finding]:
    cast = list(case.meets.of("dtype")) if case.meets is not None else []
    if cast:
        first = cast[0]
        yield Finding(
            "dtype", "note",
            f"{_keys(cast)} would be cast without a word: `{first.key}` from "
            f"{first.in_file.rpartition(' ')[2]} in the file to {first.in_model.rpartition(' ')[2]}"
            " in the model.",
            paths=tuple(key.path for key in cast),
        )  # fmt: skip


# --- optimizer and scheduler ----------------------------------------------------------------------


def _no_optimizer(case: Case) -> Iterator[Finding]:
    if case.optimizer is not None and case.moments is None and not case.contents.trouble:
        yield Finding(
            "no-optimizer", "problem",
            "It holds no optimizer state: a resumed run starts with empty moments. Save "
            "`optimizer.state_dict()` too.",
        )  # fmt: skip


def _groups_differ(case: Case) -> Iterator[Finding]:
    found = case.moments
    if found is not None and not found.loads:
        yield Finding(
            "groups", "problem",
            f"The saved optimizer has {_sizes(found.saved_groups)}, this one has "
            f"{_sizes(found.live_groups)}: optimizer.load_state_dict raises. Build the optimizer "
            "as it was when the file was saved.",
        )  # fmt: skip


def _sizes(groups: tuple[int, ...]) -> str:
    inside = " + ".join(f"{size:,}" for size in groups) or "0"
    return f"{words.count(len(groups), 'group')} of {inside} parameters"


def _wrong_moments(case: Case) -> Iterator[Finding]:
    moments = case.moments.moments if case.moments is not None else ()
    if case.moments is not None and not case.moments.loads:
        return
    odd = [one for one in moments if one.verdict in ("shape", "other")]
    yield from _grown_parameters([one for one in odd if one.saved_for == one.meets])
    bad = [one for one in odd if one.saved_for != one.meets]
    if not bad:
        return
    first = bad[0]
    whose = (
        f"of `{printable(first.saved_for, 60)}`" if first.saved_for else f"of shape {first.shape}"
    )
    sure = [one for one in bad if one.verdict == "shape"]
    then = (
        "load_state_dict raises nothing; the first step() does."
        if sure
        else "Nothing raises, ever: the shapes are the same."
    )
    yield Finding(
        "moments", "problem",
        f"State is matched by position, and {words.count(len(bad), 'position')} would get another "
        f"parameter's: position {first.position}, the moments {whose}, meets `{first.meets}` "
        f"{first.parameter_shape}. {then} Give the optimizer its parameters in the saved order.",
        paths=tuple(one.path for one in bad if one.path),
    )  # fmt: skip


def _grown_parameters(grown: list[Moment]) -> Iterator[Finding]:
    """Parameters in their places that have another shape now, such as a new head's."""
    if not grown:
        return
    first = grown[0]
    yield Finding(
        "moments", "problem",
        f"{words.count(len(grown), 'parameter')} changed shape, and the moments did not: those of "
        f"`{printable(first.meets, 60)}` have the shape {first.shape}, it has "
        f"{first.parameter_shape}. load_state_dict raises nothing; the first step() does. Leave "
        f"out the state at {words.listed(one.position for one in grown)} before loading.",
        paths=tuple(one.path for one in grown if one.path),
    )  # fmt: skip


def _changed_settings(case: Case) -> Iterator[Finding]:
    settings = case.moments.settings if case.moments is not None else ()
    if settings:
        told = ", ".join(f"{what} {saved} instead of {now}" for what, saved, now in settings[:FEW])
        more = f" and {len(settings) - FEW} more" if len(settings) > FEW else ""
        yield Finding(
            "settings", "note",
            f"Loading puts the file's settings over the new ones: {told}{more}. Set them again "
            "after loading, if the new ones are meant.",
        )  # fmt: skip


def _outside_model(case: Case) -> Iterator[Finding]:
    if case.model is None or case.optimizer is None:
        return
    held = {id(one) for group in case.optimizer.param_groups for one in group["params"]}
    own = dict(case.model.named_parameters())
    idle = [name for name, one in own.items() if id(one) not in held and one.requires_grad]
    strangers = len(held - {id(one) for one in own.values()})
    if idle and strangers:
        yield Finding(
            "optimizer-of-another", "problem",
            f"{some(idle)} of the model {'is' if len(idle) == 1 else 'are'} in no group of the "
            f"optimizer, which holds {words.count(strangers, 'tensor')} outside the model: it was "
            "created before the model was changed. Create it afterwards, then load.",
        )  # fmt: skip


def _scheduler(case: Case) -> Iterator[Finding]:
    saved = scheduler_state(case.root)
    if saved is None:
        return
    settings = scheduler_settings(saved, case.scheduler)
    if case.scheduler is None:
        if settings:
            told = ", ".join(f"{name}={spell(value)}" for name, value, _ in settings[:FEW])
            yield Finding(
                "scheduler-settings", "note",
                f"`{saved.path}` brings its settings along ({told}): a scheduler that loads it "
                "ignores those that it was built with.", paths=(saved.path,),
            )  # fmt: skip
        return
    if settings:
        told = ", ".join(
            f"{name} becomes {spell(value)}, not {spell(now)}" for name, value, now in settings
        )
        own = ", ".join(f'"{name}": scheduler.{name}' for name, _, now in settings)
        yield Finding(
            "scheduler-settings", "problem",
            f"Loading `{saved.path}` would overwrite the scheduler's new settings: {told}. Load "
            "the counters, keep the settings.",
            f"scheduler.load_state_dict({case.load()}{saved.path} | {{{own}}})", (saved.path,),
        )  # fmt: skip


FINDERS = (
    _no_state,
    _prefixed,
    _model_is_wrapped,
    _nothing_fits,
    _shapes,
    _missing,
    _tied,
    _dtypes,
    _outside_model,
    _no_optimizer,
    _groups_differ,
    _wrong_moments,
    _changed_settings,
    _scheduler,
)
