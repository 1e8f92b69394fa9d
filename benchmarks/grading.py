"""How much does it cost to grade a class? Beside nbgrader, otter and plain nbval.

    python benchmarks/grading.py

A class of thirty with three graded questions each and one torch thread, the same answers in each
system's own format. Ours is the whole command with the sandbox on, its start and the reference run
included. A peer grades PEERS_GET of the thirty and one of them alone; the difference is what a
submission costs it. Its cost of the whole class is that of one, its start included, and of 29 more.
Before and after each peer comes ours, so that a machine that slows down does so for both.

CPU seconds are those of every process that a command started, counted by a control group: a kernel
in a process namespace of its own is in no parent's books. Wall times are medians, and mean
something on a quiet machine only.
"""

import compileall
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grading_class
import grading_peers
import nbformat

from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.running.kernel import KernelDied, WatchedKernel
from pytorch_lab.warm import provisioner
from pytorch_lab.warm.worker import Worker

PEERS_GET = (0, 8, 18, 24, 26)  # right, in another style, wrong, with an error, half of it
ROUNDS = 7
OPTIMIZER = (
    "import torch\nw = torch.zeros(3, requires_grad=True)\n"
    "o = torch.optim.SGD([w], lr=0.1)\nw.sum().backward()\no.step()\nprint(w.sum())"
)
CHECK = """
import time
from pytorch_lab import checks
@checks.visible("01.1", hints=("Look.", "Look closer.", "There."))
def check(expect):
    {given}
    expect.equal(standardize(x), {right}, "Each column by itself.", name="standardize(x)")
started = time.perf_counter()
verdict = checks.run("01.1")
print(time.perf_counter() - started if verdict.state == "passed" else verdict)
"""


# ------------------------------------------------------------------------------- counting CPU time


@contextmanager
def group() -> Iterator[Path]:
    """A control group of our own, of either version."""
    one = Path("/sys/fs/cgroup/cpuacct")
    home = one if one.is_dir() else Path("/sys/fs/cgroup")
    made = home / f"pytorch-lab-{os.getpid()}-{time.monotonic_ns()}"
    try:
        made.mkdir()
    except OSError as error:
        sys.exit(f"expected to make a control group in {home}, got {error.strerror}; be root")
    try:
        yield made
    finally:
        while (made / "cgroup.procs").read_text().strip():  # what was killed is still ending
            time.sleep(0.05)
        made.rmdir()


def cpu_of(words: Sequence[object], folder: Path, env: dict[str, str]) -> float:
    """CPU seconds of a command and of all that it started."""
    with group() as made:
        procs = made / "cgroup.procs"
        done = subprocess.run(
            [str(word) for word in words], cwd=folder, env=env, capture_output=True, text=True,
            check=False, preexec_fn=lambda: procs.write_text(str(os.getpid())),
        )  # fmt: skip
        assert done.returncode in (0, 1), (words, done.stderr[-2000:])
        while procs.read_text().strip():
            time.sleep(0.05)
        if (made / "cpuacct.usage").exists():
            return int((made / "cpuacct.usage").read_text()) / 1e9
        facts = dict(line.split() for line in (made / "cpu.stat").read_text().splitlines())
        return int(facts["usage_usec"]) / 1e6


# ------------------------------------------------------------------------------------ the commands


def hand_in(folder: Path) -> Path:
    """The class in our format; gives the notebook of solutions."""
    solution = folder / "01_bench.ipynb"
    nbformat.write(grading_class.ours(), solution)
    released = student_version(grading_class.ours())
    (folder / "in").mkdir()
    for number in range(len(grading_class.CLASS)):
        made = grading_class.submission(released, number)
        nbformat.write(made, folder / "in" / f"{number:02}.ipynb")
    return solution


def grade_words(folder: Path, solution: Path, out: str, *more: object) -> list[object]:
    """Our command."""
    words = [sys.executable, "-m", "pytorch_lab.cli", "grade", folder / "in", "--no-feedback"]
    return [*words, "--assignment", solution, "--out", folder / out, *more]


