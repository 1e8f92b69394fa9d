"""A kernel in the sandbox: warm, alone, bounded, and gone when it is over."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytorch_lab import course, warm
from pytorch_lab.errors import LabError
from pytorch_lab.warm import nest
from tests.processes import descendants, gone, until, with_argument

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="bubblewrap and namespaces are Linux's"
)
SECONDS = 20  # more than any end takes on a busy machine


# ------------------------------------------------------------------------------------------- warm


def test_torch_and_what_an_optimizer_imports_are_there_before_the_first_cell(kernel):
    wanted = ("torch", "torch._dynamo", "numpy", "matplotlib.pyplot")
    code = f"import sys; print(all(n in sys.modules for n in {wanted}))"
    assert kernel(code) == "True"


def test_a_kernel_shares_what_it_does_not_change(kernel):
    """A collection, or a look at every module, would copy all that torch's import has made."""
    assert kernel("import gc; print(gc.get_freeze_count() > 100_000)") == "True"
    code = """
import gc
gc.collect()
lines = dict(l.split(":") for l in open("/proc/self/smaps_rollup").read().splitlines()[1:])
print(int(lines["Private_Dirty"].split()[0]) < 60_000)
"""
    assert kernel(code) == "True"


@pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (6, 1)
    or not Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="no large pages here",
)
def test_what_all_kernels_share_lies_in_large_pages(kernel):
    code = """
lines = dict(l.split(":") for l in open("/proc/self/smaps_rollup").read().splitlines()[1:])
print(int(lines["AnonHugePages"].split()[0]) > 20_000)
"""
    assert kernel(code) == "True"


def test_it_is_an_ordinary_kernel(kernel):
    assert kernel("x = 1") == ""
    assert kernel("print(x + 1)") == "2"
    assert kernel("1 / 0") == "ZeroDivisionError: division by zero"
    assert kernel("%pwd\nimport os; print(os.getcwd())") == "/tmp/work"
    assert kernel("import torch; print(torch.get_num_threads())") == "1"
    assert kernel("import os; print(os.environ['FORCE_COLOR'], __name__)") == "1 __main__"
    assert kernel("ip = get_ipython(); print(ip.kernel.shell is ip is ip.parent.shell)") == "True"
    assert kernel("%store") == "Stored variables and their in-db values:"


def test_kernels_begin_alike_and_change_nothing_for_each_other(kernels):
    first = kernels()
    first("import torch, builtins; torch.manual_seed(3); torch.allclose = None; builtins.sum = 0")
    first("open('/tmp/left', 'w').write('x')")
    second = kernels()
    assert second("import torch; print(torch.allclose is None, sum([1]))") == "False 1"
    assert second("import os; print(os.path.exists('/tmp/left'))") == "False"


def test_dataloader_workers_run(kernel):
    code = """
import torch
from torch.utils.data import DataLoader
print([b.tolist() for b in DataLoader(torch.arange(4), batch_size=2, num_workers=2)])
"""
    assert kernel(code) == "[[0, 1], [2, 3]]"


# ------------------------------------------------------------------------------------------ alone


def test_no_other_process_is_seen(kernels):
    kernels()
    code = "import os; print(sorted(p for p in os.listdir('/proc') if p.isdigit()))"
    assert kernels()(code) == "['1', '2']"


