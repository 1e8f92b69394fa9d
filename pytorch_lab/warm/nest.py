"""After the fork: a kernel's own namespaces, mounts and limits. Linux only.

    server ── keeper ── init (pid 1 of the new namespace) ── kernel
                                                              └── whatever the student starts

bubblewrap has shut the whole warm process in; this shuts each kernel off from the others. The
keeper lives outside the new namespaces and tells the server how the kernel ended; with init every
process of the kernel dies, whatever session or group it made for itself.

The constants and structures are those of the kernel's headers: mount(2), unshare(2), prctl(2),
capabilities(7).
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

NOBODY = 65534
_NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_BIND, _REC, _PRIVATE, _RDONLY, _NOSUID, _NODEV, _NOEXEC = 4096, 16384, 1 << 18, 1, 2, 4, 8
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_LAST_CAPABILITY = 63  # more than any kernel has; those that do not exist are refused

RUN = Path("/lab/run")  # one folder per kernel, bound from the host
OWN = Path("/lab/kernel")  # where a kernel sees its own one
KEEP = Path("/lab/keep")  # numbered folders, for what lies below /tmp


PACKAGE = Path(__file__).parents[1]


def shown() -> list[Path]:
    """What of this machine is shown beside the system: the interpreter, its packages, and ours."""
    return sorted({Path(sys.base_prefix), Path(sys.prefix), PACKAGE})


@dataclass(frozen=True)
class Limits:
    """What one kernel may use, with all processes that it starts."""

    memory_bytes: int = 4 << 30  # of address space, beyond what the warm process has
    disk_bytes: int = 256 << 20  # in /tmp, and as much again in /dev/shm
    file_bytes: int = 128 << 20  # of one file
    cpu_s: int = 3600  # of one process
    processes: int = 128  # and threads


def keep(run: Path, limits: Limits, kernel: Callable[[], None], tell: Callable[[int], None]) -> int:
    """In a fresh fork of the server: run `kernel` in namespaces of its own, and wait for its end.

    Args:
        run: the kernel's folder below `RUN`.
        limits: what it may use.
        kernel: is called inside; when it returns, the kernel ends.
        tell: gets the process number of init, by which the server can end all of it.

    Returns:
        The exit code; of a signal its negative number.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _die_with_parent(libc)
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(_NEW_NAMESPACES), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    init = os.fork()
    if init == 0:
        _as_init(libc, run, limits, kernel)
    tell(init)
    return _code(os.waitpid(init, 0)[1])


def _as_init(libc: ctypes.CDLL, run: Path, limits: Limits, kernel: Callable[[], None]) -> NoReturn:
    """Pid 1: set the scene, start the kernel, reap what it leaves, and end with its exit code."""
    code = 1
    try:
        _die_with_parent(libc)
        _mount_own(libc, run, limits)
        _loopback_up()
        _drop_capabilities(libc)
        # Init holds the pipe to the server: the kernel, of the same user, may not look into it.
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        child = os.fork()
        if child == 0:
            libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
            _limit(limits)
            kernel()
            os._exit(0)
        signal.signal(signal.SIGINT, lambda *_: os.kill(child, signal.SIGINT))
        while True:
            ended, status = os.wait()
            if ended == child:
                code = _code(status)
                break
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _mount_own(libc: ctypes.CDLL, run: Path, limits: Limits) -> None:
    mount = _mounter(libc)
    mount("none", "/", None, _REC | _PRIVATE)
    # An interpreter that lives below /tmp would vanish under the new one.
    covered = [path for path in shown() if path.is_relative_to("/tmp")]
    for number, path in enumerate(covered):
        mount(str(path), str(KEEP / str(number)), None, _BIND | _REC)
    mount(str(run), str(OWN), None, _BIND)
    mount("none", str(RUN), "tmpfs", _RDONLY | _NOSUID | _NODEV | _NOEXEC, "size=4k,mode=500")
    disk = f"size={limits.disk_bytes},mode=700"
    mount("none", "/tmp", "tmpfs", _NOSUID | _NODEV, disk)
    for number, path in enumerate(covered):
        path.mkdir(parents=True, exist_ok=True)
        mount(str(KEEP / str(number)), str(path), None, _BIND | _REC)
    mount("none", "/dev/shm", "tmpfs", _NOSUID | _NODEV | _NOEXEC, disk)
    mount("none", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)


def _loopback_up() -> None:
    """A fresh network namespace has but a loopback that is down; gloo's ranks meet on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request.ljust(40, b"\0"))


def _mounter(libc: ctypes.CDLL) -> Callable[..., None]:
    def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
        done = libc.mount(
            source.encode(), target.encode(), kind and kind.encode(),
            ctypes.c_ulong(flags), data.encode() or None,
        )  # fmt: skip
        _check(done, f"mount {target}")

    return mount


def mount_proc() -> None:
    """Mount /proc for the server itself, where bubblewrap leaves it to us."""
    _mounter(ctypes.CDLL(None, use_errno=True))("none", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)


def become_nobody() -> None:
    """Leave root for good; nothing to do for anybody else."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # setuid took it away, and with it /proc/self
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Keep no capability, not even in the namespaces that are ours, and no way back to one."""
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    none = (ctypes.c_uint32 * 6)()
    _check(libc.capset(ctypes.byref(_Header(0x20080522, 0)), none), "capset")


def _limit(limits: Limits) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bounds = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_CORE: 0,
    }
    for name, bound in bounds.items():
        resource.setrlimit(name, (bound, bound))


def _die_with_parent(libc: ctypes.CDLL) -> None:
    _check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() == 0 and os.getpid() != 1:  # it died before we asked
        sys.exit(1)


def _code(status: int) -> int:
    return os.waitstatus_to_exitcode(status)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
