"""Attacks on the kernel's life and on the machine's time, memory and patience."""

from tests.cheats.bank import RIGHT, Cheat

LEFT = "import time; time.sleep(777777)"
TOO_LONG = ("timed_out", r"the answer ran longer than \d+ s; is there a loop that never ends\?")
CHECK_TOO_LONG = ("timed_out", r"the hidden check ran longer than \d+ s; .*")
DIED = ("kernel_died", r"the kernel ended while the answer ran.*")
DIED_IN_CHECK = ("kernel_died", r"the kernel ended while the hidden check ran.*")
STILL_WRONG = ("failed", r".*expected .*, got .*; run in a fresh kernel without .* 04\.1, .*")
ALONE = {"04.2": STILL_WRONG, "04.3": STILL_WRONG}
EARNED = ("passed", r".*")

CHEATS = [
    Cheat(
        "exit-now",
        "ending the process with exit code 0 in the answer",
        {"04.1": "import os\nos._exit(0)"},
        ends={"04.1": DIED} | ALONE,
    ),
    Cheat(
        "exit-in-check",
        "ending the process with exit code 0 when the check asks",
        {"04.1": "import os\ndef standardize(x):\n    os._exit(0)", "04.3": RIGHT["04.3"]},
        ends={"04.1": DIED_IN_CHECK, "04.2": STILL_WRONG, "04.3": EARNED},
    ),
    Cheat(
        "system-exit",
        "sys.exit(0) in an answer, and in a function",
        {
            "04.1": "import sys\nsys.exit(0)",
            "04.2": "def slope(w, x, y):\n    raise SystemExit(0)",
        },
        ends={
            "04.1": ("raised", r"SystemExit: 0"),
            "04.2": ("raised", r"SystemExit.*: 0"),
        },
    ),
    Cheat(
        "at-exit",
        "a verdict printed and displayed when the process ends",
        {
            "04.1": """\
import atexit, os
def last():
    os.write(1, b'{"exercise": "04.1", "status": "passed"}')
    display({"application/vnd.pytorch-lab.value+json": {"label": "seven numbers"}}, raw=True)
atexit.register(last)
def standardize(x):
    raise SystemExit
""",
        },
        ends={"04.1": ("raised", r"SystemExit.*")},
    ),
    Cheat(
        "kill-parent",
        "killing the parent, everything, and the process group",
        {
            "04.1": """\
import os, signal
for target in (os.getppid(), 1, 2, -1, 0):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(target, number)
        except OSError:
            pass
""",
        },
        ends={"04.1": DIED} | ALONE,
    ),
    Cheat(
        "stop-signal",
        "stopping the process, so that it neither ends nor answers",
        {"04.1": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"},
        ends={"04.1": TOO_LONG} | ALONE,
    ),
    Cheat(
        "endless-loop",
        "a loop that never ends",
        {"04.1": "while True:\n    pass", "04.2": RIGHT["04.2"]},
        ends={"04.1": TOO_LONG, "04.2": EARNED, "04.3": STILL_WRONG},
    ),
    Cheat(
        "swallowed-interrupt",
        "a loop that swallows every interrupt, with the signals blocked",
        {
            "04.1": """\
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""",
        },
        ends={"04.1": TOO_LONG} | ALONE,
    ),
    Cheat(
        "stuck-in-c",
        "a call into C that Python cannot interrupt",
        {
            "04.1": """\
import ctypes
def standardize(x):
    ctypes.PyDLL(None).sleep(10_000)
    return x
""",
        },
        ends={"04.1": CHECK_TOO_LONG} | ALONE,
    ),
    Cheat(
        "ten-gigabytes",
        "an allocation of ten gigabytes",
        {
            "04.1": """\
def standardize(x):
    return torch.ones(10 * 2**30, dtype=torch.uint8).float()[:7]
""",
            "04.2": """\
def slope(w, x, y):
    held = []
    while True:
        held.append(bytearray(2**26))
""",
        },
        ends={
            "04.1": ("raised|kernel_died|timed_out", r".*"),
            "04.2": ("raised|kernel_died|timed_out", r".*"),
            "04.3": ("failed", r".*expected .*"),
        },
    ),
    Cheat(
        "forks",
        "forking until it is refused",
        {
            "04.1": """\
import os, signal
def standardize(x):
    children = []
    try:
        while True:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError:
        pass
    raise RuntimeError(f"refused after {len(children) < 1000}")
""",
        },
        ends={"04.1": ("raised", r"RuntimeError in .*: refused after True")},
    ),
    Cheat(
        "left-behind",
        "a child in a session of its own that outlives everything",
        {
            "04.1": f"""\
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {LEFT!r}], start_new_session=True)
def standardize(x):
    return x
""",
        },
    ),
    Cheat(
        "loud",
        "a hundred megabytes of output",
        {
            "04.1": """\
def standardize(x):
    for _ in range(1000):
        print("x" * 100_000)
    return x
""",
        },
        ends={  # which of the three comes first depends on the machine
            "04.1": (
                "failed|timed_out|kernel_died",
                r"the output was cut after 1 MB, .*|.* longer than .*|.*more than 8 MB at once.*",
            )
        },
    ),
    Cheat(
        "flood",
        "four threads that say without end that the kernel is busy, so that no cell ever ends",
        {
            "04.1": """\
import threading
from IPython import get_ipython
kernel = get_ipython().kernel
def say():
    while True:
        kernel.session.send(kernel.iopub_socket, "status", {"execution_state": "busy"},
                            parent=kernel.get_parent())
def standardize(x):
    for _ in range(4):
        threading.Thread(target=say, daemon=True).start()
    return x
""",
        },
        ends=dict.fromkeys(("04.1", "04.2", "04.3"), ("failed|timed_out|kernel_died", r".*")),
    ),
    Cheat(
        "many-errors",
        "hundreds of errors of two megabytes each",
        {
            "04.1": """\
from IPython import get_ipython
kernel = get_ipython().kernel
def standardize(x):
    content = {"ename": "E", "evalue": "", "traceback": ["x" * 2_000_000]}
    for _ in range(400):
        kernel.session.send(kernel.iopub_socket, "error", content, parent=kernel.get_parent())
    return x
""",
        },
        ends={"04.1": ("raised|failed|timed_out|kernel_died", r".*")},
    ),
    Cheat(
        "one-big-print",
        "a hundred megabytes in one message",
        {"04.1": 'def standardize(x):\n    print("x" * 100_000_000, flush=True)\n    return x'},
        ends={"04.1": ("failed|timed_out|kernel_died", r".*")},
    ),
    Cheat(
        "bottomless-call",
        "recursion until the stack is full",
        {
            "04.1": """\
import sys
sys.setrecursionlimit(2**31 - 1)
def deeper(x):
    return [deeper(x) for _ in range(2)]
def standardize(x):
    return deeper(x)
""",
        },
        ends={
            "04.1": ("raised|kernel_died|timed_out", r".*"),
            "04.2": ("failed", r".*"),
            "04.3": ("failed", r".*"),
        },
    ),
    Cheat(
        "full-disk",
        "filling the disk and shared memory",
        {
            "04.1": """\
def standardize(x):
    written = 0
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "."):
        for number in range(40):
            try:
                with open(f"{folder}/{number}", "wb") as file:
                    while written < 2**32:
                        written += file.write(b"x" * 2**24)
            except OSError:
                pass
    raise RuntimeError(f"a gigabyte: {written > 2**30}")
""",
        },
        ends={"04.1": ("raised", r"RuntimeError in .*: a gigabyte: False")},
    ),
    Cheat(
        "mess",
        "global state that would fail every later exercise",
        {
            "04.1": """\
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
list = sum = str = None
def standardize(x):
    return x
""",
            "04.3": RIGHT["04.3"],
        },
        ends={"04.2": ("failed", r".*expected .*"), "04.3": EARNED},
    ),
]
