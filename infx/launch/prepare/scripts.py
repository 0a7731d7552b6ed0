"""The shell of `infx cluster prepare`: POSIX sh for the cluster's side, and what it answers.

Every script is safe to run twice, beside another one, and to be killed: files get their names by a
rename, and a virtual environment by a link, when they are whole. So there is no lock, and none
that a killed prepare leaves behind or that a file system lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote
from urllib.parse import quote as url_quote

from infx.launch.prepare.bundle import Bundle, WheelFile

__all__ = [
    "Interpreter",
    "Survey",
    "have",
    "install",
    "prepared",
    "publish",
    "read_survey",
    "settle",
    "survey",
]

VERSION = (
    "import sys, venv, zlib; "
    'print("%d.%d.%d" % sys.version_info[:3], getattr(sys, "_base_executable", sys.executable))'
)
"""The base of the environment that a shell may be in, which the nodes need not have."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One that was looked for: its path, and its version ("" when it does not run there)."""

    name: str
    path: str
    version: str

    @property
    def minor(self) -> str:
        """``3.11``."""
        return ".".join(self.version.split(".")[:2])


@dataclass(slots=True)
class Survey:
    """What is there: ids of bundles that are intact, installed, checked (with checked.json)."""

    unwritable: str = ""
    free_bytes: int = 0
    glibc: str = ""
    machine: str = ""
    current: str = ""
    interpreters: list[Interpreter] = field(default_factory=list)
    intact: set[str] = field(default_factory=set)
    installed: set[str] = field(default_factory=set)
    checked: dict[str, str] = field(default_factory=dict)


def survey(folder: str, interpreters: Sequence[str], ids: Sequence[str]) -> str:
    """Return the script of one round trip: what of ``ids`` is there, and what runs Python."""
    return f"""bundles={quote(folder)}/bundles
if said=$(mkdir -p "$bundles/wheels" 2>&1 && touch "$bundles/.probe-$$" 2>&1); then
    rm -f "$bundles/.probe-$$"
else
    printf 'unwritable\\t%s\\n' "${{said:-no permission}}"; exit 0
fi
cd "$bundles" || exit 1
printf 'free\\t%s\\n' "$(df -Pk . | awk 'NR == 2 {{print $4}}')"
printf 'glibc\\t%s\\n' "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
printf 'machine\\t%s\\n' "$(uname -m)"
printf 'current\\t%s\\n' "$(cat current 2>/dev/null)"
for name in {_words(interpreters)}; do
    command -v "$name" >/dev/null 2>&1 || continue
    printf 'python\\t%s\\t%s\\n' "$name" "$("$name" -c {quote(VERSION)} 2>/dev/null)"
done
for id in {_words(ids)}; do
    [ -f "$id/files" ] || continue
    sha256sum -c "$id/files" >/dev/null 2>&1 && printf 'intact\\t%s\\n' "$id"
    [ -x "$id/venv/bin/python" ] && printf 'installed\\t%s\\n' "$id"
    [ -f "$id/checked.json" ] && printf 'checked\\t%s\\t%s\\n' "$id" "$(cat "$id/checked.json")"
done
exit 0
"""


def read_survey(said: str) -> Survey:
    """Return what the survey's script said; lines that it does not write are ignored."""
    found = Survey()
    for line in said.splitlines():
        key, _, value = line.partition("\t")
        first, _, second = value.partition("\t")
        match key:
            case "unwritable" | "machine" | "current":
                setattr(found, key, value)
            case "free":
                found.free_bytes = int(value) * 1024 if value.isdigit() else 0
            case "glibc":
                found.glibc = value.rpartition(" ")[2]
            case "python":
                version, _, path = second.partition(" ")
                found.interpreters.append(Interpreter(first, path, version))
            case "intact" | "installed":
                getattr(found, key).add(value)
            case "checked":
                found.checked[first] = second
    return found


def have(folder: str, files: Sequence[WheelFile]) -> str:
    """Return the script that prints which of ``files`` are there and whole, as their paths."""
    return f"""cd {quote(folder)}/bundles || exit 1
printf %s {quote(sums(files))} | LC_ALL=C sha256sum -c 2>/dev/null | sed -n 's/: OK$//p'
"""


