"""What do the names in a pickle mean: harmless, a class to allow, or a command that would be run?

Looked up in lists, never imported: importing a module runs it. The verdicts are
`default` (torch.load takes it), `listable` (known to be harmless; `safe_globals` lets it in),
`unknown` (somebody's class: what it does when it is loaded is in its code, not in the file) and
`dangerous` (it can run commands, read files or load more code).
"""

import json

import numpy
import torch

from pytorch_lab.checkpoints.record import Needed
from pytorch_lab.checkpoints.torch_private import is_let_in
from pytorch_lab.checkpoints.unrun import Made, Reading, Row, Table

# Modules of which no function has a place in a checkpoint.
DANGEROUS_MODULES = frozenset((
    "os", "posix", "nt", "posixpath", "ntpath", "sys", "subprocess", "shutil", "socket",
    "socketserver", "ssl", "ctypes", "_ctypes", "cffi", "pty", "tty", "importlib",
    "_frozen_importlib", "_frozen_importlib_external", "runpy", "imp", "zipimport", "pkgutil",
    "code", "codeop", "inspect", "ast", "dis", "gc", "types", "marshal", "pickle", "_pickle",
    "cPickle", "dill", "cloudpickle", "joblib", "shelve", "webbrowser", "urllib", "http",
    "ftplib", "smtplib", "telnetlib", "xmlrpc", "requests", "httpx", "aiohttp", "asyncio",
    "multiprocessing", "concurrent", "threading", "_thread", "signal", "pdb", "bdb", "trace",
    "timeit", "profile", "cProfile", "doctest", "pydoc", "unittest", "pytest", "pip",
    "setuptools", "distutils", "venv", "ensurepip", "platform", "tempfile", "glob", "fileinput",
    "io", "_io", "pathlib2", "sqlite3", "dbm", "atexit", "resource", "mmap", "fcntl", "winreg",
    "_winreg", "msvcrt", "commands", "popen2", "posixsubprocess", "_posixsubprocess",
    "linecache", "logging", "antigravity", "idlelib", "turtle", "tkinter", "site", "sysconfig",
    "builtins", "operator", "_operator", "functools", "_functools", "itertools", "copyreg",
    "_codecs", "codecs", "weakref", "IPython", "torch", "numpy",
))  # fmt: skip
# Harmless, there or elsewhere.
HARMLESS = frozenset((
    "builtins.set", "builtins.frozenset", "builtins.list", "builtins.dict", "builtins.tuple",
    "builtins.int", "builtins.float", "builtins.complex", "builtins.bool", "builtins.str",
    "builtins.bytes", "builtins.bytearray", "builtins.slice", "builtins.range",
    "builtins.object", "_codecs.encode", "functools.partial", "types.SimpleNamespace",
    "copyreg._reconstructor", "collections.deque", "collections.defaultdict",
    "collections.OrderedDict", "collections.Counter", "argparse.Namespace", "datetime.datetime",
    "datetime.date", "datetime.timedelta", "datetime.time", "datetime.timezone",
    "decimal.Decimal", "fractions.Fraction", "uuid.UUID", "pathlib.PosixPath",
    "pathlib.PurePosixPath", "pathlib.WindowsPath", "pathlib.PureWindowsPath",
    "pathlib._local.PosixPath", "pathlib._local.WindowsPath", "enum.Enum",
    "zoneinfo.ZoneInfo._unpickle", "numpy.dtype", "numpy.ndarray",
    "numpy.core.multiarray.scalar", "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar", "numpy._core.multiarray._reconstruct",
    "numpy._core.numeric._frombuffer", "numpy.core.numeric._frombuffer",
    "numpy.random._pickle.__randomstate_ctor", "numpy.random._pickle.__generator_ctor",
    "numpy.random._pickle.__bit_generator_ctor", "numpy.random._mt19937.MT19937",
    "numpy.random._pcg64.PCG64",
))  # fmt: skip
KNOWN_CLASSES = ("numpy.dtypes.", "torch.nn.modules.", "torch.optim.")
# Classes of torch's own modules hold weights; its functions that load or compile do not.
LOADERS = ("torch.load", "torch.hub", "torch.jit", "torch.utils.cpp_extension", "torch.package",
           "torch.storage._load_from_bytes", "torch.serialization", "torch._inductor",
           "torch.utils.model_zoo", "torch.ops", "torch.classes", "torch.testing",
           "torch.utils.data.datapipes", "torch.distributed.run", "torch._dynamo",
           "numpy.load", "numpy.f2py", "numpy.testing", "numpy.distutils", "numpy.ctypeslib",
           "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "numpy.memmap",
           "torch.multiprocessing", "torch.utils.collect_env", "torch.from_file",
           "torch.utils.bottleneck", "torch.cuda._sanitizer", "torch.__config__")  # fmt: skip


