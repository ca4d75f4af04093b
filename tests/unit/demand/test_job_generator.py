"""A generator of jobs: the trace's own rates, sizes and days, judged by weeks it has not seen."""

import numpy as np
import pytest

from gpuplan.demand.jobs import draw_jobs, fit_jobs, taken
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs

WEEK, DAY, HOUR = 604_800.0, 86_400.0, 3600.0


def weeks(n=6, seed=4, *, busy_cv=0.0):
    """Jobs by day, none at night; team b has twice the jobs of a, and larger ones."""
    rng = np.random.default_rng(seed)
    rows = []
    for day in range(7 * n):
        factor = rng.gamma(1 / busy_cv**2, busy_cv**2) if busy_cv else 1.0
        for team, mean in ((0, 40), (1, 80)):
            k = rng.poisson(mean * factor)
            at = day * DAY + rng.uniform(8, 20, k) * HOUR
            rows += [(t, rng.exponential(600 + 600 * team), 1 + 7 * team, team) for t in at]
    rows.sort()
    arrive, duration, gpus, team = map(np.array, zip(*rows, strict=True))
    return Jobs(
        arrive_s=arrive - arrive[0],
        duration_s=duration,
        n_accelerators=gpus.astype(np.int64),
        team=team.astype(np.int64),
        team_names=("a", "b"),
        week_s=float(arrive[0]),
        needs=JobNeeds(n_cpus=gpus * 8.0),
    )


def part(jobs, low_s, high_s):
    inside = np.flatnonzero((jobs.arrive_s >= low_s) & (jobs.arrive_s < high_s))
    return taken(jobs, inside, jobs.arrive_s[inside] - low_s, (jobs.week_s + low_s) % WEEK)


def test_drawn_weeks_are_like_a_week_that_was_left_out():
    jobs = weeks()
    seen, left_out = part(jobs, 0, 5 * WEEK), part(jobs, 5 * WEEK, 6 * WEEK)
    drawn = draw_jobs(fit_jobs(seen), span_s=WEEK, week_s=left_out.week_s, seed=1)
    assert len(drawn) == pytest.approx(len(left_out), rel=0.1)
    work = [float((j.duration_s * j.n_accelerators).sum()) for j in (drawn, left_out)]
    assert work[0] == pytest.approx(work[1], rel=0.15)
    shares = [float((j.team == 1).mean()) for j in (drawn, left_out)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05)


def test_nights_stay_empty():
    jobs = weeks()
    drawn = draw_jobs(fit_jobs(jobs), span_s=WEEK, week_s=0.0, seed=2)
    hour = (drawn.arrive_s // HOUR) % 24
    assert ((hour >= 8) & (hour < 20)).all()


def test_what_belongs_together_stays_together():
    drawn = draw_jobs(fit_jobs(weeks()), span_s=WEEK, week_s=0.0, seed=3)
    assert (drawn.n_accelerators == 1 + 7 * drawn.team).all()
    assert (drawn.needs.n_cpus == drawn.n_accelerators * 8.0).all()


def test_busy_days_are_busy_throughout():
    calm, busy = fit_jobs(weeks()), fit_jobs(weeks(12, busy_cv=0.5))
    assert calm.day_cv_ratio.max() < 0.15
    assert busy.day_cv_ratio == pytest.approx(0.5, abs=0.15)
    counts = [
        np.bincount((draw_jobs(g, span_s=20 * DAY, week_s=0.0).arrive_s // DAY).astype(int))
        for g in (calm, busy)
    ]
    assert counts[1].std() > 2 * counts[0].std()


def test_same_seed_same_bytes_other_seed_other_stream():
    fitted = fit_jobs(weeks(2))
    first, again, other = (
        draw_jobs(fitted, span_s=DAY, week_s=0.0, seed=seed).arrive_s for seed in (1, 1, 2)
    )
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_short_traces_have_no_days_to_compare():
    fitted = fit_jobs(part(weeks(2), 0, DAY))
    assert (fitted.day_cv_ratio == 0).all()
