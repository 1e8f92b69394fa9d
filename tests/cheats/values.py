"""Answers that are not what they seem: objects that say yes to every question."""

from tests.cheats.bank import Cheat

SUBCLASS = r"reveal\('seven numbers', value\): .*a subclass of Tensor.*"
NO_VALUE = r"reveal\('seven numbers', value\): .*"

CHEATS = [
    Cheat(
        "always-yes",
        "an object to which torch itself says yes",
        {
            "04.1": """\
class Yes:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True
    def __eq__(self, other):
        return True
    def __getattr__(self, name):
        return self
    def __bool__(self):
        return True
def standardize(x):
    return Yes()
""",
        },
        ends={"04.1": ("failed", NO_VALUE)},
    ),
    Cheat(
        "lying-tensor",
        "a tensor subclass that equals everything",
        {
            "04.1": """\
class Liar(torch.Tensor):
    __hash__ = None
    def __eq__(self, other):
        return torch.ones(self.shape, dtype=torch.bool)
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.allclose, torch.equal):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})
def standardize(x):
    return x.as_subclass(Liar)
""",
        },
        ends={"04.1": ("failed", SUBCLASS)},
    ),
    Cheat(
        "lying-number",
        "a float that equals everything, and a str that does",
        {
            "04.1": """\
class Any(float):
    __hash__ = None
    __eq__ = __le__ = __ge__ = lambda self, other: True
def standardize(x):
    return Any(0)
""",
            "04.2": """\
class Text(str):
    __hash__ = None
    __eq__ = lambda self, other: True
def slope(w, x, y):
    return Text("gradient")
""",
        },
        ends={"04.1": ("failed", r".*"), "04.2": ("failed", r".*")},
    ),
    Cheat(
        "not-a-number",
        "NaN, which compares with nothing, and infinity",
        {
            "04.1": "def standardize(x):\n    return x * float('nan')",
            "04.2": "def slope(w, x, y):\n    return w * float('inf')",
            "04.3": "def train(x, y):\n    return torch.empty(0)",
        },
    ),
    Cheat(
        "renamed-class",
        "a class that calls itself Tensor, with a forged dtype and shape",
        {
            "04.1": """\
class Tensor:
    shape = torch.Size([7])
    dtype = torch.float32
    __module__ = "torch"
    def tolist(self):
        return [0.0] * 7
Tensor.__qualname__ = "Tensor"
def standardize(x):
    return Tensor()
""",
        },
        ends={"04.1": ("failed", NO_VALUE)},
    ),
    Cheat(
        "bottomless",
        "a list that holds itself, and one nested ten thousand deep",
        {
            "04.1": "def standardize(x):\n    out = []\n    out.append(out)\n    return out",
            "04.2": """\
def slope(w, x, y):
    out = []
    for _ in range(10_000):
        out = [out]
    return out
""",
        },
        ends={"04.1": ("failed", r".*"), "04.2": ("failed", r".*")},
    ),
    Cheat(
        "exploding-text",
        "values whose repr, str and length raise or never end",
        {
            "04.1": """\
class Trap:
    def __repr__(self):
        raise SystemExit(0)
    __str__ = __len__ = __iter__ = __bool__ = __repr__
def standardize(x):
    return Trap()
""",
            "04.2": """\
class Rope(dict):
    def items(self):
        while True:
            yield "a", 1.0
def slope(w, x, y):
    return Rope(a=1.0)
""",
        },
        ends={"04.1": ("failed|raised", r".*"), "04.2": ("failed", r".*")},
    ),
    Cheat(
        "shared-input",
        "changing the input in place, so that right and wrong look alike",
        {
            "04.1": "def standardize(x):\n    x.zero_()\n    return x",
            "04.2": "def slope(w, x, y):\n    y.copy_(x @ w)\n    return torch.zeros_like(w)",
        },
    ),
    Cheat(
        "wrong-type",
        "the right numbers as float64, as a list, and as a parameter",
        {
            "04.1": "def standardize(x):\n    return ((x - x.mean()) / x.std()).double()",
            "04.2": """\
def slope(w, x, y):
    return (2 / len(y) * x.T @ (x @ w - y)).tolist()
""",
        },
    ),
]
