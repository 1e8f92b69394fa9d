"""The bubblewrap command around a warm process: what it can see of this machine.

The interpreter, its packages, the system's libraries, all read-only; an empty /tmp, no home, no
network, no other process. Of this package the course itself is hidden: it holds the solutions.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pytorch_lab.errors import LabError
from pytorch_lab.warm import nest

HIDDEN = ("course_files",)  # of our own package
LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")  # malloc asks here whether there are any


def command(run: Path, env: Mapping[str, str]) -> list[str]:
    """The beginning of a command; what follows it runs inside.

    Args:
        run: the host's folder that holds one folder per kernel.
        env: all environment variables of what runs inside.

    Raises:
        LabError: this machine cannot make the sandbox, and what to do.
    """
    reason = why_not()
    if reason:
        raise LabError(reason)
    given = [part for name, value in env.items() for part in ("--setenv", name, value)]
    return [*_walls(), *given, *_views(run)]


def why_not() -> str:
    """Why no sandbox can be made here, and what to do; empty if one can."""
    if not sys.platform.startswith("linux"):
        return (
            f"expected Linux for the sandbox, got {sys.platform}; grade on Linux or in its "
            "virtual machine, or say --no-sandbox if you trust every notebook."
        )
    if not nest.can_fork():
        return (
            f"expected an x86-64 or ARM machine for the sandbox, got {platform.machine()}; grade "
            "on one of those, or say --no-sandbox if you trust every notebook."
        )
    found = shutil.which("bwrap")
    if found is None:
        return (
            "expected bubblewrap for the sandbox, found no 'bwrap'; install it (Debian, Ubuntu: "
            "apt-get install bubblewrap), or say --no-sandbox if you trust every notebook."
        )
    tried = subprocess.run(
        [*_walls(), "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        return (
            "expected user namespaces for the sandbox, but bubblewrap said "
            f"{tried.stderr.strip()[-200:]!r}; allow them (sysctl kernel.unprivileged_userns_clone"
            "=1, or the container's own switch), or say --no-sandbox if you trust every notebook."
        )
    return ""


def _walls() -> list[str]:
    walls = ["bwrap", "--die-with-parent", "--new-session", "--clearenv", "--unshare-ipc"]
    walls += ["--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if os.geteuid() != 0:
        return [*walls, "--unshare-user"]
    # Root could make it without a user namespace; inside, root is left behind (`become_nobody`).
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN")
    return [*walls, "--cap-drop", "ALL", *(part for cap in kept for part in ("--cap-add", cap))]


def _views(run: Path) -> list[str]:
    views = [*_system(), "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    views += ["--dir", "/proc"] if os.geteuid() == 0 else ["--proc", "/proc"]
    kept = [nest.KEEP / str(number) for number in range(len(nest.shown()))]
    views += _open_to_all(nest.OWN.parent, nest.OWN, nest.KEEP, *kept)
    return [*views, *_python(), "--bind", str(run), str(nest.RUN), "--chdir", "/"]


def _open_to_all(*folders: Path) -> list[str]:
    """Empty folders; bubblewrap's own would be closed to whom root becomes inside."""
    return [part for path in folders for part in ("--perms", "0755", "--dir", str(path))]


def _system() -> list[str]:
    views = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            views += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            views += ["--ro-bind", str(path), str(path)]
    for name in ("ld.so.cache", "alternatives", "fonts", "localtime"):
        views += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    above = [folder for folder in reversed(LARGE_PAGES.parents) if folder != Path("/")]
    views += _open_to_all(*above)
    return [*views, "--ro-bind-try", str(LARGE_PAGES), str(LARGE_PAGES)]


def _python() -> list[str]:
    shown = nest.shown()
    above = {folder for path in shown for folder in path.parents} - {Path("/"), Path("/tmp")}
    there = ("/usr", *shown)
    made = [f for f in sorted(above) if not any(f.is_relative_to(path) for path in there)]
    views = _open_to_all(*made)
    for path in shown:
        views += ["--ro-bind", str(path), str(path)]
    for name in HIDDEN:
        if (nest.PACKAGE / name).exists():
            views += ["--tmpfs", str(nest.PACKAGE / name)]
    return views
