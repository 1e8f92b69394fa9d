"""nbval's kernel, watched: a death is noticed at once, a timeout ends it, output is bounded.

nbval waits for the reply of a cell and only then reads what the cell showed; it cannot tell a dead
kernel from a slow one. This one waits for a reply, for what the cell shows and for the kernel's end
at once.
"""

import math
import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from queue import Empty
from typing import Any

import zmq
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel, start_new_kernel

from pytorch_lab.warm import provisioner
from pytorch_lab.warm.worker import WarmKernel

OUTPUT_BYTES = 1_000_000  # kept of one cell
OUTPUT_MESSAGES = 10_000
MESSAGE_BYTES = 8 << 20  # a larger one is not even received
MESSAGES_AHEAD = 16  # received before they are read
PATIENCE_S = 300  # for cells that are not the student's
START_S = 60  # for the first answer, on a busy machine
_LOOK_S = 0.25  # between looks at the clock
_AT_ONCE = 100  # messages read between them
_OUTPUTS = ("stream", "display_data", "execute_result")

# What reading a message that no honest kernel sends may raise.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RuntimeError)


class NoKernel(Exception):
    """A kernel did not start."""


class KernelDied(Exception):
    """The kernel's process ended while, or because, a cell ran; the message says how."""


class TimedOut(Exception):
    """A cell ran longer than it may."""


def ending(code: int | None) -> str:
    """How a kernel ended, by the exit code that the sandbox tells.

    Example:
        >>> ending(7), ending(128 + signal.SIGSEGV)
        ('exit with code 7', 'a crash: SIGSEGV')
    """
    number = (code or 0) - 128
    if code is None:
        return "exit, out of memory, or a crash"
    if number == signal.SIGKILL:
        return "killed: out of memory, or by its own code"
    if number == signal.SIGXCPU:
        return "it used more processor time than it may"
    if number == signal.SIGABRT:
        return "aborted, as native code does when it is out of memory"
    if number in set(signal.Signals):
        return f"a crash: {signal.Signals(number).name}"
    return f"exit with code {code}"


