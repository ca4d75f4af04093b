"""The one writer of files: whole or not at all, and nothing but the file is touched."""

import errno
import os
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from gpuplan import files
from gpuplan.files import LEFTOVER_S, whole_file, why_not_writable, write_file

NEW = b"new" * 1000


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path):
    mask = os.umask(0o027)
    try:
        write_file(tmp_path / "new", NEW)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_file(path, NEW, is_lasting=True)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("made")
    write_file(tmp_path / "link", NEW)
    write_file(tmp_path / "dangling", NEW)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == (tmp_path / "made").read_bytes() == NEW


def test_a_pipe_is_written_into(tmp_path: Path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, NEW * 100)
    reader.join()
    assert found == [NEW * 100]
    assert names(tmp_path) == ["pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_into(tmp_path: Path):
    """A node of the test's own: the machine's devices are not for tests to lose."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("device nodes cannot be made here")
    write_file(device, NEW)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names(tmp_path) == ["null"]


def test_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, NEW)


@pytest.mark.parametrize("old", [b"", b"old"])
def test_a_full_disk_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes
):
    path = tmp_path / "plan.yaml"
    if old:
        path.write_bytes(old)

    def full(part: Path, content: bytes) -> None:
        with part.open("wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, NEW)
    assert names(tmp_path) == (["plan.yaml"] if old else [])
    assert not old or path.read_bytes() == old


def test_a_limit_on_the_size_of_files_leaves_the_old_file(tmp_path: Path):
    """As a quota does: the system itself refuses the bytes."""
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"old")
    code = """
        import pathlib, resource, signal, sys
        from gpuplan.files import write_file
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            write_file(pathlib.Path(sys.argv[1]), b"x" * 100_000)
        except OSError as error:
            print(error.strerror)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == os.strerror(errno.EFBIG)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["plan.yaml"]


@pytest.mark.parametrize("at", ["write", "chmod", "replace"])
def test_killed_at_any_step_the_old_file_or_the_new_one_is_there(tmp_path: Path, at: str):
    path = tmp_path / "plan.yaml"
    path.write_bytes(b"old")
    code = f"""
        import os, pathlib, signal, sys
        from gpuplan.files import write_file
        name = {{"write": "write_bytes", "chmod": "chmod", "replace": "replace"}}["{at}"]
        before = getattr(pathlib.Path, name)
        def dies(*given, **more):
            if name == "replace":
                before(*given, **more)
            os.kill(os.getpid(), signal.SIGKILL)
        setattr(pathlib.Path, name, dies)
        write_file(pathlib.Path(sys.argv[1]), b"new")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == (b"new" if at == "replace" else b"old")


def test_parts_of_killed_runs_are_cleared_away_when_they_are_old(tmp_path: Path):
    old, young, other = (tmp_path / f".{n}.tmp" for n in ("p[1].aaa", "p[1].bbb", "p1.ccc"))
    for leftover in (old, young, other):
        leftover.write_bytes(b"part")
    past_s = time.time() - 2 * LEFTOVER_S
    os.utime(old, (past_s, past_s))
    os.utime(other, (past_s, past_s))
    write_file(tmp_path / "p[1]", NEW)
    assert names(tmp_path) == [".p1.ccc.tmp", ".p[1].bbb.tmp", "p[1]"]


def test_whoever_fails_while_writing_leaves_nothing(tmp_path: Path):
    def interrupted() -> None:
        with whole_file(tmp_path / "out") as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


def test_what_cannot_be_written_is_known_beforehand(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    assert why_not_writable(tmp_path / "new") == ""
    assert why_not_writable(tmp_path / "file") == ""
    assert why_not_writable(tmp_path) == os.strerror(errno.EISDIR)
    assert why_not_writable(tmp_path / "none" / "new") == os.strerror(errno.ENOENT)
    assert why_not_writable(tmp_path / "file" / "new") == os.strerror(errno.ENOTDIR)
    assert "null" in why_not_writable(tmp_path / "zero\0byte")
    assert files.LEFTOVER_S > 0
