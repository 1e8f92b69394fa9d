"""After the fork: a kernel's own namespaces, mounts and limits. Linux only.

    server ── init (pid 1 of the new namespace) ── kernel
                                                    └── whatever the student starts

bubblewrap has shut the whole warm process in; this shuts each kernel off from the others. Init ends
as the kernel ended; with it every process of the kernel dies, whatever session or group it made for
itself.

The constants and structures are those of the kernel's headers: mount(2), clone(2), prctl(2),
capabilities(7).
"""

import ctypes
import fcntl
import os
import platform
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pytorch_lab.warm import guard

NOBODY = 65534
_NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the call
_BIND, _REC, _PRIVATE, _RDONLY, _NOSUID, _NODEV, _NOEXEC = 4096, 16384, 1 << 18, 1, 2, 4, 8
_REMOUNT, _DETACH = 32, 2
_FLAGS = {"nosuid": _NOSUID, "nodev": _NODEV, "noexec": _NOEXEC}  # a remount may not lose them
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_LAST_CAPABILITY = 63  # more than any kernel has; those that do not exist are refused

RUN = Path("/lab/run")  # one folder per kernel, bound from the host
OWN = Path("/lab/kernel")  # where a kernel sees its own one, until its sockets are bound
KEEP = Path("/lab/keep")  # numbered folders, for what lies below /tmp
_INODES = 65536  # on a kernel's own disk; a file without content costs memory, too
_WRITABLE = {"/tmp", "/dev/shm", "/dev/pts", "/proc", str(OWN)}  # each kernel's own

Kernel = Callable[[Callable[[], None]], None]

PACKAGE = Path(__file__).parents[1]


def shown() -> list[Path]:
    """What of this machine is shown beside the system: the interpreter, its packages, and ours."""
    return sorted({Path(sys.base_prefix), Path(sys.prefix), PACKAGE})


@dataclass(frozen=True)
class Limits:
    """What one kernel may use.

    Attributes:
        memory_bytes: beyond what the warm process has: the address space of each process, and the
            memory of all that it starts together, looked at ten times a second.
        disk_bytes: in /tmp, and as much again in /dev/shm; it is memory too, counted apart.
        file_bytes: of one file.
        files: that one process holds open.
        cpu_s: of one process.
        processes: and threads, all together.
    """

    memory_bytes: int = 4 << 30
    disk_bytes: int = 256 << 20
    file_bytes: int = 128 << 20
    files: int = 1024
    cpu_s: int = 3600
    processes: int = 64


def can_fork() -> bool:
    """Whether this machine's call is known."""
    return platform.machine() in _CLONE


def fork(run: Path, limits: Limits, first: Callable[[], None], kernel: Kernel) -> int:
    """Fork into new namespaces, of which the child is init, and run `kernel` in them.

    `os.fork` would have to be called once more than this: of a process that goes into new
    namespaces only the children are in them, and each fork costs ten milliseconds. What Python does
    before and after a fork is about threads, of which the server has but one.

    Args:
        run: the kernel's folder below `RUN`.
        limits: what it may use.
        first: is called in init before anything else.
        kernel: is called inside; when it returns, the kernel ends. It calls what it is given as
            soon as its sockets are bound, and has no folder of the host any more.

    Returns:
        The number of init, which ends with the exit code of the kernel, or 128 and its signal.

    Raises:
        OSError: the system gives no namespaces.
    """
    owner = os.getuid(), os.getgid()
    flags = (_NEW_NAMESPACES | signal.SIGCHLD, 0, 0, 0, 0)
    libc = ctypes.PyDLL(None, use_errno=True)
    init = libc.syscall(_CLONE[platform.machine()], *map(ctypes.c_ulong, flags))
    if init == 0:
        _be_init(owner, run, limits, first, kernel)
    _check(init < 0, "clone")
    return init


def _be_init(
    owner: tuple[int, int], run: Path, limits: Limits, first: Callable[[], None], kernel: Kernel
) -> NoReturn:
    """Pid 1: set the scene, start the kernel, watch it, and end with its exit code."""
    code = 1
    try:
        first()
        libc = ctypes.CDLL(None, use_errno=True)
        _die_with_parent(libc)
        _stay(*owner)
        _mount_own(libc, run, limits)
        _loopback_up()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
        # Init holds the pipe to the server: the kernel, of the same user, may not look into it.
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        mine, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            mine.close()
            _drop_capabilities(libc)
            libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
            _limit(limits)
            guard.forbid(libc)
            kernel(lambda: _ask(theirs))
            os._exit(0)
        theirs.close()
        _take_folder_away(libc, mine)
        _drop_capabilities(libc)
        mine.close()
        signal.signal(signal.SIGINT, lambda *_: os.kill(child, signal.SIGINT))
        code = guard.watch(child, limits.memory_bytes)
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _stay(user: int, group: int) -> None:
    """Be in the new user namespace who we were: there nobody is anybody before it is said."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _ask(init: socket.socket) -> None:
    """In the kernel, its sockets bound: wait until the folder is gone."""
    with init:
        init.sendall(b"bound")
        init.recv(1)


def _take_folder_away(libc: ctypes.CDLL, kernel: socket.socket) -> None:
    """Once the sockets in it are bound nothing needs it, and it is a way to the host's disk."""
    if kernel.recv(5):
        _check(libc.umount2(str(OWN).encode(), _DETACH), "umount")
        kernel.sendall(b"!")


def _mount_own(libc: ctypes.CDLL, run: Path, limits: Limits) -> None:
    mount = _mounter(libc)
    mount("none", "/", None, _REC | _PRIVATE)
    # An interpreter that lives below /tmp would vanish under the new one.
    covered = [path for path in shown() if path.is_relative_to("/tmp")]
    for number, path in enumerate(covered):
        mount(str(path), str(KEEP / str(number)), None, _BIND | _REC)
    mount(str(run), str(OWN), None, _BIND)
    mount("none", str(RUN), "tmpfs", _RDONLY | _NOSUID | _NODEV | _NOEXEC, "size=4k,mode=500")
    disk = f"size={limits.disk_bytes},nr_inodes={_INODES},mode=700"
    mount("none", "/tmp", "tmpfs", _NOSUID | _NODEV, disk)
    for number, path in enumerate(covered):
        path.mkdir(parents=True, exist_ok=True)
        mount(str(KEEP / str(number)), str(path), None, _BIND | _REC)
    mount("none", "/dev/shm", "tmpfs", _NOSUID | _NODEV | _NOEXEC, disk)
    terminals = "newinstance,ptmxmode=666,mode=620"
    mount("none", "/dev/pts", "devpts", _NOSUID | _NOEXEC, terminals)
    mount("none", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    for path, flags in _writable():
        mount("none", path, None, _REMOUNT | _BIND | _RDONLY | flags)


def _writable() -> list[tuple[str, int]]:
    """What several kernels would share and could change, with the flags of each mount."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        path, options = line.split()[4:6]
        flags = [_FLAGS.get(option, 0) for option in options.split(",")]
        found[path.encode().decode("unicode_escape")] = options, sum(flags)  # the last is on top
    return [
        (path, flags)
        for path, (options, flags) in found.items()
        if options.startswith("rw") and path not in _WRITABLE
    ]


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
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    none = (ctypes.c_uint32 * 6)()
    _check(libc.capset(ctypes.byref(_Header(0x20080522, 0)), none), "capset")


def _limit(limits: Limits) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bounds = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: min(limits.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
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


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
