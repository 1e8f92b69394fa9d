"""PyTorch Lab: see how PyTorch works, break it, fix it.

    import pytorch_lab as lab

| look at live objects      |                                                             |
| ------------------------- | ----------------------------------------------------------- |
| `lab.show(x)`             | the picture of a record or a live object                    |
| `lab.graph`               | the dynamic graph as it ran, forward and backward           |
| `lab.modules`             | what a module registers, shares, freezes, and what it hides |
| `lab.dataloader`          | who waits for whom, and which random numbers workers draw   |
| `lab.checkpoints`         | what is in a file without running it, and what would load   |
| `lab.optim`               | rates of a schedule, races of optimizers, parameter groups  |
| `lab.customop`            | which derivative of your own function is wrong, and how     |
| `lab.loop`                | a training loop in any order, run and measured; progress    |
| `lab.data`                | what ships to learn from: a small text                      |

| the pieces of a lesson    |                                                             |
| ------------------------- | ----------------------------------------------------------- |
| `lab.card(...)`           | what a lesson is about, and what was learned                |
| `lab.predict(...)`        | guess before you run                                        |
| `lab.order(...)`          | put lines in order; the order is really run                 |
| `lab.clinic(...)`         | find the cause of a symptom, then heal the code             |
| `lab.derivatives(...)`    | fill in a small graph by hand; autograd checks each number  |
| `lab.recall(...)`         | questions from earlier lessons                              |
| `lab.vjp(...)`            | choose the vector that goes back through a Jacobian         |
| `lab.exercise(...)`       | check, hint, reset and solution of a graded exercise        |
| `lab.setup()`             | the first cell of a notebook: Colab's widgets on            |

Importing this package imports none of them, and not torch: a name loads on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytorch_lab import (
        checkpoints,
        checks,
        customop,
        data,
        dataloader,
        graph,
        loop,
        modules,
        optim,
    )
    from pytorch_lab.checks import exercise
    from pytorch_lab.colab import setup
    from pytorch_lab.widgets.card import card
    from pytorch_lab.widgets.clinic import clinic
    from pytorch_lab.widgets.derivatives import derivatives
    from pytorch_lab.widgets.order import order
    from pytorch_lab.widgets.predict import predict
    from pytorch_lab.widgets.recall import recall
    from pytorch_lab.widgets.show import show
    from pytorch_lab.widgets.vjp import vjp

__version__ = "0.1.0"

__all__ = [
    "card",
    "checkpoints",
    "checks",
    "clinic",
    "customop",
    "data",
    "dataloader",
    "derivatives",
    "exercise",
    "graph",
    "loop",
    "modules",
    "optim",
    "order",
    "predict",
    "recall",
    "setup",
    "show",
    "vjp",
]

_HOMES = {
    "card": "widgets.card",
    "clinic": "widgets.clinic",
    "derivatives": "widgets.derivatives",
    "exercise": "checks",
    "order": "widgets.order",
    "predict": "widgets.predict",
    "recall": "widgets.recall",
    "setup": "colab",
    "show": "widgets.show",
    "vjp": "widgets.vjp",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(
            f"pytorch_lab has no {name!r}; it has {', '.join(__all__)}. See help(pytorch_lab)."
        )
    if name in _HOMES:
        value = getattr(import_module(f"pytorch_lab.{_HOMES[name]}"), name)
    else:
        value = import_module(f"pytorch_lab.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
