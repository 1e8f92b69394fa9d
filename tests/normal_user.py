"""Run a command as an ordinary user, also where the tests run as root.

Where the interpreter lies in root's own home, the command sees another home there, in a mount
namespace of its own, with nothing in it but what the interpreter needs.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytorch_lab.warm import nest

USER = 1000
_SCENE = """
set -e
closed=$1 keep=$2 count=$3; shift 3
for number in $(seq $count); do
    mkdir -p "$keep/$number"; mount --bind "${!number}" "$keep/$number"
done
mount -t tmpfs -o mode=755 none "$closed"
for number in $(seq $count); do
    mkdir -p "${!number}"; mount --bind "$keep/$number" "${!number}"; umount "$keep/$number"
done
shift $count
exec "$@"
"""


def why_not() -> str:
    """Why there is no ordinary user to be had here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "these tests run as an ordinary user already"
    if not all(map(shutil.which, ("setpriv", "unshare", "bash"))):
        return "needs setpriv and unshare (util-linux)"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "needs mount namespaces" if tried.returncode else ""


def command(given: list[str], scratch: Path) -> list[str]:
    """The command, as a user who is nobody special.

    Args:
        given: what to run.
        scratch: an empty folder.
    """
    as_user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *given]
    needed = [path for path in nest.shown() if _closed(path)]
    if not needed:
        return as_user
    closed = {_closed(path) for path in needed}
    assert len(closed) == 1, f"expected one folder to open, got {closed}"
    scene = ["unshare", "--mount", "bash", "-c", _SCENE, "scene", str(closed.pop()), str(scratch)]
    return [*scene, str(len(needed)), *map(str, needed), *as_user]


def _closed(path: Path) -> Path | None:
    """The first folder above that only its owner may pass."""
    above = [*reversed(path.parents), path]
    return next((folder for folder in above if not folder.stat().st_mode & 0o001), None)


def python(*arguments: str) -> list[str]:
    """This interpreter with these arguments."""
    return [sys.executable, *arguments]
