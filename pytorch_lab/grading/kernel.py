"""nbval's kernel, watched: a death is noticed at once, a timeout ends it, output is bounded.

nbval waits for the reply of a cell and only then reads what the cell showed; it cannot tell a dead
kernel from a slow one. This one reads both channels while it waits, and looks every moment whether
the kernel still lives.
"""

import os
import time
from collections import deque
from queue import Empty
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel, start_new_kernel

from pytorch_lab.warm import provisioner

OUTPUT_BYTES = 1_000_000  # kept of one cell
PATIENCE_S = 300  # for cells that are not the student's
_MOMENT_S = 0.05
_LOOK_S = 0.25


class KernelDied(Exception):
    """The kernel's process ended while, or because, a cell ran."""


class TimedOut(Exception):
    """A cell ran longer than it may."""


class _WarmSpecs(KernelSpecManager):
    """Our kernelspec from the package itself, wherever else it may have been installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The only one there is."""
        return KernelSpec.from_resource_dir(str(provisioner.KERNELSPEC))


class WatchedKernel(RunningKernel):
    """A kernel of this Python in a folder of its own.

    Args:
        cwd: the kernel's folder; a kernel in the sandbox has its own, and cannot see this one.
        env: the kernel's environment variables; in the sandbox only ours of them count.
        sandbox: whether to fork it from the warm process in the sandbox.
    """

    def __init__(self, cwd: str, env: dict[str, str], *, sandbox: bool = False) -> None:
        self.shown: deque[dict[str, Any]] = deque()
        self.bytes_shown = 0
        self.asked_to_exit = False
        self.waits_for = ""
        self.patient = False
        if sandbox:
            self.km = KernelManager(kernel_name="warm", kernel_spec_manager=_WarmSpecs())
            self.km.start_kernel(env=env)
            self.kc = self.km.client()
            self.kc.start_channels()
        else:
            with open(os.devnull, "w") as nowhere:
                self.km, self.kc = start_new_kernel(
                    kernel_name=CURRENT_ENV_KERNEL_NAME, stderr=nowhere, cwd=cwd, env=env
                )
        try:
            self._ensure_iopub_up()
        except BaseException:
            self.end()
            raise

    @property
    def was_cut(self) -> bool:
        """Whether the last cell showed more than is kept."""
        return self.bytes_shown > OUTPUT_BYTES

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send a cell; what an earlier one left unread is dropped."""
        self.shown.clear()
        self.bytes_shown = 0
        self.asked_to_exit = False
        return super().execute_cell_input(cell_input, allow_stdin)

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait for the reply to a cell, and keep what it shows meanwhile.

        Raises:
            TimedOut: no reply came in time.
            KernelDied: none will come.
        """
        self.waits_for = msg_id
        if self.patient and timeout is not None:
            timeout = max(timeout, PATIENCE_S)
        started = looked = time.monotonic()
        while True:
            while self.kc.iopub_channel.msg_ready() and time.monotonic() < looked + _LOOK_S:
                self._keep(self.kc.get_iopub_msg(timeout=0))
            try:
                message = self.kc.get_shell_msg(timeout=_MOMENT_S)
            except Empty:
                message = None
            if message and message["parent_header"].get("msg_id") == msg_id:
                self._read_reply(message["content"])
                return
            now = time.monotonic()
            if now >= looked + _LOOK_S:
                looked = now
                if not self.is_alive():
                    raise KernelDied
                if timeout is not None and now >= started + timeout:
                    raise TimedOut

    def _read_reply(self, content: dict[str, Any]) -> None:
        if content.get("status") == "aborted":
            raise KernelDied
        payload = content.get("payload") or []
        self.asked_to_exit = any(
            isinstance(part, dict) and part.get("source") == "ask_exit" for part in payload
        )

    def _keep(self, message: dict[str, Any]) -> None:
        """Queue a message for nbval; beyond the bound only those that say how the cell ended."""
        if message["parent_header"].get("msg_id") != self.waits_for:
            return  # of a thread that an earlier cell left running
        content = message["content"]
        if message["msg_type"] == "stream":
            self.bytes_shown += len(str(content.get("text", "")))
        elif message["msg_type"] in ("display_data", "execute_result"):
            self.bytes_shown += sum(len(str(part)) for part in content.get("data", {}).values())
        elif message["msg_type"] not in ("status", "error"):
            return
        if message["msg_type"] in ("status", "error") or not self.was_cut:
            self.shown.append(message)

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message, those kept by `await_reply` first."""
        if stream == "iopub" and self.shown:
            return self.shown.popleft()
        if stream == "iopub":
            self._keep(super().get_message(stream, timeout=timeout))
            return self.shown.popleft() if self.shown else {**_NOTHING}
        return super().get_message(stream, timeout=timeout)

    def end(self) -> None:
        """Kill the kernel; also one that is dead already."""
        if hasattr(self, "km"):
            self.stop()


_NOTHING = {"msg_type": "status", "content": {}, "parent_header": {}}
