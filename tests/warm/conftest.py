"""Kernels of one warm worker, with a bubblewrap around it that is really there."""

import contextlib

import pytest
from jupyter_client import BlockingKernelClient

from pytorch_lab.warm.worker import Worker


class Asked:
    """A kernel and its client: `asked("print(1)")` gives what the cell showed."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.client = BlockingKernelClient()
        self.client.load_connection_info(kernel.connection)
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def __call__(self, code, timeout=60):
        shown = []

        def keep(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"])
            elif message["msg_type"] == "error":
                shown.append(f"{content['ename']}: {content['evalue']}")

        self.client.execute_interactive(code, output_hook=keep, timeout=timeout)
        return "".join(shown).strip()

    def start(self, code):
        """Send a cell, and do not wait for its end."""
        self.client.execute(code, stop_on_error=False)  # else the next cell may be aborted too

    def close(self):
        self.client.stop_channels()
        self.kernel.kill()


@pytest.fixture(scope="session")
def worker():
    with Worker() as warm:
        yield warm


@pytest.fixture
def kernels(worker):
    """`kernels()` is a fresh kernel, `kernels(memory_bytes=…)` one with other limits."""
    from pytorch_lab.warm.nest import Limits

    with contextlib.ExitStack() as stack:

        def fresh(**limits):
            asked = Asked(worker.kernel(limits=Limits(**limits)))
            stack.callback(asked.close)
            return asked

        yield fresh


@pytest.fixture
def kernel(kernels):
    return kernels()
