"""Where the files are: a folder's own configs/, recipes/ and golden_al/, else those of infx.

The installed package carries ours as data (infx/data in a wheel; the repository itself in an
editable install), so `infx sweep quickstart` works in any folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import infx
from infx.config.suggestions import did_you_mean
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["CLUSTERS", "HARDWARE", "Project", "is_file", "packaged"]

CLUSTERS = "clusters"
HARDWARE = "hardware"


@dataclass(frozen=True, slots=True)
class Project:
    """A folder and what stands behind it; its own files take precedence, one by one."""

    root: Path
    fallback: Path

    @classmethod
    def find(cls, start: Path) -> Project:
        """Return the project that ``start`` is in: the nearest folder above with configs/."""
        start = start.resolve()
        own = (folder for folder in (start, *start.parents) if (folder / "configs").is_dir())
        return cls(next(own, start), packaged())

    def matrix_path(self, name: str | Path) -> Path:
        """Return the file of a matrix, given its path or its name in configs/ ("quickstart").

        Raises ConfigError (``file-not-found``) with the nearest name.
        """
        text = str(name)
        if "/" in text or text.endswith((".yaml", ".yml")):
            return Path(name)
        if found := self._find("configs", text):
            return found
        add = f"give the path of a file, or add configs/{text}.yaml"
        hint = did_you_mean(text, self.matrices()) or add
        sentence = f"there is no matrix `{text}` in configs/ and no such file"
        raise ConfigError([Finding("file-not-found", "error", sentence, Where(text), hint)])

    def matrices(self) -> tuple[str, ...]:
        """Return the names of the matrices in configs/."""
        return tuple(n for n in self._names("configs") if n not in (CLUSTERS, HARDWARE))

    def recipes(self) -> tuple[str, ...]:
        """Return the names of the recipes."""
        return self._names("recipes")

    def goldens(self) -> tuple[str, ...]:
        """Return the names of the golden files."""
        return self._names("golden_al")

    def recipe_path(self, name: str) -> Path | None:
        """Return the file of a recipe, or None."""
        return self._find("recipes", name)

    def golden_path(self, name: str) -> Path | None:
        """Return the file of a golden curve, or None."""
        return self._find("golden_al", name)

    def clusters_path(self) -> Path:
        """Return the file of the clusters, whether it exists or not."""
        return self._find("configs", CLUSTERS) or self.root / "configs" / f"{CLUSTERS}.yaml"

    def hardware_path(self) -> Path:
        """Return the file of prices and provisioned power, whether it exists or not."""
        return self._find("configs", HARDWARE) or self.root / "configs" / f"{HARDWARE}.yaml"

    def shown(self, path: Path) -> str:
        """Return how a file is called in findings and plans: from the root when it is below it."""
        try:
            path = path.resolve()
        except RuntimeError:  # links in a circle
            path = path.absolute()
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def located(self, shown: str) -> Path:
        """Return the file that `shown` called so."""
        return self.root / shown

    def absolute(self, text: str) -> Path:
        """Return the path that a file of the project writes as ``text``, from the root."""
        try:
            return (self.root / Path(text).expanduser()).resolve()
        except (RuntimeError, ValueError):  # no such user; links in a circle; a NUL
            return self.root / text

    def source_line(self, where: Where) -> str | None:
        """Return the line of a file that ``where`` is about, or None."""
        try:
            lines = self.located(where.file).read_text("utf-8-sig").split("\n")
        except (OSError, ValueError):
            return None
        return lines[where.line - 1].rstrip("\r") if 0 < where.line <= len(lines) else None

    def _find(self, folder: str, name: str) -> Path | None:
        paths = (place / folder / f"{name}.yaml" for place in (self.root, self.fallback))
        return next((path for path in paths if is_file(path)), None)

    def _names(self, folder: str) -> tuple[str, ...]:
        paths: Iterable[Path] = (
            *(self.root / folder).glob("*.yaml"),
            *(self.fallback / folder).glob("*.yaml"),
        )
        return tuple(sorted({path.stem for path in paths}))


def is_file(path: Path) -> bool:
    """Return True for a file; False for whatever cannot be the path of one."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for the file system; a NUL in it
        return False


def packaged() -> Path:
    """Return the folder of infx's own configs/, recipes/ and golden_al/."""
    package = Path(infx.__file__).resolve().parent
    data = package / "data"
    return data if data.is_dir() else package.parent
