"""Everything of torch without a promise that this room uses, and what happens without it.

`_get_allowed_globals` and `_get_user_allowed_globals` are the lists by which `torch.load` lets
classes in. Without them only what the reader allowed is known, and a class of torch's own list is
called one to allow. `_cdata` is the address of a storage's own record, by which two tensors are
seen to share memory; torch has had it since 1.0.
"""

import torch

try:
    from torch._weights_only_unpickler import _get_allowed_globals, _get_user_allowed_globals
except ImportError:
    _get_allowed_globals = _get_user_allowed_globals = None


def is_let_in(name: str) -> bool:
    """Whether `torch.load` takes a class by default, or since the reader said so.

    Example:
        >>> is_let_in("collections.OrderedDict"), is_let_in("os.system")
        (True, False)
    """
    if _get_allowed_globals is None or _get_user_allowed_globals is None:
        kinds = [one for one in torch.serialization.get_safe_globals() if isinstance(one, type)]
        return name in {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    return name in _get_allowed_globals() or name in _get_user_allowed_globals()


def storage_of(storage: torch.UntypedStorage) -> int:
    """What is the same for all tensors that share one memory.

    Example:
        >>> rows = torch.zeros(2, 3)
        >>> storage_of(rows.untyped_storage()) == storage_of(rows[1].untyped_storage())
        True
    """
    return storage._cdata
