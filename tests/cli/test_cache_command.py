import json

import pytest

from dilim.runtime.cache import Cache


@pytest.fixture
def kept(monkeypatch, tmp_path):
    folder = tmp_path / "kept"
    monkeypatch.setenv("DILIM_CACHE", str(folder))
    monkeypatch.delenv("DILIM_CACHE_SIZE", raising=False)
    return Cache(folder)


def test_info_says_where_and_how_much(dilim, kept):
    kept.put("a", bytes(2000))
    kept.put("b", bytes(2000))
    text = dilim("cache", "info").stdout
    assert text.startswith(f"{kept.folder}\n")
    assert "2 entries, 4.0 KiB of at most 512.0 MiB" in text
    assert dilim("cache").stdout == text


def test_info_before_anything_was_kept(dilim, kept):
    assert "0 entries, 0 bytes of" in dilim("cache", "info").stdout
    assert not kept.folder.exists()


def test_info_as_json(dilim, kept):
    kept.put("a", b"x")
    found = json.loads(dilim("cache", "info", "--json").stdout)
    assert found == {"folder": str(kept.folder), "entries": 1, "bytes": 53, "limit": 512 << 20}


def test_clear_removes_everything(dilim, kept):
    kept.put("a", bytes(1000))
    assert dilim("cache", "clear").stdout == (f"Removed 1 entries, 1.0 KiB, from {kept.folder}.\n")
    assert kept.get("a") is None
    assert kept.contents().entries == 0


def test_when_it_is_off(dilim, monkeypatch):
    monkeypatch.setenv("DILIM_CACHE", "off")
    assert dilim("cache", "info").stdout == "The cache is off: compiled code is not kept.\n"
    assert json.loads(dilim("cache", "clear", "--json").stdout)["folder"] is None


def test_an_unknown_action_is_a_mistake(mistake):
    assert "'wipe' is not one of 'info', 'clear'" in mistake("cache", "wipe")


def test_a_size_that_is_none_is_a_mistake(mistake, monkeypatch):
    monkeypatch.setenv("DILIM_CACHE_SIZE", "much")
    assert "DILIM_CACHE_SIZE: expected a size" in mistake("cache")
