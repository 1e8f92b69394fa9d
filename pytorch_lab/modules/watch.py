"""Run a model once and watch: which modules are called, what they give, what they make.

Two hooks that torch offers for all modules see every call; `nn.Module.__init__` is wrapped for the
time of the run, to see layers being made inside forward; `Flow` sees the tensors. The model runs as
it is: in its own modes, under the caller's grad mode. Compiled parts run uncompiled, so that what
they do can be seen. Lazy modules would get their shapes for good, so a deep copy runs instead.
"""

import copy
import itertools
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from pytorch_lab.errors import UsageError
from pytorch_lab.modules import advice
from pytorch_lab.modules.failures import model_error
from pytorch_lab.modules.flow import Flow
from pytorch_lab.modules.functions import depends_on_mode
from pytorch_lab.modules.invisible import Found, Search, count_of, kind_of, leaves
from pytorch_lab.modules.lines import line_of_caller
from pytorch_lab.modules.outputs import spell_outputs, tensors_of
from pytorch_lab.modules.patient import left_as_found
from pytorch_lab.modules.reach import module_attributes
from pytorch_lab.modules.record import Invisible
from pytorch_lab.modules.registered import (
    Registry,
    is_lazy,
    join,
    register,
    shape_of,
    type_name,
)

MOST_YIELDS = 1000  # items taken from a forward that is a generator


@dataclass
class Run:
    """What one forward showed; modules by path, invisible things by path."""

    calls: dict[str, int]
    output_shapes: dict[str, tuple[str, ...]]
    unused: tuple[str, ...]
    used_invisible: frozenset[str]
    met: tuple[Invisible, ...]  # invisible things that only the run could show


@dataclass
class _Call:
    """A call of a module that has not returned yet."""

    module: torch.nn.Module
    inputs: tuple[Any, ...]


@dataclass
class _Stranger:
    """A module that was called although nobody registers it."""

    module: torch.nn.Module
    caller: str  # path of the registered module around the call
    line: str
    made_here: bool


