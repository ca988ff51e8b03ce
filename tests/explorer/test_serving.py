"""The verb: an address, a port, and an end."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest


@pytest.fixture
def taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_taken_port_says_so(run, taken):
    code, out, err = run("explore", "--no-browser", "--port", taken)
    assert (code, out) == (2, "")
    assert f"port {taken} cannot be had" in err
    assert "--port" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none(run, port):
    code, _, err = run("explore", "--no-browser", f"--port={port}")
    assert code == 2
    assert "port" in err


def listening(port):
    """Local addresses, as the kernel lists them, that listen on a port."""
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as lines:
            for line in list(lines)[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.rpartition(":")[2], 16) == port:
                    found.add(address.rpartition(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks the kernel of Linux")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_on_loopback_until_it_is_stopped(stop):
    code = "import sys; from offrecord.cli import run; run()"
    command = [sys.executable, "-c", code, "explore", "--no-browser", "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = json.loads(server.stdout.readline())["address"]
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", said)[1])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as page:
            assert b"Offrecord explorer" in page.read()
        assert listening(port) == {"0100007F"}
        threads = Path(f"/proc/{server.pid}/task").glob("*/children")
        children = [pid for one in threads for pid in one.read_text(encoding="ascii").split()]
        assert children
        server.send_signal(stop)
        _, err = server.communicate(timeout=60)
        assert server.returncode in (0, 128 + stop)
        assert err == ""
        for _ in range(100):  # what computed for it goes, too
            left = [pid for pid in children if Path(f"/proc/{pid}/stat").exists()]
            if not left:
                break
            time.sleep(0.1)
        assert not left
    finally:
        server.kill()
        server.communicate()


def test_nothing_is_imported_from_the_folder_it_is_started_in(tmp_path):
    """Who explores where downloads lie runs none of them."""
    mark = tmp_path / "was run"
    for name in ("json", "offrecord", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')")
    program = (
        "from offrecord.explorer.workers import Worker;"
        " print(Worker(60.0).ask('regions', {}).status)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["200"]
    assert not mark.exists()
