"""Words and imports that give a student's cell power over the shell, a test or comparisons."""

import ast
import re
from collections.abc import Iterator

# What honest answers import. Each other module may lead to the shell or to equality with anything.
_AS_MODULES = (
    "torch torchvision torchaudio numpy math cmath random statistics typing collections "
    "itertools functools operator copy time datetime string re json csv os pathlib tempfile "
    "dataclasses abc enum warnings contextlib matplotlib pandas scipy sklearn seaborn PIL "
    "tqdm logging platform sys gc einops heapq bisect fractions decimal textwrap pprint "
    "ipywidgets __future__"
)
_MODULES = frozenset(_AS_MODULES.split())
_STARRED = ("torch", "numpy", "math", "matplotlib", "pylab")
_AS_NAMES = (
    "get_ipython builtins __builtins__ __import__ __main__ exec eval compile setattr delattr "
    "globals locals breakpoint AssertionError In Out"
)
NAMES = frozenset(_AS_NAMES.split())
_AS_PARTS = (
    "get_ipython InteractiveShell ast_transformers input_transformers_post showtraceback "
    "set_custom_exc displayhook excepthook unittest mock ANY Mock MagicMock settrace "
    "setprofile _getframe _current_frames currentframe f_globals f_locals f_builtins f_code "
    "f_back tb_frame gi_frame cr_frame ag_frame get_objects get_referrers get_referents "
    "meta_path path_hooks attrgetter methodcaller make_dataclass namedtuple NamedTuple "
    "TorchFunctionMode TorchDispatchMode register_module_forward_hook "
    "register_module_forward_pre_hook cpp_extension load_inline load_library"
)
PARTS = frozenset(_AS_PARTS.split())
_AS_SPECIAL = (
    "__init__ __name__ __class__ __doc__ __version__ __len__ __call__ __getitem__ __iter__ "
    "__next__ __enter__ __exit__ __repr__ __str__ __file__ __annotations__ __qualname__ "
    "__main__ __post_init__"
)
SPECIAL = frozenset(_AS_SPECIAL.split())
_FRAGMENT = re.compile(r"__\w*|\w*__|\w*\.__\w*|\w*__\.\w*")
# Modules that others import and so show as their own attributes.
_AS_SHOWN_MODULES = "sys threading inspect builtins bltns importlib types ctypes"
SHOWN_MODULES = frozenset(_AS_SHOWN_MODULES.split())
_AS_SUBMODULES = "nn functional optim linalg testing fft special modules"
SUBMODULES = frozenset(_AS_SUBMODULES.split())


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules that are not known to be harmless, and words of power taken from others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module == "IPython.display":
                continue
            whole = [f"{module}.{alias.name}" for alias in node.names]
            if "*" in whole[0] and module.split(".")[0] not in _STARRED:
                yield f"imports everything from `{module}`"
        else:
            continue
        for name in whole:
            root, *parts = name.split(".")
            if root not in _MODULES:
                yield f"imports `{name}`"
            elif (
                name == "sys.modules"
                or {root, *parts} & (PARTS | SHOWN_MODULES - {"sys"})
                or any(part.startswith("_") for part in parts)
            ):
                yield f"uses `{name}`"


def words(tree: ast.AST) -> Iterator[str]:
    """Words that give a cell power over the shell, over the test or over comparisons."""
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        word = ""
        if isinstance(node, ast.Name):
            word = node.id if node.id in NAMES or _is_power(node.id) else ""
        elif isinstance(node, ast.Attribute):
            word = node.attr if _is_power(node.attr) else ""
            # `model.modules()` looks at a model, `sys.modules` at all that was imported.
            if node.attr == "modules" and id(node) not in calls and not _is_of_nn(node.value):
                word = ast.unparse(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            word = node.name if _is_power(node.name) else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text in PARTS or (_FRAGMENT.fullmatch(text) and text not in SPECIAL):
                word = text
        if word:
            yield f"uses `{word}`"


def _is_power(word: str) -> bool:
    special = len(word) > 4 and word.startswith("__") and word.endswith("__")
    return word in PARTS or (special and word not in SPECIAL)


def _is_of_nn(node: ast.AST) -> bool:
    return ast.unparse(node) in ("nn", "torch.nn")
