"""How measured tables write layouts: the ranks that a note names, beside those of the columns."""

import re

from gpuplan.domain.inference.serving import ServingLayout

SPREAD = re.compile(r"attention_dp=(\d+) moe_tp=(\d+) moe_ep=(\d+)")
DEALT = re.compile(r"DEP(\d+)")
RANKS = re.compile(r"\b(tp|pp|ep|dp)(?:[ _-]?size)?[ _]?[=:]?[ _]?(\d+)\b")


def noted_layout(note: str, n: int, *, tp: int, pp: int) -> ServingLayout | None:
    """What a note says in one of the ways that sources write it; None where it says nothing.

    `tp` is 0 where its column is empty; columns win over words.
    """
    spread, dealt = SPREAD.search(note), DEALT.search(note)
    if spread:
        dp = int(spread[1])
        each = tp if tp > 1 and dp == 1 else max(1, n // dp // pp)
        return ServingLayout(tp=each, pp=pp, dp=dp, ep=int(spread[3]))
    if dealt or "attention-DP" in note:
        n_ranks = int(dealt[1]) if dealt else n
        return ServingLayout(tp=1, dp=n_ranks, ep=n_ranks)
    if "Pipeline" in note and tp <= 1:
        return ServingLayout(tp=1, pp=n)
    ranks = {word: int(size) for word, size in RANKS.findall(note.lower())}
    return _in_words(ranks, n, tp=tp, pp=pp)


def _in_words(ranks: dict[str, int], n: int, *, tp: int, pp: int) -> ServingLayout | None:
    """`TP4 PP2`, `tp=8 ep=8`, `DP8 EP8`; copies without shared experts are replicas."""
    ep = ranks.get("ep", 1)
    dp = ranks.get("dp", 1) if ep > 1 else 1
    stages = pp if pp > 1 else ranks.get("pp", 1)
    named = tp or ranks.get("tp", 0)
    if ep > 1:
        # Sources that name experts' ranks leave the tensor ranks at 1: all devices hold a part.
        each = tp if tp > 1 and dp == 1 else max(1, n // stages // dp)
        return ServingLayout(tp=each, pp=stages, dp=dp, ep=ep)
    if "tp" not in ranks and "pp" not in ranks:
        return None
    return ServingLayout(tp=named or max(1, n // stages), pp=stages)
