"""The details of a report: each server configuration once, with the points measured on it."""

from __future__ import annotations

from collections.abc import Sequence

from infx.analysis.configuration import differences
from infx.domain.axes import AXES, is_load, kebab, snake
from infx.domain.point import short
from infx.domain.record import PointRecord
from infx.report.figures import blank, plain, revision
from infx.report.model import ArmDetails, AxisRow

__all__ = ["arm_details", "environment"]


def arm_details(records: Sequence[PointRecord]) -> tuple[ArmDetails, ...]:
    """Return the arms in the order of their first record."""
    groups: dict[str, list[PointRecord]] = {}
    for record in records:
        groups.setdefault(record.point.arm.arm_id, []).append(record)
    return tuple(_details(arm_id, group) for arm_id, group in groups.items())


def environment(records: Sequence[PointRecord]) -> dict[str, str]:
    """Return the facts of machine and programs; one that differs between records lists all."""
    seen: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in _facts(record):
            seen.setdefault(name, {})[value] = None
    return {name: " · ".join(values) for name, values in seen.items()}


def _details(arm_id: str, records: Sequence[PointRecord]) -> ArmDetails:
    first = next((record for record in records if record.provenance.server_argv), records[0])
    return ArmDetails(
        anchor=f"arm-{short(arm_id)}",
        title=first.point.entry,
        arm=first.point.arm,
        server_argv=first.provenance.server_argv,
        env=first.provenance.env,
        axes=_axes(first),
        server=first.provenance.server,
        records=tuple(records),
    )


def _axes(record: PointRecord) -> tuple[AxisRow, ...]:
    server = {snake(name): value for name, value in record.provenance.server.items()}
    differing = {found.axis for found in differences(record)}
    return tuple(
        AxisRow(
            name=kebab(name),
            planned=plain(getattr(record.point.arm.axes, name)),
            running=plain(server.get(name)) if name in server else blank,
            differs=name in differing,
        )
        for name in AXES
        if not is_load(name)
    )


def _facts(record: PointRecord) -> list[tuple[str, str]]:
    made, point = record.provenance, record.point
    facts = {
        "infx": made.infx_version,
        "revision": revision(made),
        "hardware": point.arm.hardware,
        "cluster": point.arm.cluster,
    }
    host = {name: plain(value) for name, value in made.host.items()}
    return [(name, value) for name, value in (facts | host | dict(made.packages)).items() if value]
