"""Each rule of the software matrix: one mismatch that it must find, and nothing beside it."""

from dataclasses import replace

import pytest

from gpuplan.catalog.software.rules import check_stack, has_binary
from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.software import DriverBranch, SoftwareStack, Wheel, version
from gpuplan.domain.system.findings import Finding

MATRIX = read_software()
SOUND = SoftwareStack(
    arch="sm_90",
    driver="580.95.05",
    cuda="13.0",
    torch="2.13.0",
    framework="vllm",
    framework_version="0.32.0",
    precision="fp8",
    python="3.12",
)


def findings(**changes: object) -> tuple[Finding, ...]:
    return check_stack(replace(SOUND, **changes))


@pytest.mark.parametrize(
    ("changes", "severity", "rule"),
    [
        ({"torch": "2.11.0"}, "error", "framework-torch"),
        ({"python": "3.8"}, "error", "python-version"),
        ({"cuda": "12.8", "driver": "595.45.04"}, "error", "torch-cuda"),
        ({"driver": "575.57.08"}, "error", "driver-cuda"),
        ({"driver": "580.65"}, "warning", "driver-cuda"),
        ({"arch": "sm_70"}, "error", "arch-cuda"),
        ({"arch": "sm_80"}, "error", "arch-precision"),
        ({"precision": "nvfp4"}, "error", "arch-precision"),
        ({"framework": "tensorrt-llm", "arch": "sm_75"}, "error", "framework-arch"),
        ({"arch": "sm_121", "precision": "nvfp4"}, "warning", "framework-precision"),
        ({"rocm": "7.0"}, "error", "vendor"),
        ({"arch": "sm_75", "platform": "aarch64"}, "error", "wheel-arch"),
    ],
)
def test_a_planted_mismatch_is_found(changes: dict[str, object], severity: str, rule: str):
    assert check_stack(SOUND) == ()
    found = findings(**changes)
    assert (severity, rule) in {(f.severity, f.rule) for f in found}
    assert all(f.fix for f in found)


@pytest.mark.parametrize(
    ("driver", "month", "severity", "said"),
    [
        ("535.54.03", "2026-05", "note", "gets fixes until 2026-06"),
        ("535.54.03", "2026-06", "note", "gets fixes until 2026-06"),
        ("535.54.03", "2026-07", "warning", "no fixes any more since 2026-06"),
        ("550.54.15", "2020-01", "warning", "gets no fixes any more"),  # ended, no month published
        ("595.45.04", "2026-11", "note", "(production) gets fixes until 2027-03"),
        ("595.45.04", None, "note", "(production) gets fixes until 2027-03"),
    ],
)
def test_lines_of_drivers_end(driver: str, month: str | None, severity: str, said: str):
    (found,) = check_stack(SoftwareStack(arch="sm_90", driver=driver), month=month)
    assert (found.rule, found.severity) == ("driver-support", severity)
    assert said in found.what
    assert found.fix == "go to 580, a long-term line until 2028-06"


def test_the_longest_lasting_line_needs_no_advice():
    stack = SoftwareStack(arch="sm_90", driver="580.95.05")
    assert check_stack(stack, month="2026-11") == ()
    assert check_stack(stack, month="2028-07")[0].severity == "warning"


def test_advice_follows_the_table_of_lines():
    newer = DriverBranch(number=700, kind="long-term", ends="2031-06", source="x")
    matrix = replace(MATRIX, branches=(*MATRIX.branches, newer))
    (found,) = check_stack(SoftwareStack(arch="sm_90", driver="580.95.05"), matrix)
    assert found.fix == "go to 700, a long-term line until 2031-06"


def test_amd_has_no_lines_of_nvidia_drivers():
    assert check_stack(SoftwareStack(arch="gfx942", driver="535.54.03"), month="2026-11") == ()


@pytest.mark.parametrize(
    ("stack", "rule"),
    [
        (SoftwareStack(arch="sm_90", torch="9.9", cuda="13.0"), "torch-known"),
        (SoftwareStack(arch="sm_90", driver="400.0", cuda="10.0"), "driver-known"),
        (SoftwareStack(arch="sm_80", torch="2.0", cuda="11.7"), "wheel-arch"),
        (
            SoftwareStack(arch="sm_90", framework="tensorrt-llm", framework_version="1.0"),
            "requirements-known",
        ),
    ],
)
def test_what_no_table_holds_is_a_note_never_a_verdict(stack: SoftwareStack, rule: str):
    assert ("note", rule) in {(f.severity, f.rule) for f in check_stack(stack)}


def test_a_wheel_that_is_only_believed_to_lack_code_warns():
    (experimental, missing) = check_stack(SoftwareStack(arch="sm_70", torch="2.7", cuda="12.8"))
    assert (experimental.rule, experimental.severity) == ("torch-cuda", "note")
    assert missing.severity == "warning"
    assert "as far as is known" in missing.what
    assert missing.fix == "use its build for CUDA 11.8, 12.6"


def wheel(*archs: tuple[int, int], ptx: tuple[int, int] | None = None) -> Wheel:
    return Wheel(
        cuda=version("13.0"), platform="x86_64", archs=archs, ptx=ptx, is_sure=True, source="x"
    )


@pytest.mark.parametrize(
    ("archs", "arch", "runs"),
    [
        (((8, 0),), "sm_86", True),  # within a major version, from the minor on
        (((8, 6),), "sm_80", False),
        (((9, 0),), "sm_100", False),
        (((10, 0),), "sm_120", False),
        (((12, 0),), "sm_121", True),
        ((), "sm_90", False),
        (((9, 0),), "gfx942", False),
    ],
)
def test_code_runs_within_its_major_version(archs: tuple, arch: str, runs: bool):
    known = {one.id: one for one in MATRIX.architectures}
    assert has_binary(wheel(*archs), known[arch]) is runs


def test_code_for_translation_is_a_slow_start_not_an_error():
    translated = wheel((8, 0), ptx=(9, 0))
    matrix = replace(MATRIX, wheels=(translated,))
    stack = SoftwareStack(arch="sm_100", torch="2.13", cuda="13.0")
    (found,) = check_stack(stack, matrix)
    assert (found.severity, found.rule) == ("note", "wheel-arch")
    assert "translated from PTX" in found.what
    older = SoftwareStack(arch="sm_75", torch="2.13", cuda="13.0")
    assert [f.severity for f in check_stack(older, matrix)] == ["error"]


def test_nothing_said_is_nothing_judged():
    assert check_stack(SoftwareStack(arch="sm_90")) == ()
    assert check_stack(SoftwareStack(arch=" SM_90 ")) == ()
