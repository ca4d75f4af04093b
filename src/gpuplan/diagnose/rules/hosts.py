"""Causes that a node's own counters show: NICs at their line rate, segments sent again."""

from collections.abc import Mapping

from gpuplan.diagnose.finding import Finding, evidence_of, percent
from gpuplan.domain.telemetry.observation import Telemetry

LINE_SHARE = 0.80
# Above it TCP spends its time in recovery [Mathis1997]: throughput falls with its square root.
RETRANSMITTED = 0.01

Hosts = Mapping[str, Mapping[str, float]]


def hosts_of(telemetry: Telemetry) -> Hosts:
    """Means of host metrics by node; those without a node count for all."""
    found: dict[str, dict[str, float]] = {}
    for series in telemetry.series:
        subject = telemetry.subjects[series.subject]
        if not subject.device and series.is_given.any():
            found.setdefault(subject.node, {})[series.metric] = series.mean()
    return found


def host_value(hosts: Hosts, node: str, metric: str) -> float | None:
    """The mean of a node's metric; one node's counters speak for devices that name it otherwise."""
    for name in (node, ""):
        if metric in hosts.get(name, {}):
            return hosts[name][metric]
    others = [metrics[metric] for metrics in hosts.values() if metric in metrics]
    return others[0] if len(others) == 1 else None


def network_findings(telemetry: Telemetry) -> list[Finding]:
    """Nodes whose NICs are full, or whose connections lose segments."""
    return [
        finding
        for node, metrics in hosts_of(telemetry).items()
        if (finding := _node(node, metrics)) is not None
    ]


def _node(node: str, metrics: Mapping[str, float]) -> Finding | None:
    share, lost = _line_share(metrics), _lost(metrics)
    rows = []
    if share is not None:
        text = f"{percent(share)} of the line rate"
        rows.append(evidence_of("NICs", text, f"below {percent(LINE_SHARE)}"))
    if lost is not None:
        rows.append(
            evidence_of("TCP retransmits", percent(lost), f"below {percent(RETRANSMITTED)}")
        )
    name = (node,) if node else ()
    if share is not None and share >= LINE_SHARE:
        is_lossy = lost is not None and lost >= RETRANSMITTED
        return Finding("nic_bound", 0.9 if is_lossy else 0.8, tuple(rows), name)
    if lost is not None and lost >= RETRANSMITTED:
        return Finding("packet_loss", 0.8, tuple(rows), name)
    return None


def _line_share(metrics: Mapping[str, float]) -> float | None:
    """The busier direction of the front network's NICs as a share of their line rate."""
    rates = [metrics.get(f"network_{way}_bytes_per_s", 0.0) for way in ("rx", "tx")]
    line = metrics.get("network_line_bytes_per_s", 0.0)
    return max(rates) / line if line > 0 else None


def _lost(metrics: Mapping[str, float]) -> float | None:
    sent = metrics.get("tcp_sent_per_s", 0.0)
    return metrics.get("tcp_retransmitted_per_s", 0.0) / sent if sent > 0 else None
