"""The folder with compiled code."""

import ctypes
import multiprocessing
import os
import sys
import time
from pathlib import Path

import pytest

from dilim.backends.llvm.binding import emit_object, host_target, link
from dilim.errors import DilimError
from dilim.runtime import cache as module
from dilim.runtime.cache import DEFAULT_SIZE, Cache, Contents, cache

HEADER = 52  # mark, format, length, SHA-256


@pytest.fixture
def kept(tmp_path):
    return Cache(tmp_path / "cache")


def entry_file(kept):
    (path,) = kept.folder.glob("*/*.code")
    return path


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 100])
def test_what_was_put_is_found_again(kept, data):
    assert kept.get("k") is None
    kept.put("k", data)
    assert kept.get("k") == data
    assert Cache(kept.folder).get("k") == data
    assert kept.get("another") is None


def test_the_newest_data_is_kept(kept):
    kept.put("k", b"old")
    kept.put("k", b"new")
    assert kept.get("k") == b"new"
    assert kept.contents().entries == 1


def test_keys_may_be_any_text(kept):
    keys = ["", "a/b", "..", "x" * 10_000, "é\n"]
    for key in keys:
        kept.put(key, key.encode())
    assert [kept.get(key) for key in keys] == [key.encode() for key in keys]


DATA = b"machine code" * 3
LENGTHS = [0, 1, 7, 8, 9, 12, 19, 20, 21, HEADER - 1, HEADER, HEADER + 1, HEADER + len(DATA) - 1]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_file_that_is_cut_short_is_ignored_and_written_again(kept, length):
    kept.put("k", DATA)
    path = entry_file(kept)
    path.write_bytes(path.read_bytes()[:length])
    assert kept.get("k") is None
    kept.put("k", DATA)
    assert kept.get("k") == DATA


def test_a_file_that_is_too_long_is_ignored(kept):
    kept.put("k", DATA)
    path = entry_file(kept)
    path.write_bytes(path.read_bytes() + b"\0")
    assert kept.get("k") is None


def test_every_changed_bit_is_noticed(kept):
    kept.put("k", DATA)
    path = entry_file(kept)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        assert kept.get("k") is None, place
    path.write_bytes(whole)
    assert kept.get("k") == DATA


@pytest.mark.parametrize("content", [b"hello", b"\x7fELF" + bytes(200), b"\0" * 52])
def test_a_foreign_file_is_ignored_and_written_again(kept, content):
    kept.put("k", DATA)
    entry_file(kept).write_bytes(content)
    assert kept.get("k") is None
    kept.put("k", DATA)
    assert kept.get("k") == DATA


def test_an_entry_of_another_key_is_ignored(kept):
    kept.put("k", DATA)
    whole = entry_file(kept).read_bytes()
    kept.clear()
    kept.put("other", b"other")
    entry_file(kept).write_bytes(whole)
    assert kept.get("other") is None