def test_no_file_of_the_host_is_seen(kernel, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("answer")
    asked = "import os; print([os.path.exists(p) for p in {}])"
    for path in (secret, Path.home() / ".bashrc", course.root() / "exercises", "/etc/passwd"):
        assert kernel(asked.format([str(path)])) == "[False]", path


def test_other_kernels_folders_are_out_of_reach(kernels):
    kernels()
    second = kernels()
    assert second("import os; print(os.listdir('/lab/run'))") == "[]"
    assert "Read-only" in second("open('/lab/run/x', 'w')")


def test_nothing_of_the_system_can_be_changed(kernel):
    for place in ("torch.__file__", "'/usr/x'", "'/x'", "'/dev/x'"):
        shown = kernel(f"import torch; open({place}, 'a')")
        assert "Read-only" in shown or "Permission denied" in shown, place


def test_no_folder_of_the_host_is_left(kernel):
    """Not even the one in which its sockets were bound: that would be the host's disk."""
    assert kernel("import os; print(os.listdir('/lab/kernel'))") == "[]"
    assert "Read-only" in kernel("open('/lab/kernel/x', 'w')")
    mounts = kernel("print(open('/proc/self/mountinfo').read())")
    assert kernel.kernel.folder.name not in mounts


def test_only_its_own_disk_can_be_written(kernel):
    """Whoever the user is: the flags of the mounts, not the owners of the folders."""
    code = """
shared = set()
for line in open("/proc/self/mountinfo"):
    path, options = line.split()[4:6]
    (shared.add if options.startswith("rw") else shared.discard)(path)
print(sorted(shared))
"""
    assert kernel(code) == "['/dev/pts', '/dev/shm', '/proc', '/tmp']"


def test_the_only_network_is_its_own_loopback(kernel):
    code = "import socket; socket.create_connection(('127.0.0.1', {}), 2)"
    listening = socket_of_the_host()
    try:
        assert "refused" in kernel(code.format(listening.getsockname()[1]))
    finally:
        listening.close()
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
    assert "unreachable" in kernel(code)


def socket_of_the_host():
    import socket

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    return listening


def test_no_capability_and_no_way_to_one(kernel):
    read = "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')])"
    assert kernel(read) == str(["0" * 16] * 5)
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    assert kernel(code) == "-1"
    assert kernel("import os; print(os.getuid() != 0)") == "True"
    assert kernel("import ctypes; print(ctypes.CDLL(None).umount2(b'/lab/run', 2))") == "-1"


def test_no_door_to_the_server_is_left_open(kernel):
    """An open file of the server would be a way to the kernels of others."""
    code = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/1/fd')])"
    assert "socket" not in kernel(code)


# ---------------------------------------------------------------------------------------- bounded


def test_memory(kernels):
    kernel = kernels(memory_bytes=1 << 30)
    assert "allocate memory" in kernel("import torch; torch.zeros(10**9)")
    assert kernel("print(torch.zeros(10**7).sum().item())") == "0.0"
    assert "MemoryError" in kernel("x = bytearray(3 << 30)")


def test_memory_of_all_processes_together(kernels):
    kernel = kernels(memory_bytes=300 << 20)
    word = f"held-{os.getpid()}"
    hold = "import sys; x = bytearray(200 << 20); sys.stdin.read()"
    kernel.start(f"""
import subprocess, sys
for _ in range(6):
    subprocess.Popen([sys.executable, "-c", {hold!r}, {word!r}], stdin=subprocess.PIPE)
""")
    assert kernel.kernel.wait(SECONDS) == 128 + signal.SIGKILL
    until(lambda: not with_argument(word))


def test_pages_that_processes_share_count_once(kernels):
    code = """
import os
import torch
held = torch.ones(30_000_000)  # 120 MB
ready, said = os.pipe()
for _ in range(12):
    if os.fork() == 0:
        os.write(said, b"x")
        os.read(os.pipe()[0], 1)
for _ in range(12):
    os.read(ready, 1)
import time
time.sleep(0.5)  # five looks at it
print("alive")
"""
    assert kernels(memory_bytes=700 << 20)(code) == "alive"


@pytest.mark.parametrize(
    "call", ["memfd_create(b'a', 0)", "shmget(0, 1 << 20, 0o1600)", "msgget(0, 0o1600)"]
)
def test_memory_that_belongs_to_no_process_is_refused(kernel, call):
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.{call}, os.strerror(ctypes.get_errno()))
"""
    assert kernel(code) == "-1 Function not implemented"


def test_processes(kernels):
    code = """
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError as error:
    print(type(error).__name__, n < 60)
