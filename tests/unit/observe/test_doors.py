"""Files as they lie on disk: packed, archived, captured, saved from a server."""

import gzip
import io
import json
import tarfile

import pytest

from gpuplan.errors import InputError
from gpuplan.observe.read import read_telemetry, read_text

TABLE = "timestamp,gpu,gpu_util_frac\n1,0,0.25\n2,0,0.75\n"


def levels(telemetry) -> list[float]:
    return telemetry.of("gpu_util_frac")[0].value.tolist()


def archive(path, files: dict[str, str]):
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            made.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("data", [TABLE.encode(), b"\xef\xbb\xbf" + TABLE.encode()])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_packing_and_byte_order_marks_do_not_matter(tmp_path, pack, data):
    path = tmp_path / "t.csv"
    path.write_bytes(pack(data))
    assert levels(read_telemetry(path)) == [0.25, 0.75]


def test_an_archive_of_one_file_under_the_heading_beside_it(tmp_path):
    head, _, rows = TABLE.partition("\n")
    (tmp_path / "t.header").write_text(head)
    assert levels(read_telemetry(archive(tmp_path / "t.tar.gz", {"t.csv": rows}))) == [0.25, 0.75]


def test_an_archive_of_two_files_is_refused(tmp_path):
    path = archive(tmp_path / "t.tar.gz", {"a.csv": TABLE, "b.csv": TABLE})
    with pytest.raises(InputError, match="an archive of 2 files"):
        read_telemetry(path)


def test_a_capture_holds_the_sections_that_were_asked_as_tables():
    text = (
        "# $ nvidia-smi -L\nGPU 0: NVIDIA L40S\n"
        "# $ nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv\n"
        "timestamp, index, utilization.gpu [%]\n2024/03/31 16:48:55.963, 0, 25 %\n"
        "# $ uname -a\nLinux\n"
    )
    telemetry = read_text(text, source="capture")
    assert telemetry.format == "nvidia-smi capture"
    assert levels(telemetry) == [0.25]


def answer(*result, **more) -> dict:
    return {"status": "success", "data": {"resultType": "vector", "result": list(result)}, **more}


USE = {"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"}, "value": [1.7e9, "25"]}


def test_a_vector_with_warnings_and_scalars():
    telemetry = read_text(json.dumps(answer(USE, "7", warnings=["partial"])), source="saved")
    assert levels(telemetry) == [0.25]
    assert {quirk.what for quirk in telemetry.quirks} == {"the server warns", "a scalar answer"}
