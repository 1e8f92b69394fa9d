"""What the finders of remarks look at: a schedule's numbers and settings, nothing alive."""

from dataclasses import dataclass

from pytorch_lab.optim.plans import Plan

BY_DESIGN = ("CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "SWALR")

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One scheduler of the family, as plain numbers."""

    kind: str  # class name
    settings: dict[str, float]  # those that are numbers
    called: int  # calls of its step() when all was run


@dataclass(frozen=True, slots=True)
class Look:
    """What the finders look at."""

    rows: tuple[tuple[str, Row], ...]  # the different curves, each with the name of its group
    initial: tuple[float, ...]  # of each of the rows
    momenta: tuple[Row, ...]
    members: tuple[Member, ...]  # of the family, the scheduler itself first
    steps: int
    began: int = 0
    plan: Plan | None = None
    stopped: str = ""
    groups: int = 1  # of the optimizer
    known: int = 1  # of them to the scheduler
    lambda_name: str = ""  # of a function that gives factors
    metric: Row = ()
    mode: str = ""  # "min" or "max": what the watcher of the metric calls better
    reductions: tuple[int, ...] = ()
    early: int = 0  # calls of scheduler.step() without any optimizer.step() before
    set_by_others: tuple[float, float] | None = None  # the rate now, and what the schedule had set

    @property
    def kind(self) -> str:
        """The scheduler's class."""
        return self.members[0].kind if self.members else ""

    @property
    def by_design(self) -> bool:
        """Whether going up and down is what it is for."""
        return any(m.kind in BY_DESIGN for m in self.members) or "restarts" in self.lambda_name

    def of(self, name: str) -> str:
        """The words "of group 1", where there is more than one group."""
        return f" of {name}" if self.groups > 1 else ""