class _WarmSpecs(KernelSpecManager):
    """Our kernelspec from the package itself, wherever else it may have been installed."""

    def __init__(self, limits: Mapping[str, int] | None) -> None:
        super().__init__()
        self.limits = dict(limits or {})

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The only one there is."""
        spec = KernelSpec.from_resource_dir(str(provisioner.KERNELSPEC))
        spec.metadata["kernel_provisioner"]["config"] = self.limits
        return spec


class WatchedKernel(RunningKernel):
    """A kernel of this Python in a folder of its own.

    Args:
        cwd: the kernel's folder; a kernel in the sandbox has its own, and cannot see this one.
        env: the kernel's environment variables; in the sandbox only ours of them count.
        sandbox: whether to fork it from the warm process in the sandbox.
        limits: what a kernel in the sandbox may use, as `pytorch_lab.warm.nest.Limits` names it.
    """

    def __init__(
        self,
        cwd: str,
        env: dict[str, str],
        *,
        sandbox: bool = False,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.patient = False
        self.expect("", 0)
        if sandbox:
            self.km = KernelManager(kernel_name="warm", kernel_spec_manager=_WarmSpecs(limits))
            self.km.start_kernel(env=env)
            self.kc = self.km.client()
            self.kc.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES)
            self.kc.context.setsockopt(zmq.RCVHWM, MESSAGES_AHEAD)
            self.kc.start_channels(stdin=False, hb=False, control=False)
        else:
            with open(os.devnull, "w") as nowhere:
                self.km, self.kc = start_new_kernel(
                    kernel_name=CURRENT_ENV_KERNEL_NAME, stderr=nowhere, cwd=cwd, env=env
                )
        try:
            self._watch()
            self._ensure_iopub_up()
        except BaseException:
            self.end()
            raise

    def _watch(self) -> None:
        """Wait for both channels, and for the end, at once."""
        self.poller = zmq.Poller()
        self.poller.register(self.kc.shell_channel.socket, zmq.POLLIN)
        self.poller.register(self.kc.iopub_channel.socket, zmq.POLLIN)
        warm = getattr(self.km.provisioner, "kernel", None)
        self.warm: WarmKernel | None = warm if isinstance(warm, WarmKernel) else None
        self.process: int | None = None
        if self.warm is not None:
            self.poller.register(self.warm.fileno(), zmq.POLLIN)
        elif hasattr(os, "pidfd_open"):
            self.process = os.pidfd_open(getattr(self.km.provisioner, "pid", 0))
            self.poller.register(self.process, zmq.POLLIN)

    def _ensure_iopub_up(self) -> None:
        """Wait until the kernel answers, and until what it shows arrives here."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            asked = self.kc.kernel_info()
            self.await_reply(asked, timeout=START_S)
            try:
                self.await_idle(asked, _LOOK_S)
            except Empty:  # sent before this end was listening
                continue
            return
        raise TimedOut(f"it showed nothing within {START_S} s")

    @property
    def was_cut(self) -> bool:
        """Whether the last cell showed more than is kept."""
        return self.bytes_shown > OUTPUT_BYTES or self.messages_shown > OUTPUT_MESSAGES

    def is_alive(self) -> bool:
        """Whether its process runs."""
        if self.warm is not None:
            return self.warm.poll() is None
        return super().is_alive()

    def expect(self, msg_id: str, seconds: float | None) -> None:
        """Keep what this message makes the kernel show; what an earlier one left is dropped.

        Args:
            msg_id: of what was sent.
            seconds: in which the reply and all that is shown must come.
        """
        self.waits_for = msg_id
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.shown: deque[dict[str, Any]] = deque()
        self.bytes_shown = self.messages_shown = 0
        self.ends_shown: set[str] = set()
        self.asked_to_exit = self.fell_silent = False

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait for the reply to a cell, and keep what it shows meanwhile.

        Raises:
            TimedOut: no reply came in time.
            KernelDied: none will come.
        """
        if self.patient and timeout is not None:
            timeout = max(timeout, PATIENCE_S)
        self.expect(msg_id, timeout)
        while True:
            alive = self.is_alive()  # asked first: what it said before its end is read after
            self._read_iopub()
            if self._read_shell(msg_id):
                return
            if not alive:
                raise KernelDied(self.how_it_ended())
            self._heed_the_clock()
            self._await_anything(_LOOK_S)

    def _heed_the_clock(self) -> None:
        if time.monotonic() >= self.deadline:
            raise TimedOut

    def _await_anything(self, seconds: float) -> None:
        """Until a message came, or the end, or so long."""
        self.poller.poll(int(seconds * 1000))

    def _read_iopub(self) -> None:
        """Keep what has come so far; of a flood only so many at a time, for there is a clock."""
        for _ in range(_AT_ONCE):
            message = self._receive(self.kc.iopub_channel)
            if message is None:
                return
            self._keep(message)

    def _read_shell(self, msg_id: str) -> bool:
        """Whether the reply to this message has come."""
        for _ in range(_AT_ONCE):
            message = self._receive(self.kc.shell_channel)
            if message is None:
                break
            if message["parent_header"].get("msg_id") == msg_id:
                self._read_reply(message["content"])
                return True
        return False

    def _receive(self, channel: Any) -> dict[str, Any] | None:
        """The next message that is there already."""
        return self.kc.session.recv(channel.socket)[1]

    def _read_reply(self, content: dict[str, Any]) -> None:
        self.went_well = content.get("status") == "ok"
        if content.get("status") == "aborted":
            raise KernelDied("it refused to go on")
        payload = content.get("payload") or []
        self.asked_to_exit = any(
            isinstance(part, dict) and part.get("source") == "ask_exit" for part in payload
        )

    def _keep(self, message: dict[str, Any]) -> None:
        """Queue a message for nbval; beyond the bound only the first that say how it ended."""
        if message["parent_header"].get("msg_id") != self.waits_for:
            return  # of a thread that an earlier cell left running
        kind, content = message["msg_type"], message["content"]
        self.messages_shown += 1
        self.bytes_shown += len(str(content))
        if kind == "status" and content.get("execution_state") != "idle":
            return
        if kind in ("status", "error"):
            wanted = kind not in self.ends_shown
            self.ends_shown.add(kind)
        else:
            wanted = kind in _OUTPUTS and not self.was_cut
        if wanted:
            self.shown.append(message)

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message of the cell on iopub, the only stream that nbval itself still reads.

        Raises:
            Empty: none came in time, or none will come.
            TimedOut: the cell's time is over, whatever still comes.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not self.shown:
            alive = self.is_alive()
            self._read_iopub()
            if self.shown:
                break
            if not alive or time.monotonic() >= until:
                self.fell_silent = alive
                raise Empty
            self._heed_the_clock()
            self._await_anything(_LOOK_S)
        return self.shown.popleft()

    def how_it_ended(self) -> str:
        """A few words on the end of a kernel that is dead."""
        if self.fell_silent:
            return f"it fell silent; did it show more than {MESSAGE_BYTES >> 20} MB at once?"
        code = None if self.warm is None else self.warm.poll()
        return ending(code)

    def end(self) -> None:
        """Kill the kernel; also one that is dead already."""
        if (process := getattr(self, "process", None)) is not None:
            os.close(process)
            self.process = None
        if hasattr(self, "km"):
            self.stop()