def settle(folder: str, incoming: str, pushed: Sequence[WheelFile], bundle: Bundle) -> str:
    """Return the script that checks what was pushed to ``incoming``, gives it its place, and
    writes bundle.json and the list of sums; nonzero, and nothing moved, when a file is damaged."""
    from infx.domain.serial import encode_pretty

    return f"""cd {quote(folder)}/bundles || exit 1
{_moved(incoming, pushed) if pushed else ":"}
mkdir -p {bundle.id} || exit 1
{_written(f"{bundle.id}/bundle.json", encode_pretty(bundle), incoming)} &&
{_written(f"{bundle.id}/files", sums(bundle.files), incoming)} || exit 1
find . -maxdepth 1 -name 'incoming-*' -mtime +0 -exec rm -rf {{}} +
"""


def install(folder: str, bundle: Bundle, interpreter: str, tag: str) -> str:
    """Return the script that makes the virtual environment of a bundle, unless it is there.

    It is made where it stays, as ``venv-<tag>``, since its scripts name their interpreter; the link
    ``venv`` says that it is whole. pip runs from its wheel: sites often lack ensurepip.
    """
    pip = next(file for file in bundle.files if file.name.startswith("pip-"))
    return f"""bundles={quote(folder)}/bundles; mine=venv-{tag}
cd "$bundles/{bundle.id}" || exit 1
[ -x venv/bin/python ] && exit 0
[ -L venv ] && rm -f venv
trap 'rm -rf "$mine"' EXIT
trap 'exit 143' HUP INT TERM
{quote(interpreter)} -I -m venv --without-pip "$mine" || exit 1
printf %s {quote(_requirements(folder, bundle))} >"$mine/requirements.txt" || exit 1
"$mine/bin/python" -I "$bundles/{pip.path}/pip" --isolated install --no-index --no-cache-dir \\
    --disable-pip-version-check --no-input --quiet -r "$mine/requirements.txt" || exit 1
if ln -sn "$mine" venv 2>/dev/null; then
    trap - EXIT
    find . -maxdepth 1 -name 'venv-*' -mtime +0 ! -name "$mine" -exec rm -rf {{}} +
fi
[ -x venv/bin/python ]
"""


def publish(folder: str, bundle: str, checked: str, tag: str) -> str:
    """Return the script that keeps what the check found and makes ``bundle`` the current one."""
    kept = _written(f"{bundle}/checked.json", checked, tag)
    return f"""cd {quote(folder)}/bundles || exit 1
{kept} && {_written("current", bundle, tag)}
"""


def prepared(folder: str) -> str:
    """Return the script that prints the interpreter of the current bundle, or nothing."""
    return f"""bundles={quote(folder)}/bundles
python=$bundles/$(cat "$bundles/current" 2>/dev/null)/venv/bin/python
[ -x "$python" ] && printf %s "$python"
exit 0
"""


def sums(files: Sequence[WheelFile]) -> str:
    """Return ``files`` as sha256sum reads them."""
    return "".join(f"{file.sha256}  {file.path}\n" for file in files)


def _moved(incoming: str, pushed: Sequence[WheelFile]) -> str:
    checked = f"(cd {incoming} && printf %s {quote(sums(pushed))} | sha256sum -c >/dev/null 2>&1)"
    moves = "\n".join(
        f"mkdir -p {quote(file.path.rpartition('/')[0])} && "
        f"mv -f {incoming}/{quote(file.path)} {quote(file.path)} || exit 1"
        for file in pushed
    )
    return f"{checked} || {{ rm -rf {incoming}; exit 9; }}\n{moves}\nrm -rf {incoming}"


def _requirements(folder: str, bundle: Bundle) -> str:
    """Name each wheel by its path and sum: pip then looks nowhere else, and checks them again."""
    lines = []
    for number, file in enumerate(bundle.files):
        extras = f"[{','.join(bundle.extras)}]" if number == 0 and bundle.extras else ""
        url = url_quote(f"{folder}/bundles/{file.path}")
        lines.append(f"{file.name.split('-')[0]}{extras} @ file://{url}#sha256={file.sha256}\n")
    return "".join(line for line in lines if not line.startswith("pip @"))


def _written(path: str, content: str, tag: str) -> str:
    return f"printf %s {quote(content)} >{path}.{tag} && mv -f {path}.{tag} {path}"


def _words(names: Sequence[str]) -> str:
    return " ".join(map(quote, names))