@dataclass
class Watch:
    """The state of one watched run."""

    registry: Registry
    search: Search
    calls: dict[int, int] = field(default_factory=dict)
    shapes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    stack: list[_Call] = field(default_factory=list)
    made: dict[int, tuple[torch.nn.Module, str]] = field(default_factory=dict)
    strangers: list[_Stranger] = field(default_factory=list)
    called: set[int] = field(default_factory=set)
    failed: tuple[BaseException, _Call] | None = None
    flow: Flow | None = None
    outer: BaseException | None = field(default_factory=lambda: sys.exc_info()[1])

    def enter(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        """Before a module's forward."""
        if not self.search.known.has(module):
            self._meet(module)
        self.called.add(id(module))
        self.stack.append(_Call(module, inputs))

    def _meet(self, module: torch.nn.Module) -> None:
        made = self.made.get(id(module))
        line = made[1] if made else line_of_caller(sys._getframe())
        self.strangers.append(_Stranger(module, self.where(), line, made is not None))
        self.search.known.add(module)
        if self.flow is not None:
            for slot in register(module).slots:
                self.flow.know(slot.tensor)

    def where(self) -> str:
        """The path of the innermost registered module that is running."""
        paths = (self.registry.path_of(call.module) for call in reversed(self.stack))
        return next((path for path in paths if path is not None), "")

    def leave(self, module: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        """After a module's forward, also when it raised."""
        while self.stack:
            call = self.stack.pop()
            if call.module is module:
                break
        else:
            return
        error = sys.exc_info()[1]
        if error is not None and error is not self.outer and output is None:
            if self.failed is None or not _caused(error, self.failed[0]):
                self.failed = (error, call)
            return
        self.calls[id(module)] = self.calls.get(id(module), 0) + 1
        self.shapes[id(module)] = spell_outputs(output)
        if self.flow is not None and isinstance(module, torch.jit.ScriptModule):
            sources = [slot.tensor for slot in register(module).slots]
            self.flow.derive(tensors_of(output), [*sources, *tensors_of(inputs)])


def run(search: Search, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """One forward of the root that was searched, watched; the model is left as it was found."""
    if any(is_lazy(slot.tensor) for slot in search.registry.slots):
        search = Search(register(_copy_of(search.registry.root)))
        search.run()
    registry, found = search.registry, search.found
    watch = Watch(registry, search)
    with left_as_found(registry.root, args, kwargs) as guard:
        flow = watch.flow = Flow(_existing(registry, found, args, kwargs), guard)
        before = _held_tensors(registry)
        results = tensors_of(_forward(watch, args, kwargs))
        held = _held_tensors(registry)  # a loss that is kept as an attribute is a result as well
        results += [t for key, t in held.items() if key not in before or flow.changed(t)]
        return _conclude(watch, found, results)


def _copy_of(model: torch.nn.Module) -> torch.nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise UsageError(
            "describe(model, inputs) expected a lazy model that copy.deepcopy can copy, because "
            f"running it would fix its shapes, but copying raised {type(error).__name__}: {error}; "
            "run the model once yourself, then describe it."
        ) from error


def _existing(
    registry: Registry, found: list[Found], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[torch.Tensor]:
    """The tensors that are there before the run."""
    yield from (slot.tensor for slot in registry.slots)
    for thing in found:
        if isinstance(thing.value, torch.nn.Module):
            yield from (slot.tensor for slot in register(thing.value).slots)
        else:
            yield thing.value
    yield from tensors_of(args, kwargs)
    yield from _held_tensors(registry).values()


def _held_tensors(registry: Registry) -> dict[int, torch.Tensor]:
    """The tensors that attributes hold now: after a run, results may be among them."""
    held: list[Any] = []
    for seen in registry.modules:
        held.extend(module_attributes(seen.module).values())
        held.extend(seen.module._buffers.values())
    return {id(tensor): tensor for tensor in tensors_of(*held)}


def _forward(watch: Watch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    root = watch.registry.root
    try:
        with _observed(watch):
            output = root(*args, **kwargs)
            if isinstance(output, types.GeneratorType):
                output = list(itertools.islice(output, MOST_YIELDS))
            return output
    except Exception as error:
        call = watch.failed[1] if watch.failed and _caused(error, watch.failed[0]) else None
        raise model_error(
            error,
            path=watch.registry.path_of(call.module) if call else "",
            module=call.module if call else root,
            inputs=call.inputs if call else args,
            root=root,
        ) from error


def _caused(error: BaseException | None, earlier: BaseException) -> bool:
    """Whether `earlier` is `error`, or what it was raised from."""
    chain: set[int] = set()
    while error is not None and id(error) not in chain:
        if error is earlier:
            return True
        chain.add(id(error))
        error = error.__cause__
    return False


@contextmanager
def _observed(watch: Watch) -> Iterator[None]:
    """Everything that watches is in place inside, and gone afterwards."""
    with ExitStack() as stack:
        stack.enter_context(register_module_forward_pre_hook(watch.enter))
        stack.enter_context(register_module_forward_hook(watch.leave, always_call=True))
        stack.enter_context(_making_seen(watch))
        stack.enter_context(_one_replica(watch.registry))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message=".*when there are global hooks on modules")
        if watch.flow is not None:
            stack.enter_context(watch.flow)
        yield


@contextmanager
def _making_seen(watch: Watch) -> Iterator[None]:
    """Note each module that is made, with the line that made it."""
    original = torch.nn.Module.__init__

    def noted(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name == "__init__":
            frame = frame.f_back
        watch.made[id(self)] = (self, line_of_caller(frame))
        original(self, *args, **kwargs)

    torch.nn.Module.__init__ = noted
    try:
        yield
    finally:
        torch.nn.Module.__init__ = original


@contextmanager
def _one_replica(registry: Registry) -> Iterator[None]:
    """Let DataParallel use its first device alone: its replicas are copies in other threads."""
    several = [s.module for s in registry.modules if isinstance(s.module, torch.nn.DataParallel)]
    before = [module.device_ids for module in several]
    for module in several:
        module.device_ids = module.device_ids[:1]
    try:
        yield
    finally:
        for module, ids in zip(several, before, strict=True):
            module.device_ids = ids


def _conclude(watch: Watch, found: list[Found], results: list[torch.Tensor]) -> Run:
    registry, flow = watch.registry, watch.flow
    if flow is None:  # pragma: no cover  (run() always sets it)
        raise RuntimeError("the run was not watched")
    used = flow.origins(results) if results else set(flow.touched)
    used.update(id(leaf) for leaf in leaves(*results))
    parameters = [slot for slot in registry.slots if slot.kind == "parameter"]
    return Run(
        calls={s.paths[0]: watch.calls.get(id(s.module), 0) for s in registry.modules},
        output_shapes={
            s.paths[0]: watch.shapes[id(s.module)]
            for s in registry.modules
            if id(s.module) in watch.shapes
        },
        unused=tuple(slot.names[0] for slot in parameters if id(slot.tensor) not in used),
        used_invisible=frozenset(t.record.path for t in found if _was_used(t, watch, flow)),
        met=(*_strangers(watch), *_foreign(watch, flow)),
    )


def _was_used(thing: Found, watch: Watch, flow: Flow) -> bool:
    if isinstance(thing.value, torch.Tensor):
        return id(thing.value) in flow.touched
    inside = register(thing.value)
    return bool(inside.seen.keys() & watch.called) or any(
        id(slot.tensor) in flow.touched for slot in inside.slots
    )


def _strangers(watch: Watch) -> Iterator[Invisible]:
    """Modules that were called and that no attribute explains, each making line once."""
    told: set[tuple[str, str, str]] = set()
    for stranger in watch.strangers:
        inside = register(stranger.module)
        parameters = [s for s in inside.slots if s.kind == "parameter"]
        moody = any(depends_on_mode(seen.module) for seen in inside.modules)
        key = (stranger.caller, stranger.line, type_name(stranger.module))
        if key in told or not (parameters or moody):
            continue
        told.add(key)
        holder = "forward" if stranger.made_here else "elsewhere"
        yield _met(stranger.module, stranger.caller, stranger.line, holder)


def _foreign(watch: Watch, flow: Flow) -> Iterator[Invisible]:
    """Leaves that ask for gradients, served in forward and belong to nobody."""
    made = {id(s.tensor) for module, _ in watch.made.values() for s in register(module).slots}
    told: set[tuple[str, str]] = set()
    for tensor, line in flow.foreign:
        key = (line, str(shape_of(tensor)))
        if id(tensor) not in made and key not in told and not watch.search.known.has(tensor):
            told.add(key)
            yield _met(tensor, "", line, "elsewhere")


def _met(value: Any, caller: str, line: str, holder: str) -> Invisible:
    kind = kind_of(value)
    name = type_name(value) if isinstance(value, torch.nn.Module) else type(value).__name__
    return Invisible(
        path=join(caller, f"forward().{name}"),
        kind=kind,
        holder=holder,
        type=name,
        shape=None if isinstance(value, torch.nn.Module) else shape_of(value),
        n_parameters=count_of(value),
        why=advice.why(value, kind, (holder,), None),
        fix=advice.fix(value, kind, (holder,), name, None),
        line=line,
        used=True,
    )
