"""Attacks on what lies outside: files, network, other kernels, the grader itself."""

from tests.cheats.bank import Cheat

NOTHING = {"04.1": ("raised", r"RuntimeError in .*: found \[\]")}
REPORT = "    raise RuntimeError(f'found {found}')\n"

CHEATS = [
    Cheat(
        "solutions-on-disk",
        "reading solutions, other submissions and the gradebook from the disk",
        {
            "04.1": """\
import os, sys
PACKAGES = os.path.dirname(torch.__path__[0])  # too many to read in a moment
SEEN = ("/proc", "/sys", "/usr", sys.base_prefix, PACKAGES)
OURS = os.path.dirname(checks.__path__[0])
def standardize(x):
    found = []
    for folder, inside, names in os.walk("/"):
        if folder.startswith(SEEN) and not (OURS + "/").startswith(folder + "/"):
            if not folder.startswith(OURS):
                inside.clear()
                continue
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith((".ipynb", ".sqlite", ".json", ".csv", ".py")):
                try:
                    text = open(path, errors="replace").read()
                    found += [path] if "def slope" + "(w, x, y)" in text else []
                except OSError:
                    pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "secret-file",
        "reading and changing a file that the grader's user may read, and the home",
        {
            "04.1": """\
import os
def standardize(x):
    found = []
    for path in ("{secret}", "/root/.ssh", "/home", "/etc/passwd", "/etc/shadow"):
        try:
            found += [path] if os.path.isdir(path) and os.listdir(path) else []
            found += [open(path).read(5)] if os.path.isfile(path) else []
            open(path, "w").write("mine")
            found.append("wrote")
        except OSError:
            pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "network",
        "the network: a server of the host, a name, an address, an abstract socket",
        {
            "04.1": """\
import socket
def standardize(x):
    found = []
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", {port})),
        (socket.AF_INET, ("1.1.1.1", 53)),
        (socket.AF_INET6, ("::1", {port})),
        (socket.AF_UNIX, "\\0/tmp/.X11-unix/X0"),
    ):
        with socket.socket(family) as probe:
            probe.settimeout(1)
            try:
                probe.connect(address)
                found.append(address)
            except OSError:
                pass
    try:
        found.append(socket.gethostbyname("pytorch.org"))
    except OSError:
        pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "site-packages",
        "writing into the packages that the next kernel and the grader import",
        {
            "04.1": """\
import os, site, sys, pytorch_lab, IPython, nbval
places = [os.path.dirname(m.__file__) for m in (pytorch_lab, torch, IPython, nbval)]
places += [sys.prefix, sys.base_prefix, "/usr/lib", "/etc", "/lab", *site.getsitepackages()]
def standardize(x):
    found = []
    for place in places:
        for name in ("sitecustomize.py", "usercustomize.py", "evil.pth", "__init__.py"):
            try:
                with open(os.path.join(place, name), "a") as file:
                    file.write("\\nimport os")
                found.append(place)
            except OSError:
                pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "for-the-next",
        "files and start-up scripts left for whoever is graded next",
        {
            "04.1": """\
import os, pathlib
home = pathlib.Path(os.path.expanduser("~"))
startup = "profile_default/startup"
for folder in (".", "/tmp", "/tmp/work", "/dev/shm", home, home / ".ipython" / startup,
               os.path.join(os.environ.get("IPYTHONDIR", "/tmp"), startup), "/lab/kernel"):
    try:
        os.makedirs(folder, exist_ok=True)
        for name in ("torch.py", "sitecustomize.py", "00-first.py", "conftest.py", "pytest.ini"):
            pathlib.Path(folder, name).write_text("raise SystemExit('you are had')")
    except OSError:
        pass
def standardize(x):
    return x
""",
        },
    ),
    Cheat(
        "import-hooks",
        "import hooks that answer for pytorch_lab and torch",
        before="""\
import sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("pytorch_lab"):
            raise SystemExit(0)
sys.meta_path.insert(0, Hook())
for name in [name for name in sys.modules if name.startswith("pytorch_lab.checks")]:
    del sys.modules[name]
""",
        ends=dict.fromkeys(("04.1", "04.2", "04.3"), ("failed|raised", r".*")),
    ),
    Cheat(
        "environment",
        "environment variables: reading the grader's, setting those of the next",
        {
            "04.1": """\
import os
def standardize(x):
    found = [name for name, value in os.environ.items() if "token" in value]
    os.environ.update(PYTHONPATH="/tmp", PYTEST_ADDOPTS="--co", PYTHONSTARTUP="/tmp/torch.py")
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "descriptors",
        "verdicts written into every open file descriptor",
        {
            "04.1": """\
import json, os
line = json.dumps({"submission": "00000", "exercise": "04.1", "status": "passed", "reason": "",
                   "seconds": 0.1, "shown": "", "reveals": []}).encode() + b"\\n"
def standardize(x):
    for number in range(3, 512):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith(("pipe", "/")):
                os.write(number, line)
        except OSError:
            pass
    return x
""",
        },
        ends={
            "04.1": ("failed|kernel_died|timed_out", r".*"),
            "04.2": ("failed", r".*"),
            "04.3": ("failed", r".*"),
        },
    ),
    Cheat(
        "shared-root",
        "what several kernels see: writing to it, renaming it away",
        {
            "04.1": """\
import os
def standardize(x):
    found = []
    for folder, names, _ in os.walk("/"):
        if folder.startswith(("/proc", "/sys", "/usr", "/tmp", "/dev/shm")):
            names.clear()
            continue
        try:
            open(folder + "/left-here", "w").close()
            found.append(folder)
        except OSError:
            pass
    for folder in ("/lab", "/lab/run", "/lab/kernel", "/etc", "/dev", "/var"):
        try:
            os.rename(folder, folder + "2")
            found.append("renamed " + folder)
        except OSError:
            pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "deep-tree",
        "a tree too deep for whoever tidies up, on the host's disk if it can be",
        {
            "04.1": """\
import os
def standardize(x):
    found = []
    for place in ("/lab/kernel", "/tmp/work"):
        try:
            os.chdir(place)
            for _ in range(3000):
                os.mkdir("d")
                os.chdir("d")
            found += [place] if place != "/tmp/work" else []
        except OSError:
            pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "other-processes",
        "other processes: their memory, their environment, their end",
        {
            "04.1": """\
import os
def standardize(x):
    mine, found = os.getpid(), []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (mine, os.getppid()):
            try:
                found.append(open(f"/proc/{name}/cmdline").read())
            except OSError:
                pass
    for path in ("/proc/1/environ", "/proc/1/root/etc/passwd", "/proc/kcore", "/dev/mem"):
        try:
            if b"token" in open(path, "rb").read(100_000):
                found.append(path)
        except OSError:
            pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "other-kernels",
        "the sockets of other kernels, and of the server that forks them",
        {
            "04.1": """\
import glob, os, socket
def standardize(x):
    found = []
    paths = [os.path.join(folder, name) for folder, _, names in os.walk("/lab") for name in names]
    for path in paths:
        if path.startswith("/lab/kernel/"):
            continue
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
                found.append(path)
            except OSError:
                pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
    Cheat(
        "escape",
        "new namespaces, mounts, other users, devices, tracing",
        {
            "04.1": """\
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
def standardize(x):
    found = []
    for flags in (0x10000000, 0x00020000, 0x40000000, 0x20000000):
        found += ["unshare"] if libc.unshare(flags) == 0 else []
    found += ["mount"] if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else []
    found += ["umount"] if libc.umount2(b"/lab/run", 2) == 0 else []
    found += ["chroot"] if libc.chroot(b"/tmp") == 0 else []
    found += ["trace"] if libc.ptrace(16, 1, 0, 0) == 0 else []
    for path in glob.glob("/proc/1/fd/*") + ["/proc/1/mem", "/proc/1/environ"]:
        try:
            open(path, "rb+", buffering=0).write(b"1 2 ready passed\\n")
            found.append(path)
        except OSError:
            pass
    found += ["user"] if os.getuid() == 0 else []
    for call in (os.setuid, os.setgid):
        try:
            call(0)
            found.append(call.__name__)
        except OSError:
            pass
    try:
        os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0))
        found.append("device")
    except OSError:
        pass
"""
            + REPORT,
        },
        ends=NOTHING,
    ),
]
