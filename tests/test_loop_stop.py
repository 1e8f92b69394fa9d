"""Stop: the turn in progress comes to its end, what was trained is kept, the next lines run."""

import io
import itertools
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from pytorch_lab import loop
from pytorch_lab.loop.stopping import interrupts

LIMIT_S = 120  # for a whole process; nothing waits for it when all is well


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Moments by hand: each Stop comes an hour after the one before, unless the test says."""
    hours = itertools.count(1)
    monkeypatch.setattr(interrupts, "clock", lambda: 3600.0 * next(hours))
    monkeypatch.setattr(interrupts, "last_s", -3600.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert interrupts.loops == []


def stop():
    signal.raise_signal(signal.SIGINT)


def quiet(items, label=""):
    return loop.progress(items, label, file=io.StringIO())


def test_the_turn_comes_to_its_end_and_the_next_lines_run():
    turns = []
    for number in (bar := quiet(range(100))):
        if number == 3:
            stop()
        turns.append(number)
    assert turns == [0, 1, 2, 3]
    assert (bar.stopped, bar.done) == (True, 4)


class HalfWay(torch.optim.SGD):
    """Stop comes when one parameter has moved and the other has not."""

    @torch.no_grad()
    def step(self):
        for place, parameter in enumerate(self.param_groups[0]["params"]):
            if place == 1:
                stop()
            parameter -= 1.0


def test_no_update_is_left_half_done():
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3)]
    optimizer = HalfWay(parameters, lr=1.0)
    for _ in (bar := quiet(range(5))):
        optimizer.step()
    assert bar.stopped
    assert [p.tolist() for p in parameters] == [[-1.0, -1.0]] * 3


def test_without_the_bar_it_would_be():
    """The twin of the test above: the fault is real."""
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3)]
    with pytest.raises(KeyboardInterrupt):
        HalfWay(parameters, lr=1.0).step()
    assert [p.tolist() for p in parameters] == [[-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]


def test_loops_around_it_end_too():
    seen = []
    for epoch in (outer := quiet(range(5), "epoch")):
        for batch in (inner := quiet(range(5), "batch")):
            if (epoch, batch) == (1, 2):
                stop()
            seen.append((epoch, batch))
        validated = list(quiet(range(3)))  # begins after the Stop: runs as ever
    assert seen[-1] == (1, 2)
    assert validated == [0, 1, 2]
    assert (outer.stopped, inner.stopped) == (True, True)
    assert (outer.done, inner.done) == (1, 3)


def test_a_stop_after_a_while_ends_what_began_since():
    epochs = []
    for epoch in quiet(range(5)):
        epochs.append(epoch)
        for _ in quiet(range(5)):
            stop()
        for number in (late := quiet(range(5))):
            if number == 1:
                stop()
    assert epochs == [0]
    assert (late.stopped, late.done) == (True, 2)


def test_a_second_stop_in_the_same_turn_raises():
    bar = quiet(range(5))

    def training():
        for _ in bar:
            stop()
            stop()

    with pytest.raises(KeyboardInterrupt):
        training()
    assert (bar.done, bar.stopped) == (0, True)


def test_a_second_stop_within_a_moment_raises(monkeypatch):
    seconds = iter([100.0, 100.9])
    monkeypatch.setattr(interrupts, "clock", lambda: next(seconds))
    first, second = quiet(range(5)), quiet(range(5))

    def training():
        for _ in quiet(range(5)):
            for bar in (first, second):
                for _ in bar:
                    stop()

    with pytest.raises(KeyboardInterrupt):
        training()
    assert (first.done, second.done) == (1, 0)


def test_after_the_loop_it_raises_as_ever():
    for _ in quiet(range(2)):
        pass
    with pytest.raises(KeyboardInterrupt):
        stop()


def test_a_stop_while_the_data_are_fetched_hands_out_no_batch():
    def items():
        yield 1
        stop()
        yield 2

    seen = []
    for number in (bar := quiet(items())):
        seen.append(number)
    assert seen == [1]
    assert (bar.stopped, bar.done) == (True, 1)


def test_after_a_stop_nothing_more_is_fetched():
    items = iter(range(9))
    for _ in quiet(items):
        stop()
    assert next(items) == 1


def test_a_worker_that_the_same_signal_ended_is_no_error():
    def items():
        yield 1
        stop()
        raise RuntimeError("DataLoader worker (pid 1) exited unexpectedly")

    assert list(bar := quiet(items())) == [1]
    assert bar.stopped


def test_a_stop_in_the_last_turn_is_told():
    for number in (bar := quiet(range(3))):
        if number == 2:
            stop()
    assert (bar.stopped, bar.done) == (True, 3)


def test_the_handler_that_was_there_is_asked_the_second_time():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        for _ in (bar := quiet(range(5))):
            stop()
            assert heard == []
            stop()
            assert heard == ["mine"]
        assert (bar.stopped, bar.done) == (True, 1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_loop_in_another_thread_leaves_the_handler_alone():
    seen = []
    work = lambda: seen.extend(signal.getsignal(signal.SIGINT) for _ in quiet(range(2)))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler] * 2


def test_an_ignored_interrupt_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in (bar := quiet(range(3))):
            stop()
        assert (bar.stopped, bar.done) == (False, 3)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_was_set_meanwhile_stays():
    def mine(*_):
        """Somebody else's."""

    for _ in quiet(range(2)):
        signal.signal(signal.SIGINT, mine)
    assert signal.getsignal(signal.SIGINT) is mine
    signal.signal(signal.SIGINT, signal.default_int_handler)