def judge(reading: Reading) -> tuple[Needed, ...]:
    """Every name that a pickle asks for, the dangerous ones first.

    Example:
        >>> from pytorch_lab.checkpoints.unrun import Reading
        >>> judge(Reading(globals={"posix.system": 1}))[0].verdict
        'dangerous'
    """
    found = [Needed(name, *_verdict(name, called)) for name, called in reading.globals.items()]
    return tuple(sorted(found, key=lambda one: (_ORDER.index(one.verdict), one.name)))


_ORDER = ("dangerous", "unknown", "listable", "default")


def _verdict(name: str, called: int) -> tuple[str, int, str]:
    if not all(part.isidentifier() for part in name.split(".")):
        return "dangerous", called, "It is no name that Python could import: the file is forged."
    if name.partition(".")[0] in ("os", "posix", "nt", "sys"):  # nobody can allow these
        return "dangerous", called, _DANGER
    if is_let_in(name):
        return "default", called, ""
    if name.endswith("Storage") and name.startswith("torch."):
        return "default", called, ""
    if name in HARMLESS or name.startswith(KNOWN_CLASSES):
        return "listable", called, "It is harmless, and yet not on the list that torch.load allows."
    if name.startswith(LOADERS) or _is_dangerous(name):
        return "dangerous", called, _DANGER
    return "unknown", called, "What it does when it is loaded is in its code, not in this file."


_DANGER = "It can run commands, read or write files, or load further code."


def _is_dangerous(name: str) -> bool:
    module = name.partition(".")[0]
    if module in ("torch", "numpy"):
        return not _is_class(name)
    return module in DANGEROUS_MODULES or any(
        part.startswith("__") and part != "__main__" for part in name.split(".")
    )


def _is_class(name: str) -> bool:
    """Whether the last part is written like a class, as those that hold weights are."""
    last = name.rpartition(".")[2].lstrip("_")
    return last[:1].isupper()


def allow_call(reading: Reading, load: str) -> str:
    """Code that lets in what a file needs beyond torch's list, and loads it.

    Args:
        reading: of the file's pickle.
        load: the call of torch.load, as in `torch.load("best.pt")`.
    """
    needed = {one.name for one in judge(reading) if one.verdict in ("listable", "unknown")}
    items = sorted(filter(None, map(_spell, needed)))
    items += [f"type(numpy.dtype({json.dumps(code)}))" for code in _numpy_dtypes(reading.value)]
    modules = {one.rpartition(".")[0] for one in needed if not one.startswith(("numpy", "torch"))}
    imports = [f"import {module}" for module in sorted(modules - {"", "__main__", "builtins"})]
    if any("numpy" in item for item in items):
        imports.append("import numpy")
    head = "".join(f"{line}\n" for line in imports)
    return f"{head}with torch.serialization.safe_globals([{', '.join(items)}]):\n    {load}"


def _spell(name: str) -> str:
    """How Python of today reaches it; a pair with the old name, where torch would look for that."""
    if name.startswith("numpy.core."):
        return f'({name.replace("numpy.core.", "numpy._core.")}, "{name}")'
    if name.startswith("numpy.dtypes."):
        return ""  # said by its letter code
    return name.removeprefix("__main__.").removeprefix("builtins.")


def _numpy_dtypes(value: object) -> list[str]:
    """The letter codes of the numpy dtypes in a value."""
    found, waiting, seen = set(), [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not isinstance(one, Made | Row | Table):
            continue
        seen.add(id(one))
        if isinstance(one, Made):
            if one.name == "numpy.dtype" and isinstance(one.arg(0), str):
                found.add(one.arg(0))
            waiting += [one.args, one.state, *one.items, *(v for _, v in one.pairs)]
        else:
            waiting += one.items if isinstance(one, Row) else [v for _, v in one.pairs]
    return sorted(code for code in found if _is_dtype(code))


def _is_dtype(code: str) -> bool:
    try:
        return numpy.dtype(code) is not None
    except TypeError:
        return False


def device_is_here(device: str) -> bool:
    """Whether torch.load can put a tensor there on this machine.

    Example:
        >>> device_is_here("cpu"), device_is_here("cuda:99")
        (True, False)
    """
    kind, _, number = device.partition(":")
    if kind in ("cpu", "meta", ""):
        return True
    backend = getattr(torch, kind, None)
    if kind == "mps":
        return torch.backends.mps.is_available()
    if backend is None or not hasattr(backend, "is_available") or not backend.is_available():
        return False
    return number.isdecimal() and int(number[:9]) < backend.device_count() if number else True