"""
    assert kernels(processes=64)(code) == "BlockingIOError True"


def test_the_size_of_a_file_and_of_the_disk(kernels):
    kernel = kernels(file_bytes=1 << 20, disk_bytes=4 << 20)
    assert "File too large" in kernel("open('/tmp/a', 'wb').write(bytes(2 << 20))")
    fill = "for n in range(9): open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))"
    assert "No space left" in kernel(fill)
    assert "No space left" in kernel(fill.replace("/tmp", "/dev/shm"))


def test_processor_time(kernels):
    kernel = kernels(cpu_s=1)
    kernel.start("while True: pass")
    assert kernel.kernel.wait(SECONDS) is not None


# ------------------------------------------------------------------------------------------- gone


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL),
        ("import os; os.abort()", 128 + signal.SIGABRT),
        ("import ctypes; ctypes.string_at(0)", 128 + signal.SIGSEGV),
    ],
)
def test_a_death_is_told(kernel, code, exit_code):
    assert kernel.kernel.poll() is None
    kernel.start(code)
    assert kernel.kernel.wait(SECONDS) == exit_code


def test_a_death_of_all_at_once_is_told(worker, kernel):
    """As when the machine is out of memory, and its system takes init."""
    before = set(descendants(worker.process.pid))
    other = worker.kernel()
    (init, _) = sorted(set(descendants(worker.process.pid)) - before)
    os.kill(init, signal.SIGKILL)
    assert other.wait(SECONDS) == 128 + signal.SIGKILL
    assert kernel("print('alive')") == "alive"


def test_an_interrupt_reaches_the_cell(kernel):
    kernel("print(1)")
    kernel.start("print('on', flush=True)\nwhile True: pass")
    while kernel.client.get_iopub_msg(timeout=SECONDS)["content"].get("text") != "on\n":
        pass
    kernel.kernel.send_signal(signal.SIGINT)
    reply = kernel.client.get_shell_msg(timeout=SECONDS)["content"]
    assert reply["ename"] == "KeyboardInterrupt"
    assert kernel("print('alive')").endswith("alive")


def test_what_hid_in_a_session_of_its_own_dies_with_the_kernel(kernel):
    word = f"hidden-{os.getpid()}"
    kernel(f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {word!r}],
                 start_new_session=True)
""")
    until(lambda: with_argument(word))
    kernel.kernel.kill()
    until(lambda: not with_argument(word))
    assert not kernel.kernel.folder.exists()


def test_everything_dies_with_the_process_that_asked(tmp_path):
    """Killed as hard as can be: no warm process, no kernel."""
    script = tmp_path / "asks.py"
    script.write_text("""
import os, sys, time
from pytorch_lab.warm.worker import Worker
worker = Worker()
kernel = worker.kernel()
print(worker.process.pid, flush=True)
time.sleep(600)
""")
    asking = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    warm = int(asking.stdout.readline())
    family = [warm, *descendants(warm)]
    assert len(family) >= 4  # bubblewrap, the server, init, the kernel
    asking.kill()
    asking.wait()
    asking.stdout.close()
    until(lambda: gone(family))


def test_an_interpreter_below_tmp_is_not_covered_by_the_kernels_own(tmp_path):
    """A clone in /tmp: the package lies where each kernel has an empty disk of its own."""
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        shutil.copytree(Path(warm.__file__).parents[1], home / "pytorch_lab")
        script = home / "asks.py"
        script.write_text("""
from pytorch_lab.warm.worker import Worker
with Worker(modules=[]) as worker:
    kernel = worker.kernel()
    print(kernel.poll(), kernel.folder.name != "")
    kernel.kill()
""")
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=home
        )
        assert done.stdout == "None True\n", done.stderr
    finally:
        shutil.rmtree(home)


def test_why_no_kernel_came_is_said(worker):
    with pytest.raises(LabError, match=r"expected a kernel within .* the warm Python said"):
        worker.kernel(limits=nest.Limits(disk_bytes=-1))
