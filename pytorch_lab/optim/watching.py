"""The learning rates that a training really used: who called what, in which order, how often.

    with optim.watch_schedule(scheduler) as seen:
        train_one_epoch()
    print(seen.curve)

Where `trace_schedule` looks ahead along a schedule, this watches a loop: a rate set by hand, a
scheduler stepped before the optimizer, once per epoch, or never.
"""

from types import TracebackType
from typing import Any

from torch.optim import Optimizer

from pytorch_lab.errors import UsageError
from pytorch_lab.optim.ahead import METRIC_NAMES, momentum_of
from pytorch_lab.optim.curve import LrCurve, Remark
from pytorch_lab.optim.curve_text import short
from pytorch_lab.optim.family import family, name_of_lambda, optimizers_of, spell
from pytorch_lab.optim.look import Look
from pytorch_lab.optim.plans import plan_of
from pytorch_lab.optim.remarks import plateau
from pytorch_lab.optim.schedule import alike, columns, group_names, member, reductions
from pytorch_lab.optim.shapes import bad_numbers, climbs, constant, teeth, zeros
from pytorch_lab.optim.torch_private import has_stepped
from pytorch_lab.remark import problems_first
from pytorch_lab.words import count

FINDERS = (bad_numbers, zeros, climbs, teeth, plateau, constant)


def watch_schedule(scheduler: Any) -> "Watch":
    """Watch a training; afterwards everything is as before.

    Example:
        >>> import torch
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([weight], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> with watch_schedule(scheduler) as seen:
        ...     for _ in range(3):
        ...         optimizer.step()
        ...         scheduler.step()
        >>> seen.curve.rates
        ((1.0, 0.5, 0.25),)

    Args:
        scheduler: any scheduler, or an optimizer whose rate is set by hand.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(scheduler, Optimizer):
        return Watch(None, scheduler)
    optimizers = optimizers_of(family(scheduler)) if hasattr(scheduler, "__dict__") else []
    if isinstance(scheduler, type) or not optimizers or not hasattr(scheduler, "step"):
        raise UsageError(
            "watch_schedule(scheduler) expected a scheduler or an optimizer, got "
            f"{scheduler!r:.60}."
        )
    return Watch(scheduler, optimizers[0])


class Watch:
    """What is seen between entering and leaving; `curve` can be read at any time."""

    def __init__(self, scheduler: Any, optimizer: Optimizer) -> None:
        self._scheduler, self._optimizer = scheduler, optimizer
        self._fresh = not has_stepped(optimizer)
        self._rates: list[list[float]] = []  # of each optimizer.step()
        self._momenta: list[list[float]] = []
        self._calls: list[int] = []  # of scheduler.step(): how many optimizer steps were before it
        self._metric: list[float] = []
        self._handle: Any = None

    def __enter__(self) -> "Watch":
        if self._handle is not None:
            raise UsageError(
                "this watch is open already; make another one with watch_schedule(scheduler)."
            )
        self._handle = self._optimizer.register_step_pre_hook(self._before_step)
        if self._scheduler is not None:
            self._real = self._scheduler.step
            self._had_own = "step" in vars(self._scheduler)
            self._scheduler.step = self._called
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.remove()
        self._handle = None
        if self._scheduler is None:
            return
        if self._had_own:
            self._scheduler.step = self._real
        else:
            del self._scheduler.step

    def _before_step(self, _optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        groups = self._optimizer.param_groups
        self._rates.append([float(group["lr"]) for group in groups])
        self._momenta.append([momentum_of(group) for group in groups])

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        self._calls.append(len(self._rates))
        named = [kwargs[name] for name in METRIC_NAMES if name in kwargs]
        given = named or ([args[0]] if args and hasattr(self._scheduler, "mode") else [])
        if given:
            self._metric.append(float(given[0]))
        return self._real(*args, **kwargs)

    @property
    def curve(self) -> LrCurve:
        """The rates of all optimizer steps so far, and what is odd about the calls."""
        rates = columns(self._rates) if self._rates else ()
        momenta = columns(self._momenta) if self._momenta else ()
        names = group_names(self._optimizer)[: len(rates)]
        initial = tuple(row[0] for row in rates)
        steps = len(self._rates)
        look = self._look(names, rates, initial)
        found = [*self._calls_said(steps), *(one for finder in FINDERS for one in finder(look))]
        what = type(self._optimizer).__name__ if self._scheduler is None else spell(self._scheduler)
        return LrCurve(
            scheduler=f"{what}, as it ran",
            steps=steps,
            names=names,
            rates=rates,
            following=tuple(float(group["lr"]) for group in self._optimizer.param_groups),
            initial=initial,
            momenta=momenta if any(len(set(row)) > 1 for row in momenta) else (),
            metric=tuple(self._metric),
            planned=look.plan.calls if look.plan else None,
            remarks=problems_first(found),
        )

    def _look(
        self,
        names: tuple[str, ...],
        rates: tuple[tuple[float, ...], ...],
        initial: tuple[float, ...],
    ) -> Look:
        kinds = alike(names, rates)
        known = self._scheduler
        return Look(
            rows=tuple((name, rates[i]) for i, name in kinds.items()),
            initial=tuple(initial[i] for i in kinds),
            momenta=(),
            members=() if known is None else tuple(map(member, family(known))),
            steps=len(self._rates),
            plan=None if known is None else plan_of(known),
            groups=len(names),
            known=len(names),
            lambda_name="" if known is None else name_of_lambda(known),
            metric=tuple(self._metric),
            mode=str(getattr(known, "mode", "")) if self._metric else "",
            reductions=reductions(rates) if self._metric and rates else (),
        )

    def _calls_said(self, steps: int) -> list[Remark]:
        """What the order and the number of calls say."""
        if self._scheduler is None or not steps:
            return []
        name, calls = type(self._scheduler).__name__, len(self._calls)
        if not calls:
            text = f"{count(steps, 'optimizer step')} and not one call of scheduler.step()."
            return [Remark("never", "problem", text, (0, steps - 1))]
        said = []
        if self._calls[0] == 0 and self._fresh:
            said.append(
                Remark(
                    "order",
                    "problem",
                    "scheduler.step() came before the first optimizer.step(), which used "
                    f"{short(self._rates[0][0])}: the first lr of the schedule was skipped. Call "
                    "optimizer.step() first, then scheduler.step().",
                    (0, 0),
                )
            )
        plan = plan_of(self._scheduler)
        every = steps / calls
        if plan is not None and plan.then != "stays" and calls * 2 < plan.calls and every >= 2:
            said.append(
                Remark(
                    "per_epoch",
                    "problem",
                    f"{name} is planned for {plan.calls:,} calls of step() ({plan.says}) and got "
                    f"{calls:,} in {steps:,} optimizer steps, one in {every:.3g}: call it after "
                    "every batch.",
                    (0, steps - 1),
                )
            )
        else:
            often = "after each" if calls == steps else f"once in {every:.3g}"
            said.append(
                Remark(
                    "calls",
                    "note",
                    f"scheduler.step() was called {often} optimizer step{'s' * (calls != steps)}, "
                    f"{count(calls, 'time')} in all.",
                )
            )
        return said
