"""A parcel holds a run and nothing that would land elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from infx.domain.errors import ConfigError, InfraError
from infx.domain.serial import encode
from infx.store.exchange.parcel import Header, files_of, pack, read_header, unpack
from infx.store.exchange.state import State, state_of
from tests.store.machines import RUN, Machine


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> State:
    with Machine(tmp_path_factory.mktemp("machine")) as one:
        one.whole()
        return state_of(one.store, RUN)


def packed(path: Path, folder: Path, state: State) -> Path:
    entries = [*files_of(folder)]
    pack(path, Header(state=state, files={e.name: e.size for e in entries}), entries)
    return path


def written(path: Path, header: bytes, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """A parcel made by hand."""
    first = tarfile.TarInfo("parcel.json")
    with tarfile.open(path, "w:gz") as tar:
        for member, data in ((first, header), *members):
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def test_files_come_back_with_their_times(tmp_path: Path, state: State):
    folder = tmp_path / "run"
    (folder / "jobs/a b").mkdir(parents=True)
    (folder / "jobs/a b/ünder.txt").write_bytes(b"\0" * 300)
    (folder / "empty").write_bytes(b"")
    parcel = packed(tmp_path / "p", folder, state)
    assert unpack(parcel, tmp_path / "out").state == state
    assert (tmp_path / "out/jobs/a b/ünder.txt").read_bytes() == b"\0" * 300
    mine, theirs = ((at / "empty").stat().st_mtime for at in (folder, tmp_path / "out"))
    assert int(mine) == theirs


def test_what_is_done_is_told_within_a_large_file(tmp_path: Path, state: State):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/large").write_bytes(bytes(3 << 20))
    (tmp_path / "run/small").write_bytes(b"x")
    entries = [*files_of(tmp_path / "run")]
    header = Header(state=state, files={e.name: e.size for e in entries})
    told: list[tuple[str, int, int]] = []
    pack(tmp_path / "p", header, entries, progress=lambda *found: told.append(found))
    unpack(tmp_path / "p", tmp_path / "out", progress=lambda *found: told.append(found))
    whole = (3 << 20) + 1
    for what in ("packed", "unpacked"):
        done = [found for found in told if found[0] == what]
        assert len(done) > 3
        assert done == sorted(done)
        assert done[-1] == (what, whole, whole)


def test_same_content_same_bytes(tmp_path: Path, state: State, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a").write_text("a")
    one = packed(tmp_path / "one", tmp_path / "run", state)
    monkeypatch.setattr("gzip.time.time", lambda: 1e9)
    assert packed(tmp_path / "two", tmp_path / "run", state).read_bytes() == one.read_bytes()


def test_links_locks_and_half_written_files_stay(tmp_path: Path):
    (tmp_path / "point.json").write_text("{}")
    for name in ("driver.lock", "exchange.json", "cancel", "point.json.tmp", "live.json.part"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "away").symlink_to("/etc")
    assert [entry.name for entry in files_of(tmp_path)] == ["point.json"]


def test_a_log_that_grows_meanwhile_is_packed_as_it_was(tmp_path: Path, state: State):
    (tmp_path / "run").mkdir()
    log, gone = tmp_path / "run/log", tmp_path / "run/gone"
    log.write_text("one\n")
    gone.write_text("x")
    entries = [*files_of(tmp_path / "run")]
    log.write_text("one\ntwo\n")
    gone.unlink()
    header = Header(state=state, files={e.name: e.size for e in entries})
    pack(tmp_path / "p", header, entries)
    unpack(tmp_path / "p", tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["log"]
    assert (tmp_path / "out/log").read_text() == "one\n"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "./x", "driver.lock", "a//b", ""])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, state: State, name: str):
    header = encode(Header(state=state, files={name: 1}))
    parcel = written(tmp_path / "p", header, (tarfile.TarInfo(f"files/{name}"), b"x"))
    with pytest.raises(ConfigError) as caught:
        unpack(parcel, tmp_path / "deep/out")
    assert caught.value.code == "bad-parcel"
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, b"6"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, state: State, kind: bytes):
    member = tarfile.TarInfo("files/a")
    member.type, member.linkname = kind, "/etc/passwd"
    parcel = written(tmp_path / "p", encode(Header(state=state, files={"a": 0})), (member, b""))
    with pytest.raises(ConfigError, match="no plain file"):
        unpack(parcel, tmp_path / "out")


def test_files_that_nobody_announced_are_refused(tmp_path: Path, state: State):
    header = encode(Header(state=state, files={"a": 1}))
    for name in ("files/b", "a", "files", "parcel.json/x"):
        parcel = written(tmp_path / "p", header, (tarfile.TarInfo(name), b"x"))
        with pytest.raises(ConfigError, match="does not know"):
            unpack(parcel, tmp_path / "out")


@pytest.mark.parametrize("mtime", ["inf", "nan", "-1", "1e300"])
def test_a_time_that_no_file_has_is_refused(tmp_path: Path, state: State, mtime: str):
    member = tarfile.TarInfo("files/a")
    member.pax_headers = {"mtime": mtime}
    parcel = written(tmp_path / "p", encode(Header(state=state, files={"a": 1})), (member, b"x"))
    with pytest.raises(ConfigError, match="changed at no time"):
        unpack(parcel, tmp_path / "out")


def test_a_file_that_is_larger_than_announced_is_refused(tmp_path: Path, state: State):
    member = tarfile.TarInfo("files/a")
    header = encode(Header(state=state, files={"a": 1}))
    parcel = written(tmp_path / "p", header, (member, b"xx"))
    with pytest.raises(ConfigError, match="is larger than"):
        unpack(parcel, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_vanishes_is_not_announced(tmp_path: Path, state: State):
    (tmp_path / "run").mkdir()
    for name in ("a", "b"):
        (tmp_path / "run" / name).write_text(name)
    entries = [*files_of(tmp_path / "run")]
    (tmp_path / "run/a").unlink()
    pack(tmp_path / "p", Header(state=state, files={"a": 1, "b": 1}), entries)
    assert read_header(tmp_path / "p").files == {"b": 1}
    assert unpack(tmp_path / "p", tmp_path / "out").files == {"b": 1}


def test_a_file_that_is_cut_meanwhile_is_the_machines_fault(tmp_path: Path, state: State):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run/a"
    path.write_bytes(bytes(3 << 20))
    entries = [*files_of(tmp_path / "run")]
    with pytest.raises(InfraError, match="was cut while it was packed"):
        pack(
            tmp_path / "p",
            Header(state=state, files={"a": 3 << 20}),
            entries,
            progress=lambda *_: path.write_bytes(b""),
        )


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_a_cut_is_seen_wherever_it_is(tmp_path: Path, state: State, share: float):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a").write_bytes(bytes(range(256)) * 40)
    whole = packed(tmp_path / "p", tmp_path / "run", state).read_bytes()
    (tmp_path / "p").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InfraError) as caught:
        unpack(tmp_path / "p", tmp_path / "out")
    assert caught.value.code == "parcel-broken"


def test_every_flipped_byte_is_seen(tmp_path: Path, state: State):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a").write_bytes(bytes(range(256)) * 40)
    whole = packed(tmp_path / "p", tmp_path / "run", state).read_bytes()
    for at in range(10, len(whole), 97):
        data = bytearray(whole)
        data[at] ^= 0x55
        (tmp_path / "p").write_bytes(data)
        with pytest.raises(InfraError) as caught:
            unpack(tmp_path / "p", tmp_path / "out")
        assert caught.value.code == "parcel-broken"


def changed(whole: State, table: str, values: dict[str, object]) -> bytes:
    header = json.loads(encode(Header(state=whole, files={})))
    header["state"]["rows"][table][0] |= values
    return json.dumps(header).encode()


@pytest.mark.parametrize(
    ("table", "values", "told"),
    [
        ("runs", {"run_id": "other"}, "is not of run"),
        ("attempts", {"run_id": "other"}, "is not of run"),
        ("points", {"record": "{"}, "cannot be read"),
        ("points", {"state": "failed", "code": ""}, "cannot be read"),
        ("points", {"point_id": "other"}, "of another point"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path: Path, state: State, table, values, told):
    parcel = written(tmp_path / "p", changed(state, table, values))
    with pytest.raises(ConfigError, match=told):
        read_header(parcel)


def test_another_schema_or_no_name_of_a_run_is_refused(tmp_path: Path, state: State):
    header = json.loads(encode(Header(state=state, files={})))
    for odd in ({"schema_version": "2"}, {"state": header["state"] | {"run_id": "../x"}}):
        parcel = written(tmp_path / "p", json.dumps(header | odd).encode())
        with pytest.raises(ConfigError, match=r"of schema 2|no run can be called"):
            read_header(parcel)
    (tmp_path / "p").write_bytes(gzip.compress(b"hello"))
    with pytest.raises((ConfigError, InfraError)):
        read_header(tmp_path / "p")
