"""Software: each rule is shown a stack that breaks it and one that does not."""

import csv
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Oracle

from gpuplan.catalog.load import read_market_sources
from gpuplan.catalog.software.rules import check_stack, has_binary
from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.software import SoftwareStack, allows, version
from gpuplan.domain.system.findings import Finding
from gpuplan.errors import InputError
from shared_data import shared_file

MATRIX = read_software()
ARCHS = {arch.id: arch for arch in MATRIX.architectures}
WHEELS = {(str(w.cuda), w.platform): w for w in MATRIX.wheels}

releases = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
versions = st.tuples(releases, st.sampled_from(["", ".post1", "rc1", ".dev3", "b2", "+cu128"])).map(
    "".join
)


def of_rule(findings: tuple[Finding, ...], rule: str) -> list[Finding]:
    return [finding for finding in findings if finding.rule == rule]


def serious(stack: SoftwareStack) -> set[str]:
    return {f.rule for f in check_stack(stack) if f.severity != "note"}


# --- versions ----------------------------------------------------------------------------------


@given(versions, versions)
def test_versions_order_as_the_reference_orders_them(left: str, right: str) -> None:
    ours, theirs = (version(left), version(right)), (
        Oracle(left.split("+", maxsplit=1)[0]), Oracle(right.split("+", maxsplit=1)[0])
    )  # fmt: skip
    assert (ours[0] < ours[1]) == (theirs[0] < theirs[1])
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])


@given(st.sampled_from(["==", "!=", ">=", "<=", ">", "<", "~="]), releases, releases)
def test_requirements_admit_what_the_reference_admits(operator: str, bound: str, got: str) -> None:
    if operator == "~=" and "." not in bound:
        return
    assert allows(operator + bound, version(got)) == SpecifierSet(operator + bound).contains(got)


@pytest.mark.parametrize(
    ("specifier", "got", "admitted"),
    [("!=5.0.*,>=4.56.0", "5.0.3", False), ("!=5.0.*,>=4.56.0", "5.1", True), ("", "1", True),
     ("==2.9.*", "2.9.1", True), ("<3.14,>=3.9", "3.13", True)],
)  # fmt: skip
def test_requirements_with_wildcards(specifier: str, got: str, admitted: bool) -> None:
    assert allows(specifier, version(got)) is admitted


def test_versions_are_not_strings() -> None:
    assert version("2.10") > version("2.9")
    assert version("570.124.06") > version("570.26")
    assert version("12.8") == version("12.8.0")


# --- rules -------------------------------------------------------------------------------------


def test_a_sound_stack_has_nothing_to_mend() -> None:
    stack = SoftwareStack(
        arch="sm_90", driver="580.95.05", cuda="13.0", torch="2.13.0", framework="vllm",
        framework_version="0.32.0", precision="fp8", python="3.12",
    )  # fmt: skip
    assert check_stack(stack) == ()


@pytest.mark.parametrize(
    ("driver", "cuda", "severity", "needs"),
    [
        ("450.51.06", "12.8", "error", "525.60.13"),
        ("525.60.13", "12.8", "warning", "570.26"),
        ("570.26", "12.8", None, ""),
        ("570.86", "12.8.1", "warning", "570.124.06"),
        ("575.57.08", "13.0", "error", "580"),
        ("580", "13.0", "warning", "580.65.06"),
        ("580.65.06", "13.0", None, ""),
        ("595.45.04", "13.2", None, ""),
        ("535.54.03", "11.8", None, ""),
    ],
)
def test_driver_must_carry_the_toolkit(
    driver: str, cuda: str, severity: str | None, needs: str
) -> None:
    found = of_rule(
        check_stack(SoftwareStack(arch="sm_90", driver=driver, cuda=cuda)), "driver-cuda"
    )
    assert [f.severity for f in found] == ([severity] if severity else [])
    assert all(needs in f.what + f.fix for f in found)


def test_windows_has_its_own_drivers() -> None:
    old = SoftwareStack(arch="sm_90", driver="527.00", cuda="12.8", system="windows")
    (finding,) = of_rule(check_stack(old), "driver-cuda")
    assert "527.41" in finding.what