# -------------------------------------------------------------------------- real processes

TRAINING = """
    import itertools, sys, torch
    from torch.utils.data import DataLoader, Dataset
    from pytorch_lab import loop

    class Endless(Dataset):
        def __len__(self):
            return 10**9
        def __getitem__(self, place):
            return torch.ones(4) * (place % 3)

    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    updates, tracked = 0, net.weight.detach().clone()
    loader = DataLoader(Endless(), batch_size=2, num_workers={workers}, persistent_workers={keep})
    for epoch in (outer := loop.progress(range(3), "epoch")):
        for x in (bar := loop.progress(loader, "batch")):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            tracked.add_(net.weight.grad, alpha=-0.01)
            optimizer.step()
            updates += 1
            bar.log(loss=loss)
            if updates == 20:
                print("go", flush=True)
    whole = bool(torch.equal(tracked, net.weight.detach()))
    print("after", outer.stopped, bar.stopped, bar.done == updates, whole, flush=True)
    if {keep}:
        print("again", [x.shape[0] for x in itertools.islice(loader, 3)], flush=True)
"""


def start(workers, keep=False, **options):
    """A training in a process group of its own."""
    program = textwrap.dedent(TRAINING).format(workers=workers, keep=keep)
    return subprocess.Popen(
        [sys.executable, "-c", program], start_new_session=True, stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, **options,
    )  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize(("workers", "keep"), [(0, False), (2, False), (2, True)])
def test_ctrl_c_reaches_every_process_and_the_training_ends_well(workers, keep):
    process = start(workers, keep, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"go\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    out, err = process.communicate(timeout=LIMIT_S)
    assert out.decode().splitlines() == [
        "after True True True True",
        *(["again [2, 2, 2]"] if keep else []),
    ]
    (told,) = err.decode().splitlines()  # one line, no traceback of a worker
    assert "stopped after turn" in told
    assert process.returncode == 0


@pytest.mark.heavy
def test_ctrl_c_in_a_real_terminal():
    """A pseudo-terminal: the key is typed, the line is written over."""
    ours, theirs = os.openpty()
    process = start(0, stdin=theirs, stderr=theirs, preexec_fn=lambda: _own_terminal(theirs))
    os.close(theirs)
    assert process.stdout.readline() == b"go\n"
    os.write(ours, b"\x03")
    out = process.stdout.read()
    shown = b""
    while select.select([ours], [], [], 0)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    process.stdout.close()
    assert process.wait(LIMIT_S) == 0
    assert out.decode().split() == ["after", "True", "True", "True", "True"]
    text = shown.decode().replace("^C", "")  # the terminal's echo of the key
    lines = [part for part in text.replace("\n", "").split("\r") if part]
    assert "stopped after turn" in lines[-1]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text


def _own_terminal(number):
    """Make it the terminal that the process group is controlled by."""
    import fcntl
    import termios

    fcntl.ioctl(number, termios.TIOCSCTTY, 0)


@pytest.mark.heavy
def test_stop_in_a_real_kernel():
    """The notebook's button: the cell ends without an error, and its output was replaced."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        client.execute(textwrap.dedent(TRAINING).format(workers=2, keep=False))
        seen, displays = "", []
        while True:
            message = client.get_iopub_msg(timeout=LIMIT_S)
            kind, content = message["msg_type"], message["content"]
            assert kind != "error", "\n".join(content["traceback"])
            if kind == "stream":
                before, seen = seen, seen + content["text"]
                if "go" in seen and "go" not in before:
                    manager.interrupt_kernel()
            if kind in ("display_data", "update_display_data"):
                displays.append((kind, content["transient"]["display_id"], content["data"]))
            if kind == "status" and content["execution_state"] == "idle" and "after" in seen:
                break
        assert seen.split() == ["go", "after", "True", "True", "True", "True"]
        kinds = [kind for kind, *_ in displays]
        assert kinds[0] == "display_data"
        assert set(kinds[1:]) == {"update_display_data"}
        assert len({display for _, display, _ in displays}) == 1
        last = displays[-1][2]
        assert "stopped after turn" in last["text/html"]
        assert "stopped after turn" in last["text/plain"]
        assert "<svg" in last["text/html"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
