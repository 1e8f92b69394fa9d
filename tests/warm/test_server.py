"""The server in this process, without a sandbox: what it tells where no kernel can be made."""

import json
import socket
import sys

import pytest

from pytorch_lab.warm import nest, sandbox
from pytorch_lab.warm.server import Server

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="clone is Linux's")


def test_a_system_without_namespaces_is_told_and_does_not_end_the_server(
    monkeypatch, tmp_path, capsys
):
    asked = []

    def none_left(run, *_):
        asked.append(run)
        raise OSError(28, "No space left on device")  # as clone says when there are too many

    monkeypatch.setattr(nest, "fork", none_left)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        server = Server(listening)
        for name in ("k1", "k2"):
            with socket.socket(socket.AF_UNIX) as host:
                host.connect(str(tmp_path / "s"))
                host.sendall(json.dumps({"kernel": name}).encode() + b"\n")
                for _ in ("it is accepted", "it is heard"):
                    for key, _ in server.selector.select(timeout=10):
                        key.data()
                assert json.loads(host.recv(100)) == {"exit": 1}
                assert host.recv(100) == b""  # and the connection is closed
        assert [key.fileobj for key in server.selector.get_map().values()] == [listening]
        server.selector.close()
    assert asked == [nest.RUN / "k1", nest.RUN / "k2"]
    assert capsys.readouterr().err.count("no namespaces for a kernel: No space left") == 2


def test_a_machine_whose_call_is_not_known_is_told(monkeypatch):
    assert nest.can_fork()
    monkeypatch.setattr("platform.machine", lambda: "s390x")
    assert not nest.can_fork()
    assert "expected an x86-64 or ARM machine for the sandbox, got s390x" in sandbox.why_not()
