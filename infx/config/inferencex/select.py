"""Which entries, rows and concurrencies are wanted, by the rules of InferenceX's own filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import filter as fits
from typing import Any

from infx.config.inferencex.fields import LENGTHS
from infx.config.inferencex.runners import Runners
from infx.config.suggestions import did_you_mean
from infx.domain.errors import UsageError

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Filters; an empty one lets everything pass.

    ``config_keys`` names entries (globs): of those every row is planned, and ``conc`` keeps
    concurrencies. Without it the other filters sweep all entries. ``model_prefix`` is compared with
    the beginning of an entry's key, as InferenceX does, not with its `model-prefix`.
    """

    config_keys: tuple[str, ...] = ()
    conc: tuple[int, ...] = ()
    framework: tuple[str, ...] = ()
    model_prefix: tuple[str, ...] = ()
    precision: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    runner_node: str = ""
    scenario_type: tuple[str, ...] = ()
    seq_lens: tuple[str, ...] = ()
    min_conc: int | None = None
    max_conc: int | None = None
    max_tp: int | None = None
    max_ep: int | None = None
    step_size: int = 2
    single_node: bool = True
    multi_node: bool = True

    def check(self, runners: Runners) -> None:
        """Raise UsageError ``bad-option`` for a choice that can select nothing."""
        if self.step_size < 2:
            _refuse(f"--step-size is {self.step_size}", "it multiplies: 2 or more")
        low, high = self.min_conc, self.max_conc
        if low is not None and high is not None and low > high:
            _refuse(f"--min-conc {low} is above --max-conc {high}", "lower one")
        if self.runner_node and not runners.labels:
            _refuse("--runner-node-filter needs the machines of a runners.yaml", "use --runners")
        for name in self.seq_lens:
            _known("--seq-lens", name, LENGTHS)
        for name in self.scenario_type:
            _known("--scenario-type", name, ("fixed-seq-len", "agentic-coding"))
        for name in self.runner if runners.labels else ():
            _known("--runner", name, runners.labels)

    def keys(self, entries: Mapping[str, Any]) -> list[str]:
        """Return the keys of the selected entries, in the order of the globs or of the files.

        Raises UsageError ``bad-option`` for a glob that fits none.
        """
        if not self.config_keys:
            return [key for key, entry in entries.items() if self._sweeps(key, entry)]
        found: dict[str, None] = {}
        for glob in self.config_keys:
            wild = "*" in glob or "?" in glob
            keys = fits(entries, glob) if wild else [glob] if glob in entries else []
            if not keys:
                _refuse(f"--config-keys {glob} fits no entry", did_you_mean(glob, entries))
            found |= dict.fromkeys(keys)
        return list(found)

    def machines(self, runner: str, runners: Runners) -> Sequence[str]:
        """Return what a row's `runner` says: the label, or each machine that a filter leaves."""
        if not self.runner_node:
            return [runner]
        machines = list(runners.labels.get(runner, ()))
        if self.config_keys:
            machines = [runner, *machines]
        return list(dict.fromkeys(name for name in machines if self.runner_node in name))

    def topology(self, multinode: bool) -> bool:
        """Return True when entries of one node, or of several, are wanted."""
        return self.multi_node if multinode else self.single_node

    def scenario(self, kind: str) -> bool:
        """Return True when a kind of scenario is wanted."""
        return not self.scenario_type or kind in self.scenario_type

    def lengths(self, isl: int, osl: int) -> bool:
        """Return True when fixed lengths (tokens) are wanted."""
        return not self.seq_lens or (isl, osl) in [LENGTHS[name] for name in self.seq_lens]

    def tensor(self, tp: int) -> bool:
        """Return True when a fixed-length row of one node is wanted at this parallelism."""
        if self.max_ep is not None and self.max_ep < 1:
            return False
        return self.max_tp is None or (self.max_tp > 0 and tp <= self.max_tp)

    def experts(self, ep: int, said: bool) -> int:
        """Return the expert parallelism of a row that says one: at most the largest wanted."""
        return ep if self.max_ep is None or not said else min(ep, self.max_ep)

    def fixed_concs(self, concs: Iterable[int]) -> list[int]:
        """Return the wanted concurrencies of a fixed-length row; the largest wanted one where all
        that are left are above it."""
        if self._impossible():
            return []
        left = [conc for conc in concs if conc >= (self.min_conc or 1)]
        most = self.max_conc
        if most is not None and left:
            left = [conc for conc in left if conc <= most] or [most]
        return self.asked(left)

    def fixed_range(self, start: int, end: int) -> tuple[int, int]:
        """Return a range cut to the wanted one, before it is expanded; (1, 0) is an empty one."""
        if self._impossible() or (self.min_conc is not None and end < self.min_conc):
            return 1, 0
        start = max(start, self.min_conc or 1)
        most = self.max_conc
        if most is None:
            return start, end
        return (most, most) if start > most else (start, min(end, most))

    def agentic_concs(self, concs: Iterable[int]) -> list[int]:
        """Return the wanted concurrencies of an agentic row."""
        low, high = self.min_conc, self.max_conc
        left = [conc for conc in concs if low is None or conc >= low]
        return self.asked(conc for conc in left if high is None or conc <= high)

    def asked(self, concs: Iterable[int]) -> list[int]:
        """Return those that ``conc`` names, all where it names none."""
        return [value for value in concs if not self.conc or value in self.conc]

    def _impossible(self) -> bool:
        return any(bound is not None and bound < 1 for bound in (self.min_conc, self.max_conc))

    def _sweeps(self, key: str, entry: Mapping[str, Any]) -> bool:
        prefixed = not self.model_prefix or key.startswith(self.model_prefix)
        fields = {"framework": self.framework, "precision": self.precision, "runner": self.runner}
        return prefixed and all(not v or entry[name] in v for name, v in fields.items())


def _known(option: str, value: str, known: Iterable[str]) -> None:
    if value not in (names := list(known)):
        _refuse(f"{option} {value} is not known", did_you_mean(value, names))


def _refuse(message: str, hint: str) -> None:
    raise UsageError("bad-option", message, hint=hint)
