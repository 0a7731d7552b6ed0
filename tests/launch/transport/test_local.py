"""Commands and copies on this machine; frames; children that end when they must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.errors import InfraError
from infx.launch.transport import LocalTransport, Transport
from infx.launch.transport.frame import Frame
from infx.launch.transport.local import first_words


@pytest.fixture
def local() -> Transport:
    return LocalTransport({"INFX_GIVEN": "a b"})


def test_an_answer_is_exit_code_stdout_and_stderr(local: Transport) -> None:
    answer = local.run("echo out; echo err >&2; exit 255")
    assert (answer.code, answer.out, answer.err) == (255, "out\n", "err\n")


def test_a_signal_is_an_exit_code(local: Transport) -> None:
    assert local.run("kill -9 $$").code == 137


def test_stdin_is_empty_and_not_the_script(local: Transport) -> None:
    answer = local.run("cat\necho after")
    assert answer.out == "after\n"


def test_the_environment_is_ours_less_slurms_plus_the_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SLURM_JOB_ID", "SBATCH_PARTITION", "SQUEUE_FORMAT", "PMIX_RANK", "SLURMISH"):
        monkeypatch.setenv(name, "inherited")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    local = LocalTransport({"SLURM_CONF": "/a b"})
    out = local.run('env; echo "PATH is $PATH"').out
    names = [line.split("=")[0] for line in out.splitlines() if line.endswith("=inherited")]
    assert names == ["SLURMISH"]
    assert "SLURM_CONF=/a b\n" in out
    assert "PATH is /usr/bin:/bin:/usr/sbin:/sbin\n" in out


def test_quotes_and_non_ascii_arrive(local: Transport, tmp_path: Path) -> None:
    path = tmp_path / "ü 'x' \"$y\" `z`"
    path.mkdir()
    text = f"cat <<'E'\nit's {path}\nE\n"
    assert local.run(text).out == f"it's {path}\n"


def test_invalid_utf8_is_replaced(local: Transport) -> None:
    assert local.run("printf 'a\\377b'").out == "a�b"


def test_ten_megabytes_come_whole(local: Transport) -> None:
    assert len(local.run("head -c 10000000 /dev/zero | tr '\\0' x").out) == 10_000_000


def test_a_long_script_runs(local: Transport) -> None:
    script = "\n".join(f"echo {number:01000d} >/dev/null" for number in range(500)) + "\necho end"
    assert local.run(script).out == "end\n"


def test_what_stays_in_the_background_is_not_waited_for(local: Transport) -> None:
    started = time.monotonic()
    answer = local.run("sleep 30 & echo $!")
    assert time.monotonic() - started < 5
    os.kill(int(answer.out), signal.SIGKILL)  # it was left alone


def test_at_its_limit_the_whole_group_is_killed(local: Transport, tmp_path: Path) -> None:
    script = f"\n  sleep 30 & echo $! >{tmp_path}/pid; sleep 30"
    with pytest.raises(InfraError) as caught:
        local.run(script, limit_s=0.3)
    assert caught.value.code == "no-answer"
    assert "this machine: no answer within 0.3 s from: sleep 30 &" in str(caught.value)
    assert gone(int((tmp_path / "pid").read_text()))


def test_the_shell_dies_with_infx(tmp_path: Path) -> None:
    code = (
        "from infx.launch.transport import LocalTransport\n"
        f"LocalTransport({{}}).run('echo $$ >{tmp_path}/part; mv {tmp_path}/part {tmp_path}/pid;"
        f" sleep 1; touch {tmp_path}/late')"
    )
    infx = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "pid").exists():
        assert infx.poll() is None
        time.sleep(0.02)
    infx.kill()
    infx.wait()
    assert gone(int((tmp_path / "pid").read_text()))
    time.sleep(1.2)
    assert not (tmp_path / "late").exists()


def test_infx_may_have_no_stdin_and_no_stdout() -> None:
    code = (
        "import sys; from infx.launch.transport import LocalTransport\n"
        "sys.exit(LocalTransport({}).run('cat; echo in; echo err >&2').out != 'in\\n')"
    )
    command = f'exec {sys.executable} -c "$0" <&- >&-'
    assert subprocess.run(["sh", "-c", command, code], check=False).returncode == 0


def gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_copies_take_folders_and_files_and_leave_out_what_is_absent(
    local: Transport, tmp_path: Path
) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    (source / "a b" / "c").mkdir(parents=True)
    (source / "a b" / "c" / "ü").write_text("1")
    (source / "run.sh").write_text("2")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("run.sh")
    names = ["a b", "run.sh", "link", "absent/x"]
    local.pull(str(source), target, names)
    local.pull(str(source), target, names)
    assert (target / "a b/c/ü").read_text() == "1"
    assert os.access(target / "run.sh", os.X_OK)
    assert (target / "link").readlink() == Path("run.sh")
    assert not (target / "absent").exists()
    with pytest.raises(InfraError, match="this machine: cannot copy") as caught:
        local.push(source, str(target), ["absent/x"])
    assert caught.value.code == "transfer-failed"


def test_a_folder_is_not_copied_onto_itself(local: Transport, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "here").symlink_to(tmp_path)
    local.push(tmp_path, str(tmp_path / "here"), ["a"])
    local.pull(str(tmp_path), tmp_path, ["a"])
    assert (tmp_path / "a").read_text() == "1"


def test_first_words_name_a_script() -> None:
    assert first_words("\n\n  sbatch x\nsqueue") == "sbatch x"
    assert first_words("x" * 61) == "x" * 59 + "…"
    assert first_words("") == ""


printable = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(printable, st.integers(0, 255), st.integers(0, 10_000))
def test_a_frame_cut_anywhere_has_no_inside(noise: str, code: int, cut: int) -> None:
    frame = Frame()
    before, text = noise.encode(), noise[::-1].encode()
    whole = before + f"{frame.mark}\n".encode() + text + f"{frame.mark} {code}\n".encode()
    inside = frame.inside(whole + before)
    assert inside
    assert (inside.data, inside.code) == (text, code)
    assert frame.inside(whole[: min(cut, len(whole) - 1)]) is None


@pytest.mark.parametrize("script", ["exit 255", "echo (", "exec true", "set -e; false; true", ""])
def test_a_frame_holds_whatever_the_script_does(local: Transport, script: str) -> None:
    frame = Frame()
    inside = frame.inside(local.run(frame.around(script)).out.encode())
    assert inside
    assert inside.code == local.run(script).code


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_framed_script_cannot_read_the_frames_end(shell: str) -> None:
    frame = Frame()
    text = frame.around("cat; echo out").encode()
    done = subprocess.run([shell, "-s"], input=text, capture_output=True, check=False)
    inside = frame.inside(done.stdout)
    assert inside
    assert inside.data == b"out\n"


def test_a_script_that_is_cut_on_its_way_is_not_run() -> None:
    text = Frame().around("echo one; echo two").encode()
    for length in range(text.index(b") </dev/null")):
        done = subprocess.run(["sh", "-s"], input=text[:length], capture_output=True, check=False)
        assert b"one" not in done.stdout
