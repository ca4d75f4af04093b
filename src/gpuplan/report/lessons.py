"""What the documents teach, told with the user's own numbers: lessons, takeaways, questions."""

from collections.abc import Iterator
from typing import NamedTuple

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.sheet import Sheet
from gpuplan.domain.telemetry.diagnosis import Diagnosis, UseFigures
from gpuplan.report.document import Document, result_sheet
from gpuplan.report.formats import accelerator_name, plural
from gpuplan.report.plan.document import plan_document
from gpuplan.report.table import table
from gpuplan.units import KW, KWH

# What goes wrong without the reason, by a word that the reason holds.
PITFALLS = (
    ("is not enough", "load over throughput, rounded up, ignores the queue at the peak"),
    ("may fail", "a fleet sized for the peak alone misses its SLOs on the first failure"),
    ("output tokens", "a price per token at full load is not what idle paid hours cost"),
    ("binding SLO", "more of what does not bind changes nothing"),
    ("cheapest", "the largest accelerator is not the cheapest way to meet an SLO"),
    ("MFU", "peak FLOP/s is not what a training step reaches"),
    ("memory", "weights alone are not what must fit"),
)


class Lesson(NamedTuple):
    """A thing to know, why it matters here, and the pitfall beside it."""

    topic: str
    why: str
    pitfall: str


class Question(NamedTuple):
    """A question to check oneself, and its answer from the same numbers."""

    question: str
    answer: str


class Takeaway(NamedTuple):
    """One of the five: match, choose, balance, scale, sustain."""

    takeaway: str
    here: str


def learn_sheet(found: Diagnosis | Answer) -> Sheet:
    """Lessons of telemetry or of a plan, ready to show."""
    if isinstance(found, Diagnosis):
        lessons, questions = [*_lessons(found)], [*_questions(found)]
        return _sheet(f"What {found.source} teaches", lessons, questions, [])
    document = plan_document(found)
    takeaways = [*_takeaways(document)]
    return _sheet(
        f"What the plan {found.name!r} teaches",
        [*_plan_lessons(document)],
        [*_plan_questions(document)],
        takeaways,
    )


def _sheet(
    head: str, lessons: list[Lesson], questions: list[Question], takeaways: list[Takeaway]
) -> Sheet:
    body = {
        "lessons": [one._asdict() for one in lessons],
        "questions": [one._asdict() for one in questions],
        "takeaways": [one._asdict() for one in takeaways],
    }
    tables = [
        table(
            "Five takeaways", takeaways, {"to do": lambda t: t.takeaway, "here": lambda t: t.here}
        ),
        table(
            "Lessons",
            lessons,
            {"topic": lambda x: x.topic, "why": lambda x: x.why, "pitfall": lambda x: x.pitfall},
        ),
        table(
            "Check yourself",
            questions,
            {"question": lambda q: q.question, "answer": lambda q: q.answer},
        ),
    ]
    return result_sheet(body, tables, head=head)


# ── telemetry ────────────────────────────────────────────────────────────────────────────────────


def _lessons(found: Diagnosis) -> Iterator[Lesson]:
    first = found.verdicts[0]
    rows = "; ".join(f"{row.what} {row.found}" for row in first.evidence)
    yield Lesson(
        "what the counters mean",
        f"{first.title} ({rows})",
        "one percentage has several explanations: the cause decides what helps",
    )
    if found.use is not None:
        yield from _use_lessons(found.use)
    quality = found.quality
    if quality.precision_frac is not None:
        recall = "unknown" if quality.recall_frac is None else f"{quality.recall_frac:.0%}"
        yield Lesson(
            "precision and recall",
            f"precision {quality.precision_frac:.0%} (useful share of paid GPU time), "
            f"recall {recall} (work done within its SLO)",
            "too many GPUs: recall without precision; too few: precision without recall",
        )


def _use_lessons(use: UseFigures) -> Iterator[Lesson]:
    yield Lesson(
        "peaks, not averages",
        f"mean utilization is {use.mean_frac:.0%}, the busiest minute {use.peak_frac:.0%}",
        "sizing for the mean fails at the peak; sizing for the peak idles in the valleys",
    )
    good = next((band.time_frac for band in use.bands if band.name == "good"), 0.0)
    yield Lesson(
        "the good band depends on the pool",
        f"{good:.0%} of the time is between 70 % and 90 %; a pool of {use.n_devices} bears "
        f"{use.safe_frac:.0%} before work queues",
        "70 % to 90 % is too much for few GPUs and too little for many",
    )


def _questions(found: Diagnosis) -> Iterator[Question]:
    first = found.verdicts[0]
    if found.use is not None:
        yield Question(
            f"Your GPUs show {found.use.mean_frac:.0%} on average. Is that good?",
            f"Not by itself: {first.title}. Demand and latency must be met too.",
        )
    more = {True: "Yes", False: "No", None: "These figures do not say"}
    action = first.actions[0]
    yield Question(
        "Would more GPUs help here?",
        f"{more[first.more_devices_help]}: {first.title}. First: {action.what} ({action.effect}).",
    )
    wasted = sum(one.accelerator_s for one in found.waste) / 3600
    yield Question(
        "How many paid GPU-hours did nothing useful?",
        f"{wasted:,.1f} GPU-hours: " + ("; ".join(one.cause for one in found.waste) or "none"),
    )


# ── plans ────────────────────────────────────────────────────────────────────────────────────────


def _takeaways(document: Document) -> Iterator[Takeaway]:
    plan, pools = document["plan"], document["plan"]["pools"]
    load = "; ".join(line for one in document["load"] for line in one["lines"][:1])
    yield Takeaway("match", f"{plural(len(pools), 'pool')} for {load}")
    fleet = "; ".join(
        f"{p['n_accelerators']} × {accelerator_name(p['accelerator'])} for {p['workload']}"
        for p in pools
    )
    rejected = len(document["rejected"])
    yield Takeaway(
        "choose", f"{fleet}; {rejected} other candidates were rejected, each for a reason"
    )
    peaks = [f"{p['workload']} {p['use']['peak_frac']:.0%}" for p in pools if p.get("use")]
    binding = document["explanation"]["binding"]
    yield Takeaway("balance", "; ".join([f"peak utilization {', '.join(peaks)}", *binding[:1]]))
    spend = document["explanation"]["next_spend"]
    spare = sum(p["n_spare_replicas"] for p in pools)
    yield Takeaway("scale", "; ".join([plural(spare, "spare replica"), *spend[:1]]))
    kwh = (plan["energy_j_per_month"] or 0.0) / KWH
    cost = plan["cost_usd_per_month"]["value"]
    watts = plan["power_w"]["value"] / KW
    yield Takeaway(
        "sustain", f"${cost:,.0f} a month, {watts:,.1f} kW at the most, {kwh:,.0f} kWh a month"
    )


def _plan_lessons(document: Document) -> Iterator[Lesson]:
    for text in document["explanation"]["why"]:
        pitfall = next((p for mark, p in PITFALLS if mark in text), "")
        yield Lesson("why this plan", text, pitfall)
    for naive in document["explanation"]["naive"]:
        yield Lesson("what a simple rule would buy", naive["fleet"], naive["answer"])


def _plan_questions(document: Document) -> Iterator[Question]:
    for naive in document["explanation"]["naive"]:
        yield Question(f"Would this do: {naive['question']}?", naive["answer"])
    for one in document["explanation"]["why_not"]:
        yield Question(f"Why not {one['question']}?", one["answer"])
    for one in document["explanation"]["crossovers"]:
        yield Question(
            f"When does the answer change ({one['what']})?", f"{one['at']}: {one['then']}"
        )
