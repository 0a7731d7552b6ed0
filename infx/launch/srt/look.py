"""Runs where infx is not installed, as text in a recipe: keeps what a server says of itself.

python3 LOOK page FILE URL                    a page as it is
python3 LOOK scrape FILE URL PATH NOTE...     the metrics of URL PATH, and notes (prometheus.note)
python3 LOOK started FILE URL NAME...         what the process on URL's port was started with
python3 LOOK trace PATH CONTENT               fails unless the trace has this content (read_trace)

What cannot be read leaves no file, and is said on stderr.
"""

import hashlib
import json
import os
import sys
import urllib.request

PORTS = ("--port", "--server-port")


def main(what: str, target: str, url: str, *more: str) -> None:
    """Write ``target``, or compare it. Raises OSError, ValueError."""
    if what == "trace":
        check(target, url)
        return
    if what == "started":
        text = started(url.rpartition(":")[2], more)
    elif what == "scrape":
        text = read(url + more[0]) + "".join(note(url, path) for path in more[1:])
    else:
        text = read(url)
    with open(target, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def read(url: str) -> str:
    """Return a page. Raises OSError."""
    with urllib.request.urlopen(url, timeout=10) as page:
        return str(page.read().decode(errors="replace"))


def note(url: str, path: str) -> str:
    """Return the line of another page."""
    body = json.dumps(json.loads(read(url + path)), separators=(",", ":"))
    return f"\n#json {path} {body}\n"


def started(port: str, names: "tuple[str, ...]") -> str:
    """Return argv, and the variables ``names``, of the process whose words name the port."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208
        try:
            argv = words(pid, "cmdline")
            if any(argv[n : n + 2] == [flag, port] for n in range(len(argv)) for flag in PORTS):
                env = dict(w.split("=", 1) for w in words(pid, "environ") if "=" in w)
                return json.dumps({"argv": argv, "env": {n: env[n] for n in names if n in env}})
        except OSError:
            continue
    raise OSError(f"no process was started with port {port}")


def check(trace: str, planned: str) -> None:
    """Raise OSError, or ValueError where the trace is another one than planned."""
    files = [trace]
    if os.path.isdir(trace):  # noqa: PTH112
        files = [f"{trace}/{n}" for n in sorted(os.listdir(trace)) if n.endswith(".json")]  # noqa: PTH208
    digests = []
    for name in files:
        with open(name, "rb") as file:  # noqa: PTH123
            digests.append(hashlib.sha256(file.read()).hexdigest())
    found = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    if found != planned:
        raise ValueError(f"the trace has content {found[:8]}, planned {planned[:8]}")


def words(pid: str, name: str) -> "list[str]":
    """Return the words of a file of /proc. Raises OSError."""
    with open(f"/proc/{pid}/{name}", errors="replace") as file:  # noqa: PTH123
        return file.read().split("\0")[:-1]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        print(f"{' '.join(sys.argv[1:4])}: {error}", file=sys.stderr)
        sys.exit(sys.argv[1] == "trace")