@pytest.mark.parametrize("torch", ["2.11.0", "2.13.0", "2.15.0"])
def test_volta_is_dropped_by_the_default_builds(torch: str) -> None:
    findings = check_stack(SoftwareStack(arch="sm_70", torch=torch))
    assert of_rule(findings, "arch-cuda")[0].severity == "error"
    assert "12.6" in of_rule(findings, "arch-cuda")[0].fix
    assert of_rule(findings, "cuda-assumed")[0].severity == "note"


def test_volta_still_runs_on_the_older_build() -> None:
    assert serious(SoftwareStack(arch="sm_70", torch="2.13.0", cuda="12.6")) == set()


def test_blackwell_needs_a_new_enough_build_and_the_fix_names_it() -> None:
    findings = check_stack(SoftwareStack(arch="sm_100", torch="2.13.0", cuda="12.6"))
    assert of_rule(findings, "arch-cuda")[0].fix == "use a build for CUDA 12.8 or newer"
    assert of_rule(findings, "wheel-arch")[0].fix == "use its build for CUDA 13.0, 13.2"


def test_compute_capability_is_no_ranking() -> None:
    wheel = WHEELS["13.0", "x86_64"]
    only_100 = [a for a in wheel.archs if a != (12, 0)]
    assert has_binary(wheel, ARCHS["sm_120"])
    older = replace(wheel, archs=tuple(only_100), ptx=None)
    assert not has_binary(older, ARCHS["sm_120"])
    assert has_binary(wheel, ARCHS["sm_89"])  # by the binary for 8.6
    assert not has_binary(WHEELS["13.0", "aarch64"], ARCHS["sm_75"])
    assert "sm_121" not in next(
        f.archs for f in MATRIX.frameworks if (f.framework, f.what) == ("vllm", "fp4")
    )


@pytest.mark.parametrize(
    ("arch", "precision", "able"),
    [
        ("sm_80", "fp8", False), ("sm_86", "fp8", False), ("sm_89", "fp8", True),
        ("sm_90", "fp8", True), ("sm_89", "nvfp4", False), ("sm_90", "mxfp4", False),
        ("sm_100", "nvfp4", True), ("sm_120", "nvfp4", True), ("sm_75", "bf16", False),
        ("sm_70", "bf16", False), ("gfx90a", "fp8", False), ("gfx942", "fp8", True),
        ("gfx942", "mxfp4", False), ("gfx950", "mxfp4", True), ("sm_80", "int4", True),
    ],
)  # fmt: skip
def test_precision_must_be_in_the_hardware(arch: str, precision: str, able: bool) -> None:
    findings = of_rule(check_stack(SoftwareStack(arch=arch, precision=precision)), "arch-precision")
    assert [f.severity for f in findings] == ([] if able else ["error"])


def test_the_fix_for_fp8_on_ampere_names_what_does_run() -> None:
    stack = SoftwareStack(arch="sm_80", precision="fp8", framework="vllm")
    (finding,) = of_rule(check_stack(stack), "arch-precision")
    assert "bf16" in finding.fix
    assert "weights alone" in finding.fix
    assert "Hopper" in finding.fix


def test_framework_pins_its_torch() -> None:
    stack = SoftwareStack(arch="sm_90", framework="vllm", framework_version="0.10.2", torch="2.9.0")
    (finding,) = of_rule(check_stack(stack), "framework-torch")
    assert finding.fix.startswith("install torch==2.8.0")
    fitting = SoftwareStack(
        arch="sm_90", framework="vllm", framework_version="0.10.2", torch="2.8.0"
    )
    assert serious(fitting) == set()


def test_a_version_between_two_that_agree_is_judged_and_others_are_told() -> None:
    between = SoftwareStack(
        arch="sm_90", framework="vllm", framework_version="0.21.0", torch="2.13.0"
    )
    assert "framework-torch" in serious(between)  # 0.20.2 and 0.22.1 both need 2.11.0
    unsure = SoftwareStack(
        arch="sm_90", framework="vllm", framework_version="0.26.0", torch="2.13.0"
    )
    (note,) = of_rule(check_stack(unsure), "requirements-known")
    assert "0.25.1 needs torch==2.11.0" in note.what
    newer = SoftwareStack(arch="sm_90", framework="vllm", framework_version="9.0")
    assert of_rule(check_stack(newer), "requirements-known")[0].severity == "note"


