"""How long does a learner wait before anything happens? Beside a bare `python -c pass`.

Each figure is the median of CPU seconds over interleaved runs in interpreters of their own, so that
a busy machine slows both sides alike. The bars: `import pytorch_lab` adds less than 50 ms, and the
help is there before torch alone would be.
"""

import os
import resource
import statistics
import subprocess
import sys

ROUNDS = 9
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import pytorch_lab": ["-c", "import pytorch_lab"],
    "pytorch-lab --help": ["-m", "pytorch_lab.cli", "--help"],
    "import torch": ["-c", "import torch"],
}


def cpu_ms(words: list[str]) -> float:
    """CPU time of one interpreter from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for words in COMMANDS.values():  # compile to .pyc, and fill the disk's cache
        cpu_ms(words)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, words in COMMANDS.items():
            taken[name].append(cpu_ms(words))

    bare = statistics.median(taken["python -c pass"])
    print(f"{'CPU ms, median':20} {'':>8} {'range':>13} {'ratio':>7}")
    for name, times in taken.items():
        middle = statistics.median(times)
        spread = f"{min(times):.0f} to {max(times):.0f}"
        print(f"{name:20} {middle:8.0f} {spread:>13} {middle / bare:6.1f}x")

    added = statistics.median(taken["import pytorch_lab"]) - bare
    faster = statistics.median(taken["import torch"]) / statistics.median(
        taken["pytorch-lab --help"]
    )
    print(f"\nimport pytorch_lab adds {added:.1f} ms (bar: under 50 ms)")
    print(f"import torch takes {faster:.1f}x as long as pytorch-lab --help (bar: more than 1x)")
    return 0 if added < 50 and faster > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
