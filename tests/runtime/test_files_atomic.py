import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dilim.runtime.files import load_arrays, save_arrays, write_atomic


def test_write_atomic_writes_and_replaces(tmp_path):
    path = tmp_path / "file.bin"
    write_atomic(path, b"old and long")
    write_atomic(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_flushes_file_then_renames_then_flushes_folder(tmp_path, monkeypatch):
    happened = []
    fsync, replace = os.fsync, os.replace

    def recording_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        happened.append("flush folder" if is_folder else "flush file")
        fsync(descriptor)

    def recording_replace(source, target):
        happened.append("rename")
        assert Path(source).read_bytes() == b"data"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "replace", recording_replace)
    write_atomic(tmp_path / "file", b"data")
    expected = ["flush file", "rename"] + (["flush folder"] if os.name != "nt" else [])
    assert happened == expected


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, function, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*args):
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)) as caught:
        write_atomic(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path.resolve())
        assert "cannot write the file: No space left; the disk is full" in str(caught.value)


def test_unwritable_folder_says_so(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied; the folder must be writable"):
        write_atomic(tmp_path / "file", b"new")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_really_unwritable_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="the folder must be writable"):
        write_atomic(tmp_path / "file", b"new")
    tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == []


def test_missing_folder_and_folder_as_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"create the folder first.*'.*missing.file'"):
        write_atomic(tmp_path / "missing" / "file", b"x")
    with pytest.raises(FileExistsError, match="is a folder or a device, not a file"):
        write_atomic(tmp_path, b"x")
    (tmp_path / "plain").write_bytes(b"old")
    with pytest.raises(NotADirectoryError, match="a part of the path is a file"):
        write_atomic(tmp_path / "plain" / "file", b"x")
    assert os.listdir(tmp_path) == ["plain"]


def test_folder_that_cannot_be_flushed_is_no_error(tmp_path, monkeypatch):
    fsync = os.fsync

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_keeps_permissions_and_follows_links(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    umask = os.umask(0o027)
    try:
        write_atomic(path, b"first")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    write_atomic(link, b"second")
    assert link.is_symlink()
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


# ----- killed while saving ------------------------------------------------------------------------

SAVE_FOREVER = """
import itertools, sys
import numpy as np
from dilim.runtime.files import save_arrays

path, first = sys.argv[1], int(sys.argv[2])
for version in itertools.count(first):
    arrays = {name: np.full(250_000, version) for name in "ab"}
    save_arrays(path, arrays, {"kind": "test", "version": version})
    print(version, flush=True)
"""

DIE_AT = """
import os, signal, sys
import numpy as np
from dilim.runtime.files import save_arrays

path, function, when = sys.argv[1:]
original = getattr(os, function)

def dying(*args):
    if when == "after":
        original(*args)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, function, dying)
save_arrays(path, {"a": np.full(1000, 2)}, {"kind": "test", "version": 2})
"""

needs_sigkill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


@needs_sigkill
def test_killed_twenty_times_while_saving(tmp_path):
    path = tmp_path / "model.safetensors"
    version, leftovers = 0, 0
    chance = random.Random(0)
    for _ in range(20):
        command = [sys.executable, "-c", SAVE_FOREVER, str(path), str(version + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            reported = int(process.stdout.readline())
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
            reported = max([reported, *map(int, process.stdout.read().split())])
        assert process.returncode == -signal.SIGKILL
        arrays, header = load_arrays(path, "test")
        assert reported <= header["version"] <= reported + 1
        for array in arrays.values():
            assert array.shape == (250_000,)
            assert (array == header["version"]).all()
        version = header["version"]
        others = sorted(set(tmp_path.iterdir()) - {path})
        assert all(other.name.startswith(".dilim-") for other in others)
        leftovers = len(others)
    assert leftovers > 0, "no kill came in the middle of a save"


@needs_sigkill
@pytest.mark.parametrize(
    ("function", "when", "expected"),
    [("fsync", "before", 1), ("replace", "before", 1), ("replace", "after", 2)],
)
def test_killed_at_each_step(tmp_path, function, when, expected):
    path = tmp_path / "model.safetensors"
    save_arrays(path, {"a": np.full(1000, 1)}, {"kind": "test", "version": 1})
    command = [sys.executable, "-c", DIE_AT, str(path), function, when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    arrays, header = load_arrays(path, "test")
    assert header["version"] == expected
    assert (arrays["a"] == expected).all()
