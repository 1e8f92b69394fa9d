"""nbformat, without a grammar of web addresses that no notebook needs.

`import nbformat` imports jsonschema, and that imports `rfc3987_syntax` where it is installed, as
beside JupyterLab: it builds 38 parsers, which takes eight times as long as all the rest. A
notebook's schema holds no web address. Whoever imports this file first is spared them.
"""

import sys

_GRAMMARS = "rfc3987_syntax"

_was_there = _GRAMMARS in sys.modules
sys.modules.setdefault(_GRAMMARS, None)  # type: ignore[arg-type]  # "there is none": ImportError
try:
    import nbformat  # noqa: F401
finally:
    if not _was_there:
        del sys.modules[_GRAMMARS]
