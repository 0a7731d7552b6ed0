"""Give a site what its jobs need, once a lock file: wheels, an environment, a checked node."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infx.config.sites import Cluster
from infx.domain.errors import ConfigError, InfraError
from infx.domain.findings import Finding
from infx.domain.serial import decode, encode
from infx.launch.machine import GIB
from infx.launch.prepare import scripts
from infx.launch.prepare.bundle import (
    Bundle,
    WheelFile,
    check_extras,
    make_bundle,
)
from infx.launch.prepare.node_check import NodeCheck, check_node
from infx.launch.prepare.own_wheel import OwnWheel
from infx.launch.prepare.scripts import Interpreter, Survey
from infx.launch.prepare.target import chosen, ids, platform, surveyed, unwritable
from infx.launch.prepare.wheels import Target
from infx.launch.transport import Answer, Transport

__all__ = ["Prepared", "check_image", "prepare", "prepared_python"]

INSTALL_S = 3600.0
UNPACKED = 6
"""Bytes of an environment with its bytecode for each byte of wheels: 5.3 measured with bench."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is there now. ``python`` runs jobs; ``pushed_bytes`` 0 and ``installed`` False when all
    of it was there already."""

    bundle: str
    folder: str
    python: str
    python_version: str
    files: int
    bytes: int
    pushed_files: int = 0
    pushed_bytes: int = 0
    installed: bool = False
    checked: NodeCheck
    seconds: float


def prepare(
    cluster: Cluster,
    transport: Transport,
    own: OwnWheel,
    cache: Path,
    *,
    extras: Sequence[str] = ("bench",),
    python: str = "",
    exclude: Sequence[str] = (),
    say: Say,
) -> Prepared:
    """Make ``folder`` of the cluster's site hold a bundle that its nodes run, and return it.

    ``own`` is the infx to run there and lies in ``cache``, as `bundle.own_wheel` says.
    ``python`` ("3.12") asks for one version; ``exclude`` are nodes that the check must not take.
    Raises ConfigError ``python-missing``; InfraError ``python-missing``, ``folder-unwritable``,
    ``bundle-failed``, ``disk-full``, ``check-failed``, ``node-unfit``; UsageError ``bad-option``;
    what the transport raises.
    """
    site = cluster.slurm
    assert site is not None
    assert site.folder
    began = time.monotonic()
    check_extras(extras, own)
    names = ids(own, extras)
    found = surveyed(transport, site, python, list(names.values()))
    interpreter = chosen(found, cluster, transport.host, python)
    target = Target(interpreter.minor, platform(found, transport.host))
    work = _Work(cluster, transport, site.folder, cache, tuple(extras), tuple(exclude), say)
    return work.prepared(own, target, names[target], interpreter, found, began)


def prepared_python(transport: Transport, folder: str) -> str | None:
    """Return the path there of the interpreter that `prepare` made last, None before the first."""
    return transport.run(scripts.prepared(folder)).out.strip() or None


def check_image(transport: Transport, image: str) -> str:
    """Return ``image``, where jobs find infx and aiperf, when it can be meant: a file that is
    there, or a reference with a tag or digest.

    Raises InfraError ``image-missing``, ConfigError ``image-unpinned``.
    """
    if image.startswith(("/", "./")):
        if transport.run(f"test -r {quote(image)}").code:
            hint = "import it there (enroot import -o FILE docker://…), or correct the path"
            where = transport.host or "this machine"
            raise InfraError("image-missing", f"{where}: no such image: {image}", hint=hint)
        return image
    if "@sha256:" not in image and not re.search(r":[\w.-]+$", image):
        sentence = f"the client image {image} has neither a tag nor a digest"
        hint = "write IMAGE:TAG or IMAGE@sha256:…"
        raise ConfigError([Finding("image-unpinned", "error", sentence, None, hint)])
    return image


@dataclass(frozen=True, slots=True)
class _Work:
    """The steps that change something there."""

    cluster: Cluster
    transport: Transport
    folder: str
    cache: Path
    extras: tuple[str, ...]
    exclude: tuple[str, ...]
    say: Say

    def prepared(
        self,
        own: OwnWheel,
        target: Target,
        name: str,
        interpreter: Interpreter,
        found: Survey,
        began: float,
    ) -> Prepared:
        """Make the bundle ``name``, bring, install and check what is missing of it; return it.

        ``found`` is what was there at ``began`` (monotonic seconds). Raises InfraError.
        """
        bundle = make_bundle(own, self.extras, target, self.cache, self.say)
        pushed = () if name in found.intact else self._push(bundle, found)
        installed = name not in found.installed
        if installed:
            self._install(bundle, interpreter)
        python = f"{self.folder}/bundles/{name}/venv/bin/python"
        checked = _known_good(found.checked.get(name, ""), installed)
        if checked is None:
            checked = self._check(name, python)
        elif found.current != name:
            self._publish(name, checked)
        return Prepared(
            bundle=name,
            folder=self.folder,
            python=python,
            python_version=interpreter.version,
            files=len(bundle.files),
            bytes=bundle.size_bytes,
            pushed_files=len(pushed),
            pushed_bytes=sum(file.bytes for file in pushed),
            installed=installed,
            checked=checked,
            seconds=round(time.monotonic() - began, 1),
        )

    def _push(self, bundle: Bundle, found: Survey) -> Sequence[WheelFile]:
        there = set(self._run(scripts.have(self.folder, bundle.files)).out.splitlines())
        absent = [file for file in bundle.files if file.path not in there]
        size = sum(file.bytes for file in absent)
        self._space(size + UNPACKED * bundle.size_bytes * (bundle.id not in found.installed), found)
        incoming = f"incoming-{_tag()}"
        if absent:
            self.say(f"pushing {len(absent)} of {len(bundle.files)} files, {size / 1e6:.1f} MB")
            target = f"{self.folder}/bundles/{incoming}"
            self.transport.push(self.cache, target, [file.path for file in absent])
        answer = self._run(scripts.settle(self.folder, incoming, absent, bundle))
        if answer.code:
            hint = f"remove {self.cache} if this stays so, then infx cluster prepare again"
            told = answer.err.strip() or "a file arrived with another sha256 than it has here"
            raise InfraError("transfer-failed", f"{self._where()}: {told}", hint=hint)
        return absent

    def _install(self, bundle: Bundle, interpreter: Interpreter) -> None:
        self.say(f"installing {len(bundle.files)} wheels with Python {interpreter.version}")
        answer = self._run(scripts.install(self.folder, bundle, interpreter.path, _tag()))
        if answer.code:
            errors = [line for line in answer.err.splitlines() if line.startswith("ERROR")]
            told = " ".join(errors[-2:]) or answer.err.strip()[-300:]
            hint = f"choose another --python, or run infx itself with Python {interpreter.minor}"
            raise InfraError("bundle-failed", f"{self._where()}: {told}", hint=hint)

    def _check(self, name: str, python: str) -> NodeCheck:
        self.say("asking a compute node")
        folder = f"{self.folder}/bundles/{name}"
        checked = check_node(
            self.cluster,
            self.transport,
            folder,
            python,
            extras=self.extras,
            exclude=self.exclude,
        )
        if checked.lacks:
            # The next prepare installs anew, in case the environment itself is what is broken.
            self._run(f"rm -f {quote(folder)}/venv")
            sentence = f"node {checked.node or '?'} cannot run the bundle: {checked.lacks[0]}"
            hint = f"mend it, or name another partition or `python`; its log is in {folder}"
            raise InfraError("node-unfit", sentence, hint=hint)
        self._publish(name, checked)
        return checked

    def _publish(self, name: str, checked: NodeCheck) -> None:
        text = encode(checked).decode() + "\n"
        answer = self._run(scripts.publish(self.folder, name, text, _tag()))
        if answer.code:
            raise unwritable(self.transport.host, self.folder, answer.err.strip())

    def _space(self, needed: int, found: Survey) -> None:
        if found.free_bytes < needed:
            have, want = found.free_bytes / GIB, needed / GIB
            raise InfraError(
                "disk-full",
                f"{self._where()}: {have:.1f} GiB are free, the bundle takes up to {want:.1f} GiB",
                hint="free space there, or name another `folder`",
            )

    def _run(self, script: str) -> Answer:
        return self.transport.run(script, limit_s=INSTALL_S)

    def _where(self) -> str:
        return f"{self.transport.host or 'this machine'}:{self.folder}"


def _known_good(text: str, installed: bool) -> NodeCheck | None:
    """Return an earlier check that still tells of what is there."""
    if not text or installed:
        return None
    known = decode(text, NodeCheck, source="checked.json")
    return None if known.lacks else known


def _tag() -> str:
    return uuid.uuid4().hex[:8]
