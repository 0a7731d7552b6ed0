"""Where the checkpoint of a draft is on this machine, and what its files say."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infx.domain.record import PointRecord
    from infx.review.bundle import Draft
    from infx.review.shipped import Checkpoint

__all__ = ["drafts_on"]

_LARGEST_HEADER = 100 * 2**20
"""safetensors itself reads no longer one."""


def drafts_on(records: Iterable[PointRecord], root: Path, given: Sequence[Draft]) -> list[Draft]:
    """Return the drafts that are ``given``, and those that servers used whose checkpoint is on this
    machine, which says itself what it holds; ``root`` is the project's folder."""
    from infx.review.shipped import agreed, draft_of, drafting

    found = {draft.model: draft for draft in given}
    for model, some in drafting(records).items():
        if kept := _checkpoint(some[0], root):
            found[model] = agreed(found.get(model), draft_of(model, kept, some))
    return list(found.values())


def _checkpoint(record: PointRecord, root: Path) -> Checkpoint | None:
    arm = record.point.arm
    if not arm.draft:
        return _shipped(record)
    folder = next((path for path in _places(arm.draft, root) if path.is_dir()), None)
    return _read(folder, sorted(folder.glob("*.safetensors")), arm.draft) if folder else None


def _places(draft: str, root: Path) -> Iterator[Path]:
    """Yield where a draft may be: a folder, or a snapshot in the cache of the hub."""
    yield root / draft.removeprefix("hf:")
    hub = os.environ.get("HF_HUB_CACHE") or _home() / "hub"
    kept = Path(hub) / f"models--{draft.removeprefix('hf:').replace('/', '--')}"
    main = kept / "refs" / "main"
    if main.is_file():
        yield kept / "snapshots" / main.read_text().strip()
    yield from sorted((kept / "snapshots").glob("*"))


def _home() -> Path:
    return Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()


def _shipped(record: PointRecord) -> Checkpoint | None:
    """Return the draft that came with the weights of infx's own engine."""
    from infx.engine.refusal import RefusalError
    from infx.engine.weights.source import folder_of

    server = record.provenance.server
    if record.point.arm.framework != "infx" or not server.get("weights"):
        return None
    try:
        folder = folder_of(str(server["weights"]), str(server.get("shape", "")))
    except RefusalError:
        return None
    file = f"{server.get('method')}.safetensors"
    where = f"{record.point.arm.model.name}/{file}"
    return _read(folder, [folder / file], where) if folder and (folder / file).is_file() else None


def _read(folder: Path, files: Sequence[Path], where: str) -> Checkpoint | None:
    """Return what the files say; None where one of them cannot be read: a draft that is half known
    is not told of."""
    from infx.review.shipped import Checkpoint

    try:
        config = _config(folder / "config.json")
        tensors = {name: kind for file in files for name, kind in _header(file).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Checkpoint(tensors=tensors, config=config, where=where) if config or tensors else None


def _config(path: Path) -> dict[str, Any]:
    said = json.loads(path.read_bytes()) if path.is_file() else {}
    return said if isinstance(said, dict) else {}


def _header(path: Path) -> Mapping[str, str]:
    """Return the stored type of each tensor: a length of eight bytes, then JSON. Raises
    ValueError."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _LARGEST_HEADER:
            raise ValueError(f"{path}: a header of {size} bytes")
        told = json.loads(file.read(size))
    return {name: one["dtype"] for name, one in told.items() if name != "__metadata__"}
