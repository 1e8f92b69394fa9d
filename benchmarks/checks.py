"""What a visible check costs beside the same check function called plainly.

    python benchmarks/checks.py

Both run the same function on the same right answer, in turn, in one process with one torch thread;
the panel's press also writes `progress.json`. CPU time in milliseconds, medians of 25 rounds with
the quartiles, and the bar: at most 50 ms from the press of Check to the new state.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch import nn

from pytorch_lab import checks
from pytorch_lab.checks.compare import difference, encode
from pytorch_lab.checks.expect import Expect

BAR_MS = 50.0
ROUNDS = 25
HINTS = ("Look.", "Look closer.", "There.")


class Tower(nn.Module):
    """A right answer."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Layers with ReLU between them."""
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


@checks.visible("00.1", hints=HINTS)
def check(expect: Expect) -> None:
    """About as much as an exercise's check asks."""
    tower = Tower([4, 8, 8, 2])
    expect.equal(len(list(tower.parameters())), 6, "All layers.", name="parameter tensors")
    for _, parameter in tower.named_parameters():
        expect.true(parameter.requires_grad, "All are trained.")
    out = tower(torch.ones(32, 4))
    expect.equal(out.shape, torch.Size([32, 2]), "One row per input.", name="shape")
    out.sum().backward()
    expect.equal(out, out.clone(), "The same.", name="output")


def asks_nothing(_expect: Expect) -> None:
    """The learner's part of `check`, without the questions."""
    tower = Tower([4, 8, 8, 2])
    list(tower.named_parameters())
    tower(torch.ones(32, 4)).sum().backward()


def milliseconds(function: Callable[[], object]) -> float:
    """CPU time of one call: the machine may be busy with something else."""
    start = time.process_time()
    function()
    return (time.process_time() - start) * 1000


def main() -> int:
    """Print the table; 1 if the bar is missed."""
    torch.set_num_threads(1)
    os.environ["PYTORCH_LAB_PROGRESS"] = os.path.join(tempfile.mkdtemp(), "progress.json")
    panel = checks.exercise("00.1")
    big = torch.randn(9_000)
    encoded = encode(big)
    expect = Expect()
    work: dict[str, Callable[[], object]] = {
        "the answer alone": lambda: asks_nothing(expect),
        "the check function, called plainly": lambda: check(expect),
        "checks.run: guarded, with verdict": lambda: checks.run("00.1"),
        "press of Check: run, remember, new state": lambda: panel.on_press("check"),
        "encode 9,000 numbers": lambda: encode(big),
        "difference of 9,000 numbers": lambda: difference(encoded, encoded, "x"),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS + 3):  # the first three warm up
        for name, function in work.items():
            times[name].append(milliseconds(function))
    plain = statistics.median(times["the check function, called plainly"][3:])
    print(f"{'what':<44}{'median ms':>10}{'quartiles':>18}{'over plain':>12}")
    for name, found in times.items():
        low, middle, high = statistics.quantiles(found[3:], n=4)
        over = f"{middle - plain:+.2f}" if name.startswith(("checks.run", "press")) else ""
        print(f"{name:<44}{middle:>10.2f}{f'{low:.2f} to {high:.2f}':>18}{over:>12}")
    pressed = statistics.median(times["press of Check: run, remember, new state"][3:])
    met = pressed <= BAR_MS
    print(f"\nbar: at most {BAR_MS:.0f} ms per press: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
