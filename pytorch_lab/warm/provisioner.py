"""How jupyter_client starts a warm kernel: the kernelspec `pytorch-lab-grader` names this class.

    pytest --nbval-lax --nbval-kernel-name pytorch-lab-grader submission.ipynb
    jupyter nbconvert --execute --ExecutePreprocessor.kernel_name=pytorch-lab-grader …

One process has one warm worker, started with its first kernel and ended with the process; or, if
`PYTORCH_LAB_WARM` names the folder of a worker that another process has, that one. The
kernel's folder is its own: what lies beside the notebook isn't there.
"""

import asyncio
import atexit
import os
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from pytorch_lab.warm.nest import Limits
from pytorch_lab.warm.worker import ATTACH, Door, WarmKernel, Worker

KERNELSPEC = Path(__file__).parent / "kernelspec"
_MOMENT_S = 0.05
_worker: Worker | None = None


def door() -> Door:
    """Where to ask for kernels; a new worker where the old has died."""
    global _worker
    if given := os.environ.get(ATTACH):
        return Door(Path(given))
    if _worker is not None and not _worker.is_alive():
        _worker.close()
        _worker = None
    if _worker is None:
        _worker = Worker()
        atexit.register(_worker.close)
    return _worker


class WarmProvisioner(KernelProvisionerBase):
    """A kernel forked from the warm worker, in the sandbox.

    The kernelspec's `config` may hold the fields of `Limits`, such as `memory_bytes`.
    """

    kernel: WarmKernel | None = None

    def __init__(self, **kwargs: Any) -> None:
        self.limits = Limits(**{k: kwargs.pop(k) for k in list(kwargs) if k in _LIMITS})
        super().__init__(**kwargs)

    @property
    def has_process(self) -> bool:
        """Whether there is a kernel, be it dead or alive."""
        return self.kernel is not None

    async def poll(self) -> int | None:
        """None while it lives, then its exit code."""
        return 0 if self.kernel is None else self.kernel.poll()

    async def wait(self) -> int | None:
        """Wait for its end."""
        while await self.poll() is None:
            await asyncio.sleep(_MOMENT_S)
        code = await self.poll()
        self.kernel = None
        return code

    async def send_signal(self, signum: int) -> None:
        """SIGINT interrupts; anything that ends a process ends all of it."""
        if self.kernel is not None:
            self.kernel.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """End it at once."""
        if self.kernel is not None:
            self.kernel.kill()

    async def terminate(self, restart: bool = False) -> None:
        """The same: what it holds is lost in any case."""
        await self.kill(restart)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Fork a kernel; of `kwargs` nothing but `env` counts."""
        own = {k: v for k, v in kwargs.get("env", {}).items() if k.startswith("PYTORCH_LAB_")}
        self.kernel = door().kernel(limits=self.limits, env=own)
        info: Any = self.kernel.connection | {"key": self.kernel.connection["key"].encode()}
        self.connection_info = info
        return info

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """There is no command to prepare."""
        return await super().pre_launch(cmd=[], **kwargs)

    async def cleanup(self, restart: bool = False) -> None:
        """Leave nothing behind."""
        await self.kill(restart)


_LIMITS = Limits.__dataclass_fields__.keys()
