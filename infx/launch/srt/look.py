"""Runs where infx is not installed, as text in a recipe: keeps what a server says of itself.

python3 LOOK page FILE URL                    a page as it is
python3 LOOK scrape FILE URL PATH NOTE...     the metrics of URL PATH, and notes (prometheus.note)
python3 LOOK started FILE URL NAME...         what the process on URL's port was started with

What cannot be read leaves no file, and is said on stderr.
"""

import json
import os
import sys
import urllib.request

PORTS = ("--port", "--server-port")


def main(what: str, target: str, url: str, *more: str) -> None:
    """Write ``target``. Raises OSError, ValueError."""
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


def words(pid: str, name: str) -> "list[str]":
    """Return the words of a file of /proc. Raises OSError."""
    with open(f"/proc/{pid}/{name}", errors="replace") as file:  # noqa: PTH123
        return file.read().split("\0")[:-1]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        print(f"{' '.join(sys.argv[1:4])}: {error}", file=sys.stderr)
