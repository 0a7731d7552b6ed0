from __future__ import annotations

from infx.domain.plan import Job
from infx.domain.point import Accuracy, FixedLengths
from infx.job.spec import JobSpec
from tests.job.jobs import arm, point


def test_an_evaluation_of_many_questions_gets_the_time_for_them() -> None:
    import dataclasses

    plain = point(arm(), conc=1)
    spec = JobSpec(
        run_id="r",
        run_dir="/r",
        job=Job(job_id="j", name="j", arm=plain.arm, points=(plain,), cluster="local"),
        attempt=1,
        unique_name="u",
        point_limit_s=60,
    )

    def limit_s(load: Accuracy | FixedLengths) -> float:
        return spec.limit_s(dataclasses.replace(plain, workload=load))

    assert limit_s(FixedLengths(isl=8, osl=8, requests=9999)) == 60
    assert limit_s(Accuracy(task="gsm_mini", limit=2)) == 60
    assert limit_s(Accuracy(task="gsm_mini", limit=500)) == 5000
    assert limit_s(Accuracy(task="gsm8k")) == 13190
