"""What the check cells of an exercise call.

| in a check cell                    |                                                             |
| ---------------------------------- | ----------------------------------------------------------- |
| `@checks.visible("03.2", hints=…)` | registers a function `check(expect)` as the visible check   |
| `expect.equal(got, want, why, name=…)` `.true` `.raises` | what it may ask                       |
| `checks.draw("03.2")`              | inputs drawn from a seed                                    |
| `checks.seed(7)`                   | another seed for all draws that follow                      |
| `checks.reveal("loss", loss)`      | shows a value to the grader, which compares it elsewhere    |
| `checks.exercise("03.2")`          | the panel: Check, Hint, Reset, Solution                     |

`checks.compare` is the one way in which values are compared, here and by the grader. A name loads
on first use, so that the grader can compare without torch and without widgets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytorch_lab.checks.draws import Draw, draw, seed
    from pytorch_lab.checks.expect import Expect
    from pytorch_lab.checks.panel import exercise
    from pytorch_lab.checks.registry import run, visible
    from pytorch_lab.checks.reveals import reveal
    from pytorch_lab.checks.verdict import Verdict

__all__ = ["Draw", "Expect", "Verdict", "draw", "exercise", "reveal", "run", "seed", "visible"]

# No file bears the name of a function: importing it would put the module in the function's place.
_HOMES = {
    "Draw": "draws",
    "Expect": "expect",
    "Verdict": "verdict",
    "draw": "draws",
    "exercise": "panel",
    "reveal": "reveals",
    "run": "registry",
    "seed": "draws",
    "visible": "registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"pytorch_lab.checks has no {name!r}; it has {', '.join(__all__)}.")
    value = getattr(import_module(f"pytorch_lab.checks.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
