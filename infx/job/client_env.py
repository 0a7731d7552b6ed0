"""The environment of aiperf's process, and the name by which it finds the tokenizer there."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infx.domain.point import Agentic, Workload

__all__ = ["client_env", "kept_tokenizer"]

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")

# Any revision will do: the name of a snapshot's folder in the Hugging Face cache.
REVISION = "0" * 40

PREPARE_S = 1800
"""The prompts of a public trace are some hundred million tokens: made once a machine, then kept by
aiperf."""

PATIENCE = {
    "AIPERF_DATASET_CONFIGURATION_TIMEOUT": str(PREPARE_S),
    "AIPERF_SERVICE_PROFILE_CONFIGURE_TIMEOUT": str(PREPARE_S),
}


@contextmanager
def client_env(load: Workload, tokenizer: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the client's environment and the name of ``tokenizer`` (a folder or a hub id) in it.

    Its temporary folder is its own, since aiperf leaves aiperf_mmap_* and socket folders behind;
    and short, since those sockets have paths.
    """
    with tempfile.TemporaryDirectory(prefix="infx-", ignore_cleanup_errors=True) as scratch:
        env = {key: value for key, value in os.environ.items() if key not in OFFLINE}
        env |= {"TMPDIR": scratch, "COLUMNS": "200"}
        if isinstance(load, Agentic):
            prompts = {"AIPERF_DATASET_MMAP_CACHE_DIR": str(_cache() / "aiperf" / "dataset_mmap")}
            yield PATIENCE | prompts | env, _lasting(tokenizer)
        elif not Path(tokenizer).is_dir():
            yield env, tokenizer
        else:
            _as_hub_cache(Path(tokenizer), Path(scratch) / "hub" / "models--infx--tokenizer")
            yield env | {"HF_HOME": scratch, "HF_HUB_OFFLINE": "1"}, "infx/tokenizer"


def kept_tokenizer(folder: Path) -> Path:
    """Return a copy of a tokenizer's folder in the user's cache, named by its content."""
    kept = _cache() / "infx" / "tokenizers" / _digest(folder)
    if not kept.is_dir():
        part = kept.with_name(f".{kept.name}.{os.getpid()}.part")
        shutil.copytree(folder, part)
        try:
            part.rename(kept)
        except OSError:
            shutil.rmtree(part)
            if not kept.is_dir():  # else another job was first
                raise
    return kept


def _lasting(tokenizer: str) -> str:
    """Return a tokenizer's name that outlives the job, and is no other tokenizer's: by it aiperf
    keeps the prompts that it made of a trace. The hub stays open, where public traces are."""
    return str(kept_tokenizer(Path(tokenizer))) if Path(tokenizer).is_dir() else tokenizer


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _as_hub_cache(tokenizer: Path, repository: Path) -> None:
    """Show a tokenizer's folder as a cached hub repository: aiperf loads a path in one process more
    (2 s), and refuses it when offline."""
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    shutil.copytree(tokenizer, repository / "snapshots" / REVISION)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
