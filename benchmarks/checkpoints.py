"""What does it cost to look into a checkpoint of 500 MB? Beside torch.load, in the same run.

Time is the wall clock of reading a file that the disk's cache holds, the median of ROUNDS in turn;
memory the growth of the process's peak, each in a process of its own. The bars: looking takes less
than half of torch.load's time and less than a fiftieth of its memory. What `mmap=True` costs
stands beside them without a bar: it reads no tensor either, but runs what the file asks for.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from pytorch_lab.checkpoints import inspect

ROUNDS = 7
LAYERS, WIDTH = 60, 845  # with Adam's two moments 514 MB
MOST_TIME, MOST_MEMORY = 1 / 2, 1 / 50

DOING: dict[str, Callable[[str], object]] = {
    "inspect": inspect,
    "torch.load": torch.load,
    "torch.load, mmap": lambda path: torch.load(path, mmap=True),
}


def write(path: Path) -> None:
    """A model and its Adam after a step."""
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def peak_mb(name: str, path: Path) -> float:
    """How much the peak of a new process's memory grows by one call."""
    words = [sys.executable, __file__, name, str(path)]
    told = subprocess.run(words, check=True, capture_output=True, text=True)
    return float(told.stdout)


def child(name: str, path: str) -> None:
    """Call it once, and print the growth in MB."""
    with tempfile.NamedTemporaryFile(suffix=".pt") as small:
        torch.save({"w": torch.zeros(2)}, small.name)  # what is imported late is no part of it
        DOING[name](small.name)
    before = own_peak_kb()
    kept = DOING[name](path)
    assert kept is not None
    print((own_peak_kb() - before) / 1000)


def own_peak_kb() -> int:
    """This process's peak; `ru_maxrss` would begin with that of the process that started it."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.pt"
        write(path)
        taken: dict[str, list[float]] = {name: [] for name in DOING}
        for _ in range(ROUNDS + 1):
            for name, act in DOING.items():
                start = time.perf_counter()
                act(str(path))
                taken[name].append(1000 * (time.perf_counter() - start))
        memory = {name: peak_mb(name, path) for name in DOING}
        print(f"{path.stat().st_size / 1e6:.0f} MB, {len(inspect(path).storages)} storages")

    middle = {name: statistics.median(times[1:]) for name, times in taken.items()}
    print(f"{'':18} {'ms, median':>11} {'range':>16} {'peak MB':>9}")
    for name, times in taken.items():
        spread = f"{min(times[1:]):.0f} to {max(times[1:]):.0f}"
        print(f"{name:18} {middle[name]:11.1f} {spread:>16} {memory[name]:9.1f}")
    time_share = middle["inspect"] / middle["torch.load"]
    memory_share = memory["inspect"] / memory["torch.load"]
    print(f"\ninspect takes {time_share:.2f} of torch.load's time (bar: under {MOST_TIME:.2f})")
    print(f"and {memory_share:.4f} of its memory (bar: under {MOST_MEMORY:.2f})")
    return 0 if time_share < MOST_TIME and memory_share < MOST_MEMORY else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(*sys.argv[1:])
    else:
        sys.exit(main())