def test_python_range_is_of_minor_versions() -> None:
    base = {"arch": "sm_90", "framework": "vllm", "framework_version": "0.12.0"}
    assert serious(SoftwareStack(**base, python="3.13.9")) == set()
    assert "python-version" in serious(SoftwareStack(**base, python="3.14.0"))
    assert serious(SoftwareStack(arch="sm_90", torch="2.12.1", python="3.14.2")) == set()


def test_torch_without_such_a_build_names_the_builds() -> None:
    findings = check_stack(SoftwareStack(arch="sm_90", torch="2.13.0", cuda="12.8"))
    assert of_rule(findings, "torch-cuda")[0].fix == "use a build for CUDA 12.6, 13.0, 13.2"
    (note,) = of_rule(
        check_stack(SoftwareStack(arch="sm_90", torch="2.13", cuda="13.2")), "torch-cuda"
    )
    assert note.severity == "note"


def test_frameworks_do_not_run_everywhere() -> None:
    assert "framework-arch" in serious(SoftwareStack(arch="sm_75", framework="tensorrt-llm"))
    assert "framework-arch" in serious(SoftwareStack(arch="gfx942", framework="tensorrt-llm"))
    assert "framework-arch" in serious(SoftwareStack(arch="sm_70", framework="vllm"))
    assert serious(SoftwareStack(arch="sm_75", framework="vllm")) == set()
    weak = of_rule(check_stack(SoftwareStack(arch="sm_75", framework="sglang")), "framework-arch")
    assert weak[0].severity == "warning"


def test_vendors_do_not_mix_and_rocm_must_be_new_enough() -> None:
    assert "vendor" in serious(SoftwareStack(arch="gfx942", cuda="12.8"))
    assert "vendor" in serious(SoftwareStack(arch="sm_90", rocm="6.3"))
    (finding,) = of_rule(check_stack(SoftwareStack(arch="gfx950", rocm="6.4")), "arch-rocm")
    assert finding.fix == "use ROCm 7.0 or newer"
    assert serious(SoftwareStack(arch="gfx942", rocm="6.4", framework="vllm")) == set()


def test_all_that_is_misspelt_is_told_at_once() -> None:
    stack = SoftwareStack(arch="sm_9", driver="new", framework="vlm", precision="fp9")
    with pytest.raises(InputError) as caught:
        check_stack(stack)
    assert {p.where for p in caught.value.problems} == {"arch", "driver", "framework", "precision"}
    assert "sm_90" in str(caught.value)


@given(
    st.builds(
        SoftwareStack,
        arch=st.sampled_from(sorted(ARCHS)),
        driver=st.none() | versions,
        cuda=st.none() | versions,
        torch=st.none() | versions,
        framework=st.none() | st.sampled_from(["vllm", "sglang", "tensorrt-llm"]),
        framework_version=st.none() | versions,
        precision=st.none() | st.sampled_from(["bf16", "fp8", "nvfp4", "int4"]),
        python=st.none() | versions,
    )
)
def test_any_versions_are_judged_and_each_finding_says_how_to_mend(stack: SoftwareStack) -> None:
    for finding in check_stack(stack):
        assert finding.where
        assert finding.what
        assert finding.fix


# --- against the raw tables --------------------------------------------------------------------


@pytest.mark.shared
def test_architectures_agree_with_the_published_table() -> None:
    with shared_file("catalog/compute_capability.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 10
    for row in rows:
        arch = ARCHS["sm_" + row["cc"].replace(".", "")]
        for precision in ("bf16", "fp8", "fp4"):
            assert (precision in arch.precisions) == (row[precision] == "yes"), arch.id
        assert arch.first_cuda == version(row["first_cuda"])


def test_every_source_is_described() -> None:
    sources = read_market_sources()
    rows = (*MATRIX.architectures, *MATRIX.drivers, *MATRIX.torch, *MATRIX.wheels,
            *MATRIX.packages, *MATRIX.frameworks)  # fmt: skip
    assert {row.source for row in rows} <= sources.keys()