def assert_marks(out: Path) -> None:
    """What it costs to grade wrongly is of no interest."""
    points: dict[str, float] = {}
    with open(out / "grades.csv", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            points[row["student"]] = points.get(row["student"], 0) + float(row["points"])
    want = {f"{n:02}": grading_class.points_of(n) for n in range(len(grading_class.CLASS))}
    assert points == want, (points, want)


def our_cost(folder: Path, solution: Path, out: str) -> float:
    """CPU seconds per submission of the whole command."""
    words = grade_words(folder, solution, out)
    ours = cpu_of(words, Path(__file__).parents[1], grading_peers.environment())
    assert_marks(folder / out)
    return ours / len(grading_class.CLASS)


def regrade(folder: Path, solution: Path, out: str) -> float:
    """Wall seconds of the same command once more."""
    started = time.monotonic()
    subprocess.run(
        [str(word) for word in grade_words(folder, solution, out)],
        env=grading_peers.environment(), cwd=Path(__file__).parents[1], check=True,
        capture_output=True,
    )  # fmt: skip
    return time.monotonic() - started


def cost(kind: type[grading_peers.Peer], folder: Path) -> float:
    """CPU seconds per submission of a command for the whole class, for a peer."""
    spent = []
    for numbers in (PEERS_GET[:1], PEERS_GET):
        peer = kind(folder / f"{kind.__name__}-{len(numbers)}", numbers)
        spent.append(cpu_of(peer.command(numbers), peer.folder, grading_peers.environment()))
    more = (spent[1] - spent[0]) / (len(PEERS_GET) - 1)
    class_ = len(grading_class.CLASS)
    return (spent[0] + more * (class_ - 1)) / class_


# ------------------------------------------------------------------------------------- the workers


def rate(folder: Path, solution: Path, workers: int) -> float:
    """Submissions a second of a run under way: from the first that settled to the last."""
    code = """
import sys, time
from pathlib import Path
from pytorch_lab.grading import grade
from pytorch_lab.grading.running import judging
settled = []
real = judging.judge
def judge(*args, **kwargs):
    return real(*args, heard=lambda *_: settled.append(time.monotonic()))
import pytorch_lab.grading.grader
sys.modules["pytorch_lab.grading.grader"].judge = judge
folder, solution, out = map(Path, sys.argv[1:4])
grade(folder, solution, out, workers=int(sys.argv[4]))
print((len(settled) - int(sys.argv[4])) / (settled[-1] - settled[int(sys.argv[4]) - 1]))
"""
    with tempfile.TemporaryDirectory() as out:
        words = [sys.executable, "-c", code, folder / "in", solution, out, workers]
        done = subprocess.run(
            [str(word) for word in words], env=grading_peers.environment(),
            check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1],
        )  # fmt: skip
    return float(done.stdout)


# ------------------------------------------------------------------------------------- one kernel


def ask(kernel: WatchedKernel, source: str) -> str:
    """What a cell prints; the way that nbval takes."""
    asked = kernel.execute_cell_input(source)
    kernel.await_reply(asked, 60)
    shown = []
    while True:
        message = kernel.get_message("iopub", timeout=5)
        if message["content"].get("execution_state") == "idle":
            return "".join(shown)
        shown.append(str(message["content"].get("text", "")))


@contextmanager
def kernel() -> Iterator[WatchedKernel]:
    """A warm kernel in the sandbox."""
    with tempfile.TemporaryDirectory() as folder:
        made = WatchedKernel(folder, dict(os.environ), sandbox=True)
        try:
            yield made
        finally:
            made.end()


def first_answer() -> float:
    """Seconds from the request for a kernel to the answer of a cell with an optimizer."""
    started = time.monotonic()
    with kernel() as made:
        assert "tensor(-0.3" in ask(made, OPTIMIZER)
        return time.monotonic() - started


def death(source: str) -> float:
    """Seconds until the end of a kernel is noticed."""
    with kernel() as made:
        ask(made, "1")
        started = time.monotonic()
        try:
            ask(made, source)
        except KernelDied:
            return time.monotonic() - started
        raise AssertionError("it lives")


def private_mb() -> float:
    """What a kernel holds beyond the warm process, after training."""
    known = set(processes())
    with kernel() as made:
        given, asked = grading_class.TESTS["q3"]
        ask(made, f"import torch\n{grading_class.SOLUTIONS['q3']}\n{given}\n{asked[0]}")
        mine = [p for p in processes() if p not in known and runs_us(p)]
        return sum(map(private_kb, mine)) / 1024


def processes() -> list[int]:
    """All of this machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def runs_us(process: int) -> bool:
    """Whether it is a fork of the warm process: what it keeps of the command line says so."""
    try:
        return b"pytorch_lab.warm.server" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def private_kb(process: int) -> int:
    """Memory that no other process shares."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:  # it has just ended
        return 0
    facts = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return facts["Private_Clean"] + facts["Private_Dirty"]


