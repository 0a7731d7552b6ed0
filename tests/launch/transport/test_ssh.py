"""A cluster behind ssh: a real server, and each way that it can fail."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from infx.domain.errors import InfraError
from infx.launch.transport import ssh as ssh_module
from infx.launch.transport.ssh import SshTransport
from infx.launch.transport.ssh_master import Master
from tests.launch.ssh_fixture import Sshd, make_key

pytestmark = pytest.mark.slow


@pytest.fixture
def there(sshd: Sshd, tmp_path: Path) -> Iterator[SshTransport]:
    transport = SshTransport(sshd.host, options=sshd.options, control_dir=tmp_path / "control")
    yield transport
    transport.close()


@pytest.fixture
def without_rsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_module.shutil, "which", lambda name: None)


def masters(folder: Path) -> list[psutil.Process]:
    """Masters name their socket in their title."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if line.startswith("ssh: ") and str(folder) in line and "[mux]" in line:
            found.append(process)
    return found


def once(happened: Callable[[], object], act: Callable[[], object]) -> None:
    """Do something in the middle of the call that comes next."""

    def wait() -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until and not happened():
            time.sleep(0.02)
        act()

    threading.Thread(target=wait).start()


def refused(transport: SshTransport, limit_s: float = 30.0) -> InfraError:
    with pytest.raises(InfraError) as caught:
        transport.run("true", limit_s=limit_s)
    return caught.value


def test_an_answer_is_exit_code_stdout_and_stderr(there: SshTransport, sshd: Sshd) -> None:
    answer = there.run("id -un; echo err >&2; exit 255")
    assert (answer.code, answer.out, answer.err) == (255, f"{sshd.user}\n", "err\n")
    assert there.run("sh -c 'kill -9 $$'").code == 137


def test_text_of_any_kind_comes_whole(there: SshTransport) -> None:
    assert there.run("echo 'ü $HOME' \"it's\"").out == "ü $HOME it's\n"
    assert there.run("printf 'a\\377b'").out == "a�b"
    assert there.run("cat\necho after").out == "after\n"
    assert len(there.run("head -c 10000000 /dev/zero | tr '\\0' x").out) == 10_000_000


