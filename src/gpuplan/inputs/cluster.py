"""cluster.yaml in, a cluster out; every problem with its line."""

from pathlib import Path

from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.documents.problems import Finding, refuse, validated
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.inputs.schema.cluster import ClusterSpec
from gpuplan.inputs.schema.nouns import noun_of

HOURS = (24, 168)


def read_cluster(path: Path) -> Cluster:
    """The cluster of a file; raises InputError with every problem found."""
    document = read_yaml(path)
    spec = validated(ClusterSpec, document)
    _check(document, spec)
    return noun_of(spec, Cluster)


def _check(document: Document, spec: ClusterSpec) -> None:
    """Names that point nowhere, and profiles of neither a day nor a week."""
    types = dict.fromkeys(group.accelerator for group in spec.nodes)
    teams = [team.name for team in spec.teams]
    fix = f"use one of {', '.join(types)}"
    findings = [
        Finding(("teams", t, "quotas", q, "accelerator"), f"no {quota.accelerator} here", fix)
        for t, team in enumerate(spec.teams)
        for q, quota in enumerate(team.quotas)
        if quota.accelerator not in types
    ]
    findings += [
        Finding(("teams", t, "name"), f"{name!r} twice", "name each team once")
        for t, name in enumerate(teams)
        if name in teams[:t]
    ]
    findings += _service_findings(spec, fix)
    findings += [
        Finding(("nodes", g, "max_nodes"), f"below min_nodes {group.min_nodes}", "give more")
        for g, group in enumerate(spec.nodes)
        if group.max_nodes is not None and group.max_nodes < group.min_nodes
    ]
    n_nodes = sum(group.nodes for group in spec.nodes)
    findings += [
        Finding(("maintenance", m, "nodes"), f"past the last of {n_nodes} nodes", "give fewer")
        for m, window in enumerate(spec.maintenance)
        if window.first_node + window.nodes > n_nodes
    ]
    refuse(document, findings)


def _service_findings(spec: ClusterSpec, fix: str) -> list[Finding]:
    types = {group.accelerator for group in spec.nodes}
    teams, findings = {team.name for team in spec.teams}, []
    for s, service in enumerate(spec.services):
        if service.accelerator not in types:
            where = ("services", s, "accelerator")
            findings.append(Finding(where, f"no {service.accelerator} here", fix))
        if service.team not in teams:
            known = "add it to teams"
            findings.append(Finding(("services", s, "team"), f"no team {service.team!r}", known))
        n = len(service.replicas_by_hour)
        if n not in HOURS:
            where = ("services", s, "replicas_by_hour")
            findings.append(Finding(where, f"{n} hours", "give 24 or 168"))
    return findings