def instant_check() -> float:
    """Milliseconds of a visible check in a kernel, in the middle of ROUNDS."""
    (given, _), right = grading_class.TESTS["q1"], grading_class.expected("q1")[0]
    body = given.strip().replace("\n", "\n    ")
    source = CHECK.format(given=body, right=f"torch.tensor({right})")
    with kernel() as made:
        ask(made, f"import torch\n{grading_class.SOLUTIONS['q1']}")
        return 1000 * statistics.median(float(ask(made, source)) for _ in range(ROUNDS))


# ---------------------------------------------------------------------------------------- the table


def costs_only_one(folder: Path) -> bool:
    """Whether a death in the second exercise leaves the first and the third their points."""
    released = student_version(grading_class.ours())
    made = grading_class.submission(released, 0)
    next(c for c in made.cells if c.id == "01-2").source = "import os\nos._exit(1)"
    (folder / "in").mkdir(parents=True)
    nbformat.write(made, folder / "in" / "00.ipynb")
    nbformat.write(grading_class.ours(), folder / "01_bench.ipynb")
    from pytorch_lab.grading import grade

    graded = grade(folder / "in", folder / "01_bench.ipynb", folder / "out")
    return [row.status for row in graded.rows] == ["passed", "kernel_died", "passed"]


def bar(what: str, found: str, bar_is: str, met: bool) -> bool:
    """One line of the table."""
    print(f"{what:<58}{found:>14}   {bar_is:<14}{'met' if met else 'MISSED'}", flush=True)
    return met


def main() -> int:
    """Print the tables; 1 when a bar is missed."""
    grading_peers.install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        solution = hand_in(folder)
        compileall.compile_dir(Path(__file__).parents[1] / "pytorch_lab", quiet=1)  # as pip does
        ours = [our_cost(folder, solution, "0")]
        print(f"{'CPU seconds per submission':<30}{'theirs':>8}{'ours':>8}{'ours is':>12}")
        less = {}
        for kind in grading_peers.PEERS:
            theirs = cost(kind, folder)
            ours.append(our_cost(folder, solution, str(len(ours))))
            beside = statistics.mean(ours[-2:])
            less[kind.name] = theirs / beside
            print(f"{kind.name:<30}{theirs:>8.2f}{beside:>8.2f}{theirs / beside:>10.1f}x less")
        print(f"ours, all costs of the command, in each run: {', '.join(f'{o:.2f}' for o in ours)}")
        print(flush=True)
        nbval, *graders = less.values()
        more = min(graders)
        met = [
            bar("fewer CPU seconds than nbgrader and otter", f"{more:.1f}x", ">= 10x", more >= 10)
        ]
        met.append(bar("fewer than plain nbval", f"{nbval:.1f}x", ">= 7x", nbval >= 7))
        two = rate(folder, solution, 2) / rate(folder, solution, 1)
        met.append(bar("two workers over one", f"{two:.2f}x", ">= 1.8x", two >= 1.8))
        again = statistics.median(regrade(folder, solution, "0") for _ in range(3))
        met.append(bar("regrade of the unchanged class", f"{again:.2f} s", "<= 2 s", again <= 2))
        alone = costs_only_one(folder / "died")
        with Worker() as worker:
            os.environ[provisioner.ATTACH] = str(worker.run)
            met += of_kernels(alone)
    return 0 if all(met) else 1


def of_kernels(alone: bool) -> list[bool]:
    """The bars that one kernel decides."""
    first_answer()
    starts = [first_answer() for _ in range(ROUNDS)]
    start = statistics.median(starts)
    ends = ["import os; os._exit(1)", "import os; os.kill(os.getpid(), 9)", "import os; os.abort()"]
    seen = max(death(source) for source in ends)
    memory = statistics.median(private_mb() for _ in range(3))
    check = instant_check()
    return [
        bar("warm kernel: start to first answer, with an optimizer", f"{start:.2f} s", "<= 0.3 s",
            start <= 0.3),
        bar("a dead kernel is noticed within", f"{seen:.2f} s", "<= 1 s", seen <= 1),
        bar("its death costs that exercise only", "yes" if alone else "no", "yes", alone),
        bar("private memory of a running submission", f"{memory:.0f} MB", "<= 100 MB",
            memory <= 100),
        bar("instant check in the notebook", f"{check:.1f} ms", "<= 50 ms", check <= 50),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
