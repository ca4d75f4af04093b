"""A cluster file and a trace in; a cluster and jobs that mean the same by the same names out."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SlicePlaces
from gpuplan.domain.cluster.jobs import Jobs, column
from gpuplan.domain.columns import floats
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.errors import InputError
from gpuplan.inputs.cluster import read_cluster
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.selection.slices import mig_rules
from gpuplan.simulation.cluster.run import with_all_teams


def described(cluster_file: Path, jobs_file: Path) -> tuple[Cluster, Jobs]:
    """The cluster with every team of the trace, and its jobs."""
    cluster = with_slices(read_cluster(cluster_file))
    jobs = as_named(cluster, read_jobs(jobs_file))
    return with_all_teams(cluster, jobs), jobs


def as_named(cluster: Cluster, jobs: Jobs) -> Jobs:
    """Jobs that ask for GPU types by the cluster's names, and slices by their shares."""
    names = jobs.needs.accelerator_names
    meant = tuple(_meant(name, cluster.accelerators) for name in names)
    renamed = (f"GPU type {a} taken as {b}" for a, b in zip(names, meant, strict=True) if a != b)
    needs = replace(jobs.needs, accelerator_names=meant)
    return with_slice_shares(cluster, replace(jobs, needs=needs, remarks=(*jobs.remarks, *renamed)))


def _meant(name: str, known: tuple[str, ...]) -> str:
    """The cluster's one type of that name: as written, by the catalog, or by its first words."""
    same, catalog = [one for one in known if _plain(one) == _plain(name)], read_catalog()
    same = same or [a for a in known if catalog_key(a, catalog) == catalog_key(name, catalog)]
    same = same or [one for one in known if _plain(one).startswith(f"{_plain(name)}-")]
    return same[0] if len(same) == 1 else name


def known_card(name: str, catalog: Catalog) -> Accelerator | None:
    """The accelerator of the catalog; None for a word of the user's own."""
    try:
        return find_accelerator(name, catalog).accelerator
    except InputError:
        return None


def catalog_key(name: str, catalog: Catalog) -> str:
    """The catalog's name of it, or the word itself."""
    known = known_card(name, catalog)
    return name if known is None else str(known.id)


def with_slices(cluster: Cluster) -> Cluster:
    """The cluster with the MIG profiles that the catalog knows of its GPU types."""
    return replace(cluster, groups=tuple(map(_sliced, cluster.groups)))


def _sliced(group: NodeGroup) -> NodeGroup:
    known, own = read_catalog().mig_profiles, _plain(group.accelerator)
    profiles = [p for p in known if _plain(p.accelerator) == own]
    shares = {p.name: p.compute_frac for p in profiles}
    places = tuple(
        SlicePlaces(
            profile=rule.kind,
            starts=rule.starts,
            n_places=rule.n_places,
            share_frac=shares[rule.kind],
        )
        for rule in mig_rules(profiles)
    )
    return replace(group, slices=places)


def with_slice_shares(cluster: Cluster, jobs: Jobs) -> Jobs:
    """Jobs on MIG slices count as their profile's share of a GPU's compute."""
    needs = jobs.needs
    if not len(needs.profile):
        return jobs
    known = {one.profile: one.share_frac for g in cluster.groups for one in g.slices}
    shares = np.array([*(known.get(name, 1.0) for name in needs.profile_names), 1.0])
    share = np.minimum(column(needs.share_frac, len(jobs), 1.0), shares[needs.profile])
    return replace(jobs, needs=replace(needs, share_frac=floats(share)))


def _plain(name: str) -> str:
    return name.lower().replace(" ", "-")
