"""What no limit of a single process can bound: the memory of all of them, and nameless files.

Init, whom the kernel cannot reach, looks at what its processes hold. A cgroup would do it better,
but few machines let an ordinary user make one.
"""

import ctypes
import os
import platform
import signal
import struct
from contextlib import suppress
from pathlib import Path

LOOK_S = 0.1
_PR_SET_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 38  # the call is not implemented
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _MACHINE = 0, 4  # where they stand in what a filter sees
_X32 = 0x40000000  # on x86-64 the same calls once more, with other numbers
# By machine: its number for filters, and of memfd_create, memfd_secret, shmget and msgget.
_CALLS = {
    "x86_64": (0xC000003E, (319, 447, 29, 68)),
    "aarch64": (0xC00000B7, (279, 447, 194, 186)),
}
_HELD = ("RssAnon", "RssShmem", "VmSwap")
_SHARED_OUT = ("Pss_Anon", "Pss_Shmem", "SwapPss")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def forbid(libc: ctypes.CDLL) -> None:
    """Refuse the calls that make memory which belongs to no process and to no disk of ours."""
    machine, calls = _CALLS.get(platform.machine(), (0, ()))
    if not calls:
        return
    lines = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _REFUSE)]
    lines += [(_LOAD, 0, 0, _NUMBER), (_AT_LEAST, len(calls) + 1, 0, _X32)]
    lines += [(_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    code = b"".join(struct.pack("=HBBI", *line) for line in lines)
    program = _Program(len(lines), code)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "expected a filter of system calls, got none")


def watch(child: int, memory_bytes: int) -> int:
    """As init: reap what ends until `child` does, or until all together hold too much.

    Args:
        child: the kernel.
        memory_bytes: what they may hold beyond what the kernel has at first.

    Returns:
        The exit code of `child`; of a signal its negative number.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    most = memory_bytes + _of_status(child)
    while True:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return os.waitstatus_to_exitcode(ended[1])
        if _held(most) > most:
            return -signal.SIGKILL
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_S)


def _held(enough: int) -> int:
    """Bytes that all processes hold; pages that several share count once, if it matters."""
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    held = {process: _of_status(process) for process in processes}
    if sum(held.values()) <= enough:
        return sum(held.values())
    return sum(_of_map(process, least) for process, least in held.items())


def _of_status(process: int) -> int:
    return _sum(Path(f"/proc/{process}/status"), _HELD)


def _of_map(process: int, otherwise: int) -> int:
    """The same, shared pages divided among those who share them; slow, and refused by some."""
    return _sum(Path(f"/proc/{process}/smaps_rollup"), _SHARED_OUT, otherwise)


def _sum(file: Path, names: tuple[str, ...], otherwise: int = 0) -> int:
    try:
        lines = [line.partition(":") for line in file.read_text().splitlines()]
    except OSError:  # it has ended, or hides
        return otherwise
    return 1024 * sum(int(value.split()[0]) for name, _, value in lines if name in names)