def test_an_entry_of_another_version_is_ignored_and_written_again(kept, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(module, "FORMAT", 2)
        kept.put("k", DATA)
        assert kept.get("k") == DATA
    assert kept.get("k") is None
    kept.put("k", DATA)
    assert kept.get("k") == DATA


@pytest.mark.skipif(sys.platform == "win32", reason="owners of files")
def test_an_entry_of_another_user_is_ignored(kept, monkeypatch):
    kept.put("k", DATA)
    monkeypatch.setattr(module, "_is_own", lambda user: user == os.geteuid() + 1)
    assert kept.get("k") is None


def test_a_folder_in_place_of_an_entry_is_ignored(kept):
    kept.put("k", DATA)
    path = entry_file(kept)
    path.unlink()
    path.mkdir()
    assert kept.get("k") is None


# --- size -----------------------------------------------------------------------------------


def test_the_oldest_used_go_when_there_is_too_much(tmp_path):
    kept = Cache(tmp_path)
    now = time.time()
    for number in range(12):
        kept.put(str(number), bytes(100))
        for path in tmp_path.glob("*/*.code"):
            if path.stat().st_mtime > now - 1000:
                os.utime(path, (now, now - 100_000 + 1000 * number))
    assert kept.get("3") is not None  # used now
    kept = Cache(tmp_path, limit=10 * (HEADER + 100))
    kept.shrink()
    found = [number for number in range(12) if kept.get(str(number)) is not None]
    assert kept.contents().bytes <= kept.limit
    assert found == [3, *range(5, 12)]


def test_putting_keeps_to_the_limit(tmp_path):
    kept = Cache(tmp_path, limit=20_000)
    for number in range(200):
        kept.put(str(number), bytes(1000))
        assert kept.contents().bytes <= 22_000
    assert kept.contents().bytes > 10_000


def test_files_of_killed_processes_go_after_a_while(kept):
    kept.put("k", DATA)
    folder = entry_file(kept).parent
    old, new = folder / "a.tmp", folder / "b.tmp"
    for path in (old, new):
        path.write_bytes(b"part")
    os.utime(old, (0, 0))
    kept.shrink()
    assert (old.exists(), new.exists()) == (False, True)


def test_other_files_in_the_folder_stay(tmp_path):
    kept = Cache(tmp_path, limit=1)
    notes = [tmp_path / "notes.txt", tmp_path / "zz" / "x.code", tmp_path / "ab" / "notes.txt"]
    kept.put("k", DATA)
    for path in notes:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    kept.shrink()
    kept.clear()
    assert all(path.exists() for path in notes)


def test_clearing_says_how_much_there_was(kept):
    kept.put("a", bytes(100))
    kept.put("b", bytes(50))
    assert kept.contents() == Contents(2, 150 + 2 * HEADER)
    assert kept.clear() == Contents(2, 150 + 2 * HEADER)
    assert kept.contents() == Contents(0, 0)
    assert kept.get("a") is None


def test_what_looks_like_an_entry_but_is_a_folder_is_left_alone(kept):
    kept.put("a", bytes(100))
    folder = entry_file(kept).with_name("folder.code")
    folder.mkdir()
    assert kept.contents() == Contents(1, 100 + HEADER)
    assert kept.clear() == Contents(1, 100 + HEADER)
    assert folder.is_dir()


def test_only_what_was_removed_is_counted(kept, monkeypatch):
    kept.put("a", bytes(100))

    def refuse(path):
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    assert kept.clear() == Contents(0, 0)


# --- where it is ----------------------------------------------------------------------------


def test_the_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("DILIM_CACHE", str(tmp_path / "x"))
    cache().put("k", DATA)
    assert cache().folder == tmp_path / "x"
    assert cache().get("k") == DATA
    assert cache() is cache()


def test_it_can_be_off(monkeypatch):
    monkeypatch.setenv("DILIM_CACHE", "off")
    cache().put("k", DATA)
    assert cache().get("k") is None
    assert cache().contents() == cache().clear() == Contents(0, 0)


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/some/where"}, Path("/some/where/dilim")),
        ("linux", {"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache" / "dilim"),
        ("linux", {}, Path.home() / ".cache" / "dilim"),
        ("darwin", {}, Path.home() / "Library" / "Caches" / "dilim"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/dilim/cache")),
        ("win32", {}, Path.home() / "AppData" / "Local" / "dilim" / "cache"),
    ],
)
def test_the_folder_is_where_the_system_wants_it(monkeypatch, platform, variables, folder):
    for name in ("DILIM_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache().folder == folder


@pytest.mark.parametrize(
    ("text", "size"), [("", DEFAULT_SIZE), ("1000", 1000), ("2K", 2048), ("3 mb", 3 << 20)]
)
def test_the_size_can_be_chosen(monkeypatch, text, size):
    monkeypatch.setenv("DILIM_CACHE_SIZE", text)
    assert cache().limit == size


def test_a_size_that_is_none_is_an_error(monkeypatch):
    monkeypatch.setenv("DILIM_CACHE_SIZE", "much")
    with pytest.raises(
        DilimError, match=r"DILIM_CACHE_SIZE: expected a size such as 512M, .*'much'"
    ):
        cache()


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    kept = Cache(tmp_path / "file" / "cache")
    assert kept.get("k") is None
    with pytest.warns(RuntimeWarning, match=r"cannot be kept in .*; set DILIM_CACHE to another"):
        kept.put("k", DATA)
    kept.put("k", DATA)  # warnings are errors here
    assert kept.get("k") is None


# --- many processes -------------------------------------------------------------------------


def data_of(number):
    return f"data {number} ".encode() * (50 + 100 * number)


def work(folder, seed, wrong):
    kept = Cache(Path(folder), limit=80_000)
    for turn in range(300):
        number = (turn * 7 + seed) % 20
        found = kept.get(str(number))
        if found is None:
            kept.put(str(number), data_of(number))
        elif found != data_of(number):
            wrong.put((seed, number))
        if turn % 50 == 49:
            kept.shrink()


def compile_and_run(folder, start, results):
    kept = Cache(Path(folder))
    start.wait()
    for number in range(12):
        text = f"define i32 @f() {{\n  ret i32 {number}\n}}\n"
        code = kept.get(text)
        if code is None:
            code = emit_object(text, host_target())
            kept.put(text, code)
        library = link([code])
        results.put((number, ctypes.CFUNCTYPE(ctypes.c_int)(library.address("f"))()))


def test_two_processes_may_compile_into_one_folder_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    results, start = context.Queue(), context.Barrier(2)
    arguments = (str(tmp_path), start, results)
    processes = [context.Process(target=compile_and_run, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in range(24)]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(found) == sorted([(number, number) for number in range(12)] * 2)
    assert Cache(tmp_path).contents().entries == 12


def test_two_processes_may_use_one_folder_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    wrong = context.Queue()
    processes = [context.Process(target=work, args=(str(tmp_path), k, wrong)) for k in (0, 3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert wrong.empty()
    kept = Cache(tmp_path)
    assert kept.contents().entries > 3
    found = [kept.get(str(number)) for number in range(20)]
    assert all(data is None or data == data_of(number) for number, data in enumerate(found))
    assert list(tmp_path.glob("*/*.tmp")) == []