def test_a_login_shell_may_print(sshd: Sshd, there: SshTransport, tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("another's start-up files are not to be written")
    (sshd.home / ".bashrc").write_text("echo welcome; echo hello >&2\n")
    try:
        answer = there.run("echo out; echo err >&2")
        assert (answer.out, answer.err) == ("out\n", "err\n")
        (tmp_path / "a").write_text("1")
        there.push(tmp_path, str(sshd.home), ["a"])
        there.pull(str(sshd.home), tmp_path / "to", ["a"])
        assert (tmp_path / "to" / "a").read_text() == "1"
    finally:
        (sshd.home / ".bashrc").unlink()


@pytest.mark.alone
def test_calls_share_one_connection(
    there: SshTransport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    there.run("true")
    first_s = time.monotonic() - started
    started = time.monotonic()
    for _ in range(20):
        there.run("true")
    each_s = (time.monotonic() - started) / 20
    with capsys.disabled():
        print(f"\nssh: first call {first_s * 1e3:.0f} ms, then {each_s * 1e3:.1f} ms each")
    assert each_s < first_s
    (master,) = masters(tmp_path)
    there.close()
    master.wait(5)
    assert not list((tmp_path / "control").iterdir())
    assert (tmp_path / "control").stat().st_mode & 0o777 == 0o700


def test_what_stays_in_the_background_is_not_waited_for(there: SshTransport) -> None:
    started = time.monotonic()
    answer = there.run("sleep 60 & echo $!")
    assert time.monotonic() - started < 5
    assert there.run(f"kill {answer.out}").code == 0  # it was left alone


def test_at_its_limit_a_call_ends_and_the_next_one_works(there: SshTransport, sshd: Sshd) -> None:
    with pytest.raises(InfraError) as caught:
        there.run("sleep 60", limit_s=1)
    assert caught.value.code == "no-answer"
    assert f"{sshd.host}: no answer within 1 s from: sleep 60" in str(caught.value)
    assert there.run("echo on").out == "on\n"


def test_a_master_killed_between_calls_is_replaced(there: SshTransport, tmp_path: Path) -> None:
    there.run("true")
    (old,) = masters(tmp_path)
    old.kill()
    old.wait()
    assert list((tmp_path / "control").iterdir())  # its socket is stale
    assert there.run("echo on").out == "on\n"
    (new,) = masters(tmp_path)
    assert new.pid != old.pid


def test_a_master_killed_under_a_script_leaves_it_run_once(
    there: SshTransport, sshd: Sshd, tmp_path: Path
) -> None:
    there.run("true")
    (master,) = masters(tmp_path)
    once((sshd.home / "ran").exists, master.kill)
    with pytest.raises(InfraError) as caught:
        there.run(f"echo ran >>'{sshd.home}/ran'; sleep 3; echo late")
    assert caught.value.code == "ssh-unreachable"
    assert "nobody knows how this ended: echo ran" in str(caught.value)
    assert there.run(f"cat '{sshd.home}/ran'; rm '{sshd.home}/ran'").out == "ran\n"


def test_a_master_that_hangs_is_left_behind(there: SshTransport, tmp_path: Path) -> None:
    there.run("true")
    (master,) = masters(tmp_path)
    master.suspend()
    try:
        assert refused(there, limit_s=1).code == "no-answer"
        assert there.run("echo on").out == "on\n"
    finally:
        master.kill()


def test_a_server_that_stopped_is_named(there: SshTransport, sshd: Sshd) -> None:
    there.run("true")
    sshd.stop()
    error = refused(there)
    assert error.code == "ssh-unreachable"
    assert "Connection refused" in str(error) or "closed" in str(error)
    assert "Connection refused" in str(refused(there))
    sshd.start()
    assert there.run("echo on").out == "on\n"


def test_a_server_that_stops_under_a_script(there: SshTransport, sshd: Sshd) -> None:
    begun = sshd.home / "begun"
    once(begun.exists, sshd.stop)
    with pytest.raises(InfraError, match="nobody knows how this ended: touch") as caught:
        there.run(f"touch '{begun}'; sleep 30")
    assert caught.value.code == "ssh-unreachable"
    assert "ssh said: infx-" not in str(caught.value)
    begun.unlink()


@pytest.mark.alone
@pytest.mark.parametrize("connected", [True, False])
def test_a_paused_server_gives_no_answer(there: SshTransport, sshd: Sshd, connected: bool) -> None:
    if connected:
        there.run("true")
    sshd.pause()
    started = time.monotonic()
    error = refused(there, limit_s=1)
    assert error.code == "no-answer"
    assert time.monotonic() - started < 3
    sshd.resume()
    assert there.run("echo on").out == "on\n"


def test_hosts_that_let_nobody_in(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    (tmp_path / "none").touch()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]  # bound, but nothing listens
        cases = {
            "Connection refused": ["-o", f"Port={closed}"],
            "Permission denied": ["-i", str(tmp_path / "other"), "-F", "/dev/null"],
            "No ED25519 host key is known": ["-o", f"UserKnownHostsFile={tmp_path}/none"],
            "Could not resolve hostname": ["-o", "HostName=nowhere.invalid"],
        }
        plain = ["-l", sshd.user, "-o", f"Port={sshd.port}", "-o", "HostName=127.0.0.1"]
        known = ["-o", f"UserKnownHostsFile={sshd.folder}/known_hosts"]
        for sentence, options in cases.items():
            extra = [*plain, *known] if "-i" in options else sshd.options
            transport = SshTransport(
                sshd.host, options=[*options, *extra], control_dir=tmp_path / "control"
            )
            error = refused(transport)
            transport.close()
            assert error.code == "ssh-unreachable"
            assert error.message.startswith(f"{sshd.host} cannot be reached: ")
            assert sentence in error.message
            assert f"`ssh {sshd.host} true`" in error.hint
            assert ("host key" in error.hint) == ("host key" in sentence)
            assert ("without a password" in error.hint) == ("Permission" in sentence)


def test_a_changed_host_key_is_named(sshd: Sshd, there: SshTransport) -> None:
    make_key(sshd.folder / "other")
    known = sshd.folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {(sshd.folder / 'other.pub').read_text()}")
    error = refused(there)
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in error.message
    assert "host key" in error.hint


def tree(folder: Path, count: int) -> list[str]:
    names = [f"jobs ü/{number % 50}/it's {number}" for number in range(count)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return names


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("how", ["rsync", "tar"])
def test_two_thousand_files_go_and_come_back(
    there: SshTransport,
    sshd: Sshd,
    tmp_path: Path,
    how: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if how == "tar":
        request.getfixturevalue("without_rsync")
    names = tree(tmp_path / "from", 2000)
    target = f"{sshd.home}/a b {how}/ü"
    there.run("true")
    started = time.monotonic()
    there.push(tmp_path / "from", target, names)
    pushed_s, started = time.monotonic() - started, time.monotonic()
    absent = [f"absent/{number}" for number in range(2000)]
    there.pull(target, tmp_path / "to", [*names, *absent])
    pulled_s = time.monotonic() - started
    with capsys.disabled():
        print(f"\n2,000 files: push {pushed_s:.2f} s, pull by {how} {pulled_s:.2f} s")
    assert contents(tmp_path / "to") == contents(tmp_path / "from")
    assert there.run(f"find '{target}' -type f | wc -l").out.strip() == "2000"


@pytest.mark.parametrize("how", ["rsync", "tar"])
def test_pull_brings_what_changed_and_leaves_out_what_is_absent(
    there: SshTransport, sshd: Sshd, tmp_path: Path, how: str, request: pytest.FixtureRequest
) -> None:
    if how == "tar":
        request.getfixturevalue("without_rsync")
    place = f"{sshd.home}/changes {how}"
    there.pull(f"{place}/absent", tmp_path / "to", ["a"])
    assert not (tmp_path / "to").exists()
    there.run(f"mkdir -p '{place}/d'; cd '{place}'; printf 1 >a; ln -s a link; printf x >d/-e")
    there.pull(place, tmp_path / "to", ["a", "link", "d", "absent"])
    there.run(f"printf 2 >'{place}/a'")  # as long as before, within the same second
    there.pull(place, tmp_path / "to", ["a", "link", "d", "absent"])
    assert contents(tmp_path / "to") == {"a": "2", "link": "2", "d/-e": "x"}
    assert (tmp_path / "to/link").is_symlink()
    assert (tmp_path / "to/a").stat().st_uid == os.getuid()


@pytest.mark.parametrize("how", ["rsync", "tar"])
def test_what_cannot_be_copied_is_named(
    there: SshTransport, sshd: Sshd, tmp_path: Path, how: str, request: pytest.FixtureRequest
) -> None:
    if how == "tar":
        request.getfixturevalue("without_rsync")
    (tmp_path / "a").write_text("1" * 20_000_000)  # more than is on its way
    place = f"{sshd.home}/closed {how}"
    there.run(f"mkdir -p '{place}'; touch '{place}/secret'; chmod 0 '{place}/secret'")
    for copy, reason in (
        (lambda: there.push(tmp_path, f"{place}/secret/x", ["a"]), "Not a directory"),
        (lambda: there.push(tmp_path, place, ["a", "none"]), "none: Cannot stat"),
        (lambda: there.pull(place, tmp_path / "to", ["secret"]), "ermission denied"),
        (lambda: there.pull(place, tmp_path / "a", ["secret"]), "File exists"),
    ):
        with pytest.raises(InfraError, match=reason) as caught:
            copy()
        assert caught.value.code == "transfer-failed"
        assert str(caught.value).startswith(f"{sshd.host}: copy of ")
        assert place in str(caught.value)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_a_copy_whose_connection_breaks_says_so(
    there: SshTransport, sshd: Sshd, tmp_path: Path, direction: str
) -> None:
    big = f"{sshd.home}/big"
    (tmp_path / "big").touch()
    os.truncate(tmp_path / "big", 20 << 30)
    there.run(f"truncate -s 20G '{big}'")
    (sshd.home / "to").mkdir()
    (sshd.home / "to").chmod(0o777)
    arriving = {"push": sshd.home / "to", "pull": tmp_path / "to"}[direction]
    once(lambda: arriving.exists() and list(arriving.iterdir()), sshd.stop)
    copies = {
        "push": lambda: there.push(tmp_path, f"{sshd.home}/to", ["big"]),
        "pull": lambda: there.pull(str(sshd.home), tmp_path / "to", ["big"]),
    }
    with pytest.raises(InfraError) as caught:
        copies[direction]()
    shutil.rmtree(tmp_path / "to", ignore_errors=True)  # what came of it
    shutil.rmtree(sshd.home / "to", ignore_errors=True)
    assert caught.value.code == "ssh-unreachable", str(caught.value)


def test_copies_end_at_their_limit(
    there: SshTransport, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_module, "TRANSFER_S", 1.0)
    monkeypatch.setattr(ssh_module, "LOOK_S", 1.0)
    (tmp_path / "a").write_text("1")
    there.run("true")
    sshd.pause()
    for copy in (
        lambda: there.push(tmp_path, str(sshd.home), ["a"]),
        lambda: there.pull(str(sshd.home), tmp_path, ["a"]),
    ):
        with pytest.raises(InfraError) as caught:
            copy()
        assert caught.value.code == "no-answer"
    sshd.resume()


def test_two_transports_at_once(sshd: Sshd, tmp_path: Path) -> None:
    """Also when one ends while the other is under way: neither ends the other's connection."""
    one, two = (
        SshTransport(sshd.host, options=sshd.options, control_dir=tmp_path / "control")
        for _ in range(2)
    )
    one.run("true")
    begun = sshd.home / "begun"
    once(begun.exists, one.close)
    assert two.run(f"touch '{begun}'; sleep 2; echo whole").out == "whole\n"
    assert len(masters(tmp_path)) == 1
    two.close()
    begun.unlink()


def test_the_users_own_master_is_used_and_left_alone(sshd: Sshd, tmp_path: Path) -> None:
    mine = SshTransport(sshd.host, options=sshd.options, control_dir=tmp_path / "mine")
    mine.run("true")
    (socket_path,) = (tmp_path / "mine").iterdir()
    with (sshd.folder / "config").open("a") as config:
        config.write(f"  ControlPath {socket_path}\n")
    (sshd.folder / "key").unlink()  # no other way in
    other = SshTransport(sshd.host, options=sshd.options, control_dir=tmp_path / "other")
    assert other.run("echo in").out == "in\n"
    other.close()
    assert mine.run("echo still").out == "still\n"
    mine.close()


def test_a_control_folder_too_deep_for_a_socket_is_not_used(sshd: Sshd, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    transport = SshTransport(sshd.host, options=sshd.options, control_dir=deep)
    transport.run("true")
    assert not deep.exists()
    (master,) = masters(Path("/tmp/infx-ssh-"))
    transport.close()
    master.wait(5)


def test_the_control_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, sshd: Sshd) -> None:
    tmp_path = sshd.folder  # short: a socket's path may have 108 bytes
    for name, path in (("XDG_RUNTIME_DIR", "infx-ssh"), ("HOME", ".cache/infx/ssh")):
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setenv(name, str(tmp_path))
        options = Master("nowhere", (), None).options()
        assert options[0].startswith(f'-oControlPath="{tmp_path}/{path}/')
        assert (tmp_path / path).is_dir()


def test_a_client_that_is_killed_is_no_answer(there: SshTransport, sshd: Sshd) -> None:
    there.run("true")
    begun = sshd.home / "begun"
    once(begun.exists, _kill_clients)
    with pytest.raises(InfraError) as caught:
        there.run(f"touch '{begun}'; sleep 4")
    assert caught.value.code == "ssh-unreachable"
    begun.unlink()


def _kill_clients() -> None:
    for child in psutil.Process().children():
        if child.name() == "ssh":
            child.send_signal(signal.SIGKILL)
