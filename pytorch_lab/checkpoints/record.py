"""The record of a checkpoint: plain numbers and strings, no tensor kept alive.

`inspect` fills these classes; the text and the picture read nothing else. A path is what Python
writes behind the checkpoint to reach the thing: `['model']['0.weight']`. The root is `""`.
"""

from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab.remark import Remark, problems


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in the checkpoint, in the order of the file; parents before their children."""

    path: str
    name: str  # the last step of the path: "0.weight", "[0]"
    depth: int  # the root has 0
    kind: str  # "tensor", "array", "dict", "list", "value", "object", "same", "cut"
    type: str  # "Tensor", "Parameter", "OrderedDict", "int", "numpy.float64"
    text: str = ""  # a short spelling of a value, or what a "same" is the same as
    shape: tuple[int, ...] | None = None
    dtype: str = ""  # "float32"
    device: str = ""  # where torch.load puts it if it isn't told otherwise
    requires_grad: bool = False
    bytes: int = 0  # what its elements need
    storage: str = ""  # the key of the Storage that holds them
    stored_bytes: int = 0  # what that Storage has


@dataclass(frozen=True, slots=True)
class Storage:
    """A piece of memory that one or several tensors look at."""

    key: str
    bytes: int  # what it has in the file
    needed: int  # what the tensors that look at it need
    device: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needed:
    """A class or function that the pickle asks for by name."""

    name: str  # "numpy._core.multiarray.scalar"
    verdict: str  # "default", "listable", "unknown", "dangerous"
    called: int  # how often the file would call it
    why: str  # one sentence; "" for what torch allows by default


@dataclass(frozen=True, slots=True)
class Finding(Remark):
    """One thing that a person should know, and what to do about it."""

    fix: str = ""  # code that runs as it stands, or ""
    paths: tuple[str, ...] = ()  # the entries it is about


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """One name of the model, or of the file, and what loading would do with it."""

    key: str  # in the model; for an unexpected one, in the file
    verdict: str  # "loads", "missing", "tied", "unexpected", "shape", "dtype"
    path: str = ""  # of the entry in the file; "" for a missing one
    in_file: str = ""  # "(10, 32) float32"
    in_model: str = ""


@dataclass(frozen=True, slots=True)
class ModelMatch:
    """What `load_state_dict` would do to a model."""

    model: str  # its class
    path: str  # of the state dict in the checkpoint
    prefix: str  # what stands before the names in the file and not in the model
    keys: tuple[KeyMatch, ...]
    strict: bool  # whether it would load as it stands, without strict=False

    def of(self, verdict: str) -> tuple[KeyMatch, ...]:
        """The keys of one verdict."""
        return tuple(key for key in self.keys if key.verdict == verdict)


@dataclass(frozen=True, slots=True)
class Moment:
    """The state at one position of the saved optimizer, and the parameter that would get it."""

    position: int
    group: int
    saved_for: str  # the parameter it belonged to when it was saved; "" if the file doesn't tell
    meets: str  # the parameter that it would be used for; "" for none
    shape: tuple[int, ...] | None  # of the saved moments; None if there are none
    parameter_shape: tuple[int, ...] | None
    verdict: str  # "fits", "shape", "other", "nothing"
    path: str = ""


@dataclass(frozen=True, slots=True)
class OptimizerMatch:
    """What `load_state_dict` would do to an optimizer."""

    optimizer: str
    path: str
    saved_groups: tuple[int, ...]  # parameters in each
    live_groups: tuple[int, ...]
    moments: tuple[Moment, ...]
    settings: tuple[tuple[str, str, str], ...]  # (what, in the file, now), where they differ
    loads: bool  # load_state_dict raises no error; later steps may


@dataclass(frozen=True, slots=True)
class CheckpointTree:
    """All that is known about a checkpoint, without having loaded it."""

    source: str  # "best.pt", or "a dict"
    format: str  # "zip", "legacy", "pickle", "safetensors", "index", "dict", "other"
    bytes: int  # of the file; of a dict, of its tensors
    opens: str  # "default", "moved", "listed", "trusted", "danger", "broken"
    verdict: str  # one sentence: whether and how torch.load opens it
    entries: tuple[Entry, ...] = ()
    storages: tuple[Storage, ...] = ()
    needed: tuple[Needed, ...] = ()
    findings: tuple[Finding, ...] = ()
    model: ModelMatch | None = None
    optimizer: OptimizerMatch | None = None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are most likely mistakes."""
        return problems(self.findings)

    def finding(self, code: str) -> Finding | None:
        """The first finding of a code."""
        return next((one for one in self.findings if one.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        from pytorch_lab.checkpoints.text import render

        return render(self)
