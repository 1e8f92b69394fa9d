"""Are the mistakes of somebody else's collection named?

    python benchmarks/autograd_bank.py FOLDER [--sections graph,autograd,gradients]

FOLDER holds `labels.json`, `cases/*.py` and `healthy/*.py`. Each program has a function `build()`
that returns a dict with what the mistake needs: `model`, `batch` or `loader`, `step(batch)`, or
`make_model()` / `make_optimizer()`, which raise. Each is asked as its author would ask: about every
parameter in the first step, then in the second, until something is blamed; what goes wrong in later
steps follows from that. The exit code is 1 if a cause is missed, a wrong one is named, or a healthy
program is blamed.
"""

import argparse
import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from pytorch_lab.graph import Explanation, why_error, why_gradient

STEPS = 3  # of each program: a state that is carried on fails at the second or third
# What the collection calls a mistake, and what we call its causes.
CAUSES = {
    "graph-cut": {"detached", "no_grad", "inference", "left_torch", "copied", "part_constant"},
    "operation-without-slope": {"integer_op", "zero_slope", "no_derivative"},
    "not-a-leaf-tensor": {"non_leaf"},
    "target-not-detached": {"target_carries_gradient"},
    "hidden-state-not-detached": {"hidden_state"},
    "saved-tensor-overwritten": {"in_place", "stepped_between"},
    "inplace-write-to-parameter": {"leaf_in_place", "view_of_leaf_in_place"},
    "backward-scaled-by-loss": {"scaled_by_loss"},
    "infinite-slope-in-backward": {"infinite_slope"},
    "attention-row-fully-masked": {"fully_masked"},
    "clamp-blocks-gradient": {"clamped"},
    "clip-before-unscale": {"clipped_while_scaled"},
    "non-finite-batch-not-skipped": {"non_finite_input", "clipped_infinity", "non_finite_buffer"},
    "exploding-signal": {"exploding"},
}
# Answers that blame nothing: the gradient is as it should be, or its absence is said to be meant.
HARMLESS = {"fine", "no_error", "zero_weights", "unused", "cancels", "stationary", "at_minimum"}


def main() -> int:
    """Ask about every program and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sections", default="graph,autograd,gradients")
    arguments = parser.parse_args()
    labels = json.loads((arguments.folder / "labels.json").read_text("utf-8"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sections = arguments.sections.split(",")
    asked = wrong = 0
    for name, label in labels.items():
        healthy = label["code"] is None
        if not healthy and label["section"] not in sections:
            continue
        answers = list(ask(load(arguments.folder / name).build))
        blamed = sorted({a.cause for a in answers if a.cause not in HARMLESS})
        wanted = CAUSES.get(label["code"], set()) if not healthy else set()
        right = not blamed if healthy else bool(blamed) and set(blamed) <= wanted
        asked += 1
        wrong += not right
        print(f"{'ok   ' if right else 'WRONG'} {name:58} {', '.join(blamed) or '-'}")
    print(f"{asked - wrong} of {asked} right")
    return 1 if wrong or not asked else 0


def load(file: Path) -> ModuleType:
    """A program of the collection as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"expected a Python file, got {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(build: Callable[[], dict[str, Any]]) -> Iterator[Explanation]:
    """The answers to all questions about one program."""
    for maker in ("make_model", "make_optimizer"):
        if maker in build():
            yield why_error(build()[maker])
    model = build().get("model")
    names = [name for name, _ in model.named_parameters()] if model is not None else []
    for steps_before in range(STEPS if "step" in build() else 0):
        answers = [_about(build(), name, steps_before) for name in names]
        yield from answers
        if any(answer.cause not in HARMLESS for answer in answers):
            return


def _about(parts: dict[str, Any], name: str, steps_before: int) -> Explanation:
    """The gradient of one parameter in one step."""
    parameter = dict(parts["model"].named_parameters())[name]
    batches = cycle(parts["loader"] if "loader" in parts else [parts["batch"]])
    for batch in islice(batches, steps_before):
        parts["step"](batch)
    batch = next(batches)
    return why_gradient(parameter, lambda: parts["step"](batch))


if __name__ == "__main__":
    sys.exit(main())
