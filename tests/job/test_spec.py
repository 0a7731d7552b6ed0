from __future__ import annotations

from pathlib import Path

from infx.config.sites import Container
from infx.domain.plan import Job
from infx.domain.point import Accuracy, Agentic, FixedLengths
from infx.domain.serial import decode
from infx.job.spec import JobSpec, Site
from tests.job.jobs import arm, point, write_job


def test_many_questions_and_timed_points_get_the_time_for_them() -> None:
    import dataclasses

    plain = point(arm(), conc=1)
    spec = JobSpec(
        run_id="r",
        run_dir="/r",
        job=Job(job_id="j", name="j", arm=plain.arm, points=(plain,), cluster="local"),
        attempt=1,
        unique_name="u",
        site=Site(point_limit_s=60),
    )

    def limit_s(load: Accuracy | Agentic | FixedLengths) -> float:
        return spec.limit_s(dataclasses.replace(plain, workload=load))

    assert limit_s(FixedLengths(isl=8, osl=8, requests=9999)) == 60
    assert limit_s(FixedLengths(isl=8, osl=8, requests=9999, duration_s=100)) == 160
    assert limit_s(Agentic(trace="t", duration_s=100, cache_warmup_s=5)) == 60 + 7200 + 105
    assert limit_s(Accuracy(task="gsm_mini", limit=2)) == 60
    assert limit_s(Accuracy(task="gsm_mini", limit=500)) == 5000
    assert limit_s(Accuracy(task="gsm8k")) == 13190


def test_a_site_changes_what_is_launched_and_no_identity() -> None:
    site = Site(models={"random:0": "/models/mini"}, start_limit_s=900)
    planned = arm(start_limit_s=20)
    placed = site.placed(planned)
    assert (placed.model.weights, placed.start_limit_s) == ("/models/mini", 900)
    assert planned.model.weights == "random:0"
    assert Site(models={"hf:another/one": "/models/x"}).placed(planned) == planned


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    container = Container(runtime="pyxis", mounts=("/a:/a",), images="/images")
    site = Site(models={"random:0": "/m"}, container=container, start_limit_s=5, point_limit_s=6)
    spec = write_job(tmp_path, point(arm()), site=site)
    assert decode((tmp_path / "job.json").read_bytes(), JobSpec) == spec
