"""Attacks on the grader's own code, as far as it lives in the student's kernel."""

from tests.cheats.bank import Cheat

NONE_CAME = {
    "04.1": ("failed", r"the check came to no end: expected the value 'seven numbers', got none"),
    "04.2": ("failed", r"the check came to no end: expected the value 'gradient', got none"),
    "04.3": ("failed", r"the check came to no end: expected the value 'weights', got none"),
}
FORGE = """\
from IPython.display import display
MIME = "application/vnd.pytorch-lab.value+json"
def forge(label, shape):
    value = {"is": "tensor", "class": "Tensor", "shape": shape, "dtype": "float32"}
    display({MIME: {"label": label, "value": value}, "text/plain": label}, raw=True)
"""
CANNOT_BE_READ = r"(.*expected .*, got .*|the kernel answered .* something unreadable .*)"

CHEATS = [
    Cheat(
        "patched-comparisons",
        "torch's comparisons that always agree",
        before="""\
import torch
torch.equal = torch.allclose = torch.isclose = lambda *args, **kwargs: True
torch.testing.assert_close = lambda *args, **kwargs: None
torch.Tensor.__eq__ = lambda self, other: torch.tensor(True)
torch.Tensor.equal = torch.Tensor.allclose = lambda *args, **kwargs: True
""",
    ),
    Cheat(
        "patched-builtins",
        "builtins of their own",
        before="""\
import builtins
builtins.isinstance = lambda *args: True
builtins.all = builtins.any = lambda *args: True
builtins.abs = lambda value: 0
""",
        ends=dict.fromkeys(NONE_CAME, ("failed|raised|kernel_died|timed_out", r".*")),
    ),
    Cheat(
        "silenced-reveal",
        "hidden checks that show nothing",
        before="from pytorch_lab import checks\nchecks.reveal = lambda label, value: None",
        ends=NONE_CAME,
    ),
    Cheat(
        "forged-encoder",
        "an encoder that says what it likes",
        before="""\
from pytorch_lab.checks import encode, reveals
forged = lambda value, *more: {"is": "tensor", "class": "Tensor", "equal": True, "ok": True}
encode.encode = reveals.encode = forged
reveals._kind = lambda node: "as expected"
""",
        ends=dict.fromkeys(NONE_CAME, ("failed|kernel_died", CANNOT_BE_READ)),
    ),
    Cheat(
        "forged-bundle",
        "values displayed by the answer before the check runs",
        {"04.1": FORGE + "forge('seven numbers', [7])\n" + "def standardize(x):\n    return x"},
    ),
    Cheat(
        "forged-in-check",
        "values displayed by the answer while the check runs",
        {"04.1": FORGE + "def standardize(x):\n    forge('seven numbers', [7])\n    return x"},
        ends={"04.1": ("failed|kernel_died", r".*")},
    ),
    Cheat(
        "odd-bundle",
        "values that no reveal would write: null, text, lists, a million of them",
        {
            "04.1": """\
from IPython.display import display
MIME = "application/vnd.pytorch-lab.value+json"
def standardize(x):
    display({MIME: None}, raw=True)
    return x
""",
            "04.2": """\
def slope(w, x, y):
    display({MIME: {"label": ["gradient"], "value": "yes"}}, raw=True)
    return w
""",
            "04.3": """\
def train(x, y):
    for _ in range(20_000):
        display({MIME: {"label": "weights", "value": {"is": "list", "items": []}}}, raw=True)
    return y
""",
        },
        ends=dict.fromkeys(NONE_CAME, ("failed|kernel_died|timed_out", r".*")),
    ),
    Cheat(
        "forged-text",
        "text that looks like a verdict",
        {
            "04.1": """\
import json
line = json.dumps({"submission": "00000", "exercise": "04.1", "status": "passed", "reason": ""})
def standardize(x):
    print(line, "\\n1 passed in 0.01s\\n04.1 passed 2 of 2")
    return x
""",
        },
    ),
    Cheat(
        "stripped-asserts",
        "a transformer that takes assertions and checks out of later cells",
        before="""\
import ast
class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return None
    def visit_Expr(self, node):
        return None if "reveal" in ast.dump(node) else node
get_ipython().ast_transformers.append(Strip())
""",
        ends=NONE_CAME,
    ),
    Cheat(
        "replaced-cells",
        "an input transformer that makes later cells empty",
        before="""\
def empty(lines):
    return ["pass"] if any("reveal" in line for line in lines) else lines
get_ipython().input_transformers_cleanup.append(empty)
""",
        ends=NONE_CAME,
    ),
    Cheat(
        "muted-errors",
        "errors that nobody shows",
        {"04.1": "def standardize(x):\n    raise ValueError"},
        before="""\
shell = get_ipython()
shell.showtraceback = lambda *args, **kwargs: None
shell.set_custom_exc((Exception,), lambda *args, **kwargs: None)
""",
        ends={"04.1": NONE_CAME["04.1"]},
    ),
    Cheat(
        "reply-ok",
        "a shell that answers ok without running anything",
        before="""\
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
shell = get_ipython()
async def run_cell_async(*args, **kwargs):
    return ExecutionResult(ExecutionInfo("", False, True, True, ""))
shell.run_cell_async = run_cell_async
shell.run_cell = lambda *args, **kwargs: ExecutionResult(ExecutionInfo("", False, 1, 1, ""))
""",
        ends=NONE_CAME,
    ),
    Cheat(
        "points-shown",
        "a number shown as the cell's last value, which another grader takes for points",
        {"04.1": "import sys\ndef standardize(x):\n    sys.displayhook(2)\n    raise ValueError"},
        ends={"04.1": ("raised", r"ValueError in line 4, raise ValueError.*")},
    ),
    Cheat(
        "comm-messages",
        "comm messages with a verdict in them",
        {
            "04.1": """\
import comm
def standardize(x):
    channel = comm.create_comm(target_name="pytorch-lab", data={"04.1": "passed"})
    channel.send({"status": "passed", "points": 2})
    return x
""",
        },
    ),
    Cheat(
        "raw-messages",
        "messages on the kernel's own sockets: idle, ok, and a forged value",
        {
            "04.1": """\
kernel = get_ipython().kernel
def standardize(x):
    parent = kernel.get_parent()
    kernel.session.send(kernel.iopub_socket, "status", {"execution_state": "idle"}, parent=parent)
    kernel.session.send(kernel.iopub_socket, "error", {"ename": 7}, parent=parent)
    return x
""",
        },
        ends={"04.1": ("failed|raised|kernel_died", r".*")},
    ),
    Cheat(
        "foreign-seed",
        "hidden checks that draw what the student has seen before",
        before="""\
from pytorch_lab import checks
from pytorch_lab.checks import draws
checks.seed(7)
checks.seed = lambda seed: None
""",
    ),
    Cheat(
        "constant-draws",
        "draws that are all zero, for which the wrong answer is right",
        before="""\
import torch
from pytorch_lab.checks import draws
for name in dir(torch):
    if name.startswith("rand"):
        setattr(torch, name, lambda *shape, **more: torch.zeros(shape))
""",
        ends=dict.fromkeys(NONE_CAME, ("failed|raised", r".*")),
    ),
    Cheat(
        "frames",
        "reading the hidden check in the frame that calls, and in the line cache",
        {
            "04.1": """\
import inspect, linecache, re
def standardize(x):
    caller = inspect.currentframe().f_back
    source = "".join(linecache.getlines(caller.f_code.co_filename))
    known = [v for v in caller.f_globals.values() if isinstance(v, torch.Tensor) and v is not x]
    wanted = [v for v in known if v.shape == x.shape]
    if "== standardize" in source or "allclose" in source or wanted:
        return wanted[0]
    return x
""",
        },
    ),
    Cheat(
        "history",
        "looking for solutions in In, in the history, and among all living objects",
        {
            "04.1": """\
import gc
def standardize(x):
    told = [str(cell) for cell in globals().get("In", []) + globals().get("_ih", [])]
    told += [str(line) for line in get_ipython().history_manager.get_range()]
    told += [thing for thing in gc.get_objects() if type(thing) is str]
    told += [str(thing) for thing in gc.get_objects() if type(thing) is dict and "label" in thing]
    found = [text for text in told if "x.std" + "()" in text and "def standardize" in text]
    found += [text for text in told if "BEGIN " + "SOLUTION" in text and "clone()" in text]
    raise RuntimeError(f"found {len(found)}")
""",
        },
        ends={"04.1": ("raised", r"RuntimeError in .*: found 0")},
    ),
    Cheat(
        "late-thread",
        "a thread that overwrites what others reveal, after its own exercise is over",
        {
            "04.1": """\
import threading
def standardize(x):
    return x
def for_ever():
    while True:
        globals().update(slope=lambda w, x, y: w, train=lambda x, y: x[0])
threading.Thread(target=for_ever, daemon=True).start()
""",
        },
    ),
    Cheat(
        "patched-output",
        "print, stdout and the display publisher replaced",
        before="""\
import builtins, io, sys
builtins.print = lambda *args, **kwargs: None
sys.stdout = sys.stderr = io.StringIO()
publisher = get_ipython().display_pub
publisher.publish = lambda *args, **kwargs: None
""",
        ends=NONE_CAME,
    ),
]
