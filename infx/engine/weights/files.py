"""The safetensors files of a folder: which tensors they say they hold, and those tensors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from infx.engine.refusal import refuse_faults

__all__ = ["INDEX", "WHOLE", "Stored", "opened"]

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in an open file: its type as safetensors spells it, its size, not yet its data."""

    name: str
    dtype: str
    size: tuple[int, ...]
    _file: Any

    def read(self) -> Tensor:
        """Return the tensor."""
        tensor: Tensor = self._file.get_tensor(self.name)
        return tensor

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.size)}"


@contextlib.contextmanager
def opened(folder: Path, name: str = WHOLE) -> Iterator[Mapping[str, Stored]]:
    """Yield what file ``name`` of ``folder`` holds, or the shards of the model's index, by name.

    Raises RefusalError (``bad-checkpoint``) with every file that is missing, cut short or no
    safetensors file, every tensor that the index places wrongly.
    """
    faults: list[str] = []
    with contextlib.ExitStack() as stack:
        stored: dict[str, Stored] = {}
        if name != WHOLE or (folder / name).exists() or not (folder / INDEX).exists():
            stored = _open(stack, folder / name, faults)
        else:
            for shard, named in _shards(folder / INDEX, faults).items():
                held = _open(stack, folder / shard, faults)
                faults += _disagreement(shard, set(held), named)
                stored |= held
        refuse_faults("bad-checkpoint", str(folder), faults)
        yield stored


def _open(stack: contextlib.ExitStack, path: Path, faults: list[str]) -> dict[str, Stored]:
    try:
        file = stack.enter_context(safe_open(path, framework="pt"))
        headers = {name: file.get_slice(name) for name in sorted(file.keys())}
        found = {
            name: Stored(name, header.get_dtype(), tuple(header.get_shape()), file)
            for name, header in headers.items()
        }
    except FileNotFoundError:
        faults.append(f"{path.name}: no such file")
    except (SafetensorError, OSError) as error:
        faults.append(f"{path.name}: cannot be read as safetensors: {error}")
    else:
        return found
    return {}


def _shards(path: Path, faults: list[str]) -> dict[str, set[str]]:
    """Return the tensors that the index places in each shard."""
    try:
        places = json.loads(path.read_text(encoding="utf-8"))["weight_map"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        faults.append(f"{path.name}: expected an object with weight_map, found {error!r:.80}")
        return {}
    shards: dict[str, set[str]] = {}
    for name, shard in places:
        if isinstance(shard, str) and Path(shard).name == shard:
            shards.setdefault(shard, set()).add(name)
        else:
            faults.append(f"{path.name}: {name} in {shard!r:.60}: expected a file of the folder")
    return shards


def _disagreement(shard: str, held: set[str], named: set[str]) -> list[str]:
    if not held:
        return []
    missing = [f"{shard}: {name} is missing: the index places it there" for name in named - held]
    extra = [f"{shard}: {name} is extra: not placed there by the index" for name in held - named]
    return sorted(missing) + sorted(extra)
