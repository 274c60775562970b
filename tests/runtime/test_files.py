import json
import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from dilim.errors import DtypeError, FileFormatError
from dilim.runtime import files
from dilim.runtime.files import load_arrays, save_arrays

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
]
HEADER = {"kind": "weights", "step": 12, "note": "çok iyi", "rate": 0.1, "list": [1, None, {}]}


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def make_arrays() -> dict[str, np.ndarray]:
    return {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False])}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    save_arrays(path, make_arrays(), HEADER)
    return path


# ----- what is saved comes back -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_every_dtype_and_shape_comes_back(tmp_path, dtype, shape):
    path = tmp_path / "file"
    count = int(np.prod(shape))
    raw = np.random.default_rng(count).bytes(count * 8)
    array = np.frombuffer(raw, "<u8").astype("<u8")
    array = array % 2 == 0 if dtype == "bool" else array.view(dtype)[:count]
    array = array.reshape(shape)
    save_arrays(path, {"x": array}, {"kind": "test"})
    arrays, header = load_arrays(path, "test")
    assert header == {"kind": "test"}
    assert same_bits(arrays["x"], array)
    assert arrays["x"].flags.writeable
    assert arrays["x"].flags.c_contiguous


def test_special_floats_keep_their_bits(tmp_path):
    single = np.array([0x7FC12345, 0xFFC00001, 0x7F800001, 0x80000000, 1], np.uint32)
    double = np.array([0x7FF8DEADBEEF0001, 0xFFF0000000000001, 1 << 63, 1], np.uint64)
    arrays = {"f": single.view(np.float32), "d": double.view(np.float64)}
    save_arrays(tmp_path / "file", arrays, {"kind": "test"})
    loaded, _ = load_arrays(tmp_path / "file")
    assert loaded["f"].view(np.uint32).tolist() == single.tolist()
    assert loaded["d"].view(np.uint64).tolist() == double.tolist()


def test_strides_and_byte_order_do_not_matter(tmp_path):
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    arrays = {
        "transposed": base.T,
        "sliced": base[:, ::-2, 1:3],
        "expanded": np.broadcast_to(np.float32(7), (2, 2)),
        "big endian": base.astype(">f4"),
        "scalar": np.array(-2.5, ">f8"),
        "": base[0, 0],
        "ç/日.weight": base[0],
    }
    save_arrays(tmp_path / "file", arrays, {"kind": "test"})
    loaded, _ = load_arrays(tmp_path / "file")
    assert list(loaded) == sorted(arrays)
    for name, array in arrays.items():
        native = array.astype(array.dtype.newbyteorder("="), order="C")
        assert same_bits(loaded[name], native), name


def test_no_arrays_at_all(tmp_path):
    save_arrays(tmp_path / "file", {}, HEADER)
    assert load_arrays(tmp_path / "file") == ({}, HEADER)


def test_same_content_same_bytes_and_plain_safetensors(tmp_path, saved):
    save_arrays(tmp_path / "again", dict(reversed(make_arrays().items())), HEADER)
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()
    elsewhere = safetensors.numpy.load_file(saved)
    assert np.array_equal(elsewhere["w"], make_arrays()["w"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(extra=st.dictionaries(st.text(), JSON, max_size=4))
def test_any_json_header_comes_back(extra, tmp_path_factory):
    header = {**extra, "kind": "test"}
    header.pop("format", None)
    header.pop("crc32", None)
    path = tmp_path_factory.getbasetemp() / "any_header"
    save_arrays(path, make_arrays(), header)
    loaded = load_arrays(path)[1]
    assert loaded == header
    assert json.dumps(loaded) == json.dumps(header)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"shape": (1, 2)}, r"header\['shape'\] = \(1, 2\) would not come back as it is; use"),
        ({"a": {1: 2}}, r"header\['a'\] = \{1: 2\} would not come back"),
        ({1: None}, r"header\[1\] = None would not come back"),
        ({"a": float("nan")}, "header is not plain JSON: Out of range float"),
        ({"a": {1, 2}}, "header is not plain JSON: Object of type set"),
        ({"format": 1}, "the header key 'format' is reserved"),
        ({"crc32": 0}, "the header key 'crc32' is reserved"),
        ({"kind": None}, "must say what the file is, for example .*; got kind=None"),
    ],
)
def test_header_that_would_change_is_refused(tmp_path, extra, message):
    with pytest.raises(FileFormatError, match=message):
        save_arrays(tmp_path / "file", {}, {"kind": "test", **extra})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "array",
    [
        np.array([1j]),
        np.array(["a"]),
        np.array([{}]),
        np.zeros(2, np.float16),
        np.zeros(2, "M8[s]"),
    ],
)
def test_other_dtypes_are_refused(tmp_path, array):
    with pytest.raises(DtypeError, match=r"array 'x' has dtype .*; expected bool, an integer"):
        save_arrays(tmp_path / "file", {"x": array}, {"kind": "test"})
    assert os.listdir(tmp_path) == []


def test_impossible_names_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="'__metadata__' cannot be the name"):
        save_arrays(tmp_path / "file", {"__metadata__": np.zeros(1)}, {"kind": "test"})
    with pytest.raises(FileFormatError, match="safetensors cannot store this"):
        save_arrays(tmp_path / "file", {"\ud800": np.zeros(1)}, {"kind": "test"})
    with pytest.raises(FileFormatError, match="3 cannot be the name"):
        save_arrays(tmp_path / "file", {3: np.zeros(1)}, {"kind": "test"})


# ----- bad files ----------------------------------------------------------------------------------


def test_kind_is_checked(saved):
    assert load_arrays(saved, "weights")[1] == HEADER
    with pytest.raises(FileFormatError, match=r"model\.safetensors holds 'weights', expected 'run"):
        load_arrays(saved, "run")


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        load_arrays(tmp_path / "missing")


def test_every_shorter_file_is_cut_short(saved):
    data = saved.read_bytes()
    for size in range(len(data)):
        saved.write_bytes(data[:size])
        with pytest.raises(FileFormatError, match=r"model\.safetensors is cut short: it"):
            load_arrays(saved)


def test_every_flipped_bit_is_found(saved):
    data = bytearray(saved.read_bytes())
    harmless = []
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            saved.write_bytes(data)
            try:
                arrays, header = load_arrays(saved)
            except FileFormatError:
                arrays, header = make_arrays(), HEADER
            else:
                harmless.append(data[place - 5 : place + 1].decode())
            assert header == HEADER
            assert all(same_bits(arrays[name], array) for name, array in make_arrays().items())
            data[place] ^= 1 << bit
    assert all("u00" in text for text in harmless), "only the case of a digit in \\u00e7 may differ"


def test_flipped_values_and_swapped_arrays_fail_the_checksum(tmp_path):
    path = tmp_path / "file"
    save_arrays(path, {"a": np.zeros(4), "b": np.ones(4)}, {"kind": "test", "step": 1})
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-1] ^= 1
    swapped = data.replace(b'"a":{', b'"c":{').replace(b'"b":{', b'"a":{').replace(b'"c":', b'"b":')
    retyped = data.replace(b'"F64"', b'"I64"')
    reshaped = data.replace(b'"shape":[4]', b'"shape":[4,1]')
    reshaped = (len(reshaped) - 64 - 8).to_bytes(8, "little") + reshaped[8:]
    restepped = data.replace(rb"\"step\": 1", rb"\"step\": 2")
    for bad in (bytes(flipped), swapped, retyped, reshaped, restepped):
        assert bad != data
        path.write_bytes(bad)
        with pytest.raises(FileFormatError, match="is damaged: its checksum is wrong; use an ear"):
            load_arrays(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is cut short: it ends after 0 bytes"),
        (b"hello, this is a text", "is not a safetensors file, or its beginning is damaged"),
        (b"\x80\x04\x95" + bytes(50), "is not a safetensors file"),
        (bytes(100), "is not a safetensors file"),
        ((9).to_bytes(8, "little") + b'{"a": 1} ', "is damaged: its description is not readable"),
        ((9).to_bytes(8, "little") + b"{nonsense", "is damaged: its description is not readable"),
        (
            (200_001).to_bytes(8, "little") + b"{" + b'"a":{' * 40_000,
            "is damaged: its description is not readable",
        ),
    ],
)
def test_not_safetensors(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    for foreign in (False, True):
        with pytest.raises(FileFormatError, match=message):
            load_arrays(tmp_path / "file", foreign=foreign)


def test_extra_bytes_are_damage(saved):
    saved.write_bytes(saved.read_bytes() + b"x")
    with pytest.raises(FileFormatError, match=r"is damaged: .*not fully covered"):
        load_arrays(saved)


def write_description(path: Path, description: object) -> None:
    text = description if isinstance(description, str) else json.dumps(description)
    path.write_bytes(safetensors.numpy.save(make_arrays(), {files.METADATA_KEY: text}))


@pytest.mark.parametrize(
    "description",
    [
        "not JSON",
        "[" * 200_000,
        [],
        {"kind": "x", "crc32": 0},
        {"format": 0, "kind": "x", "crc32": 0},
        {"format": "1", "kind": "x", "crc32": 0},
        {"format": 1, "kind": 3, "crc32": 0},
        {"format": 1, "kind": "x", "crc32": None},
        {"format": 1, "kind": "x"},
    ],
)
def test_unreadable_header_is_damage(tmp_path, description):
    write_description(tmp_path / "file", description)
    for foreign in (False, True):
        with pytest.raises(FileFormatError, match="is damaged: its header is not readable"):
            load_arrays(tmp_path / "file", foreign=foreign)


@pytest.mark.parametrize("description", [{"format": 2}, {"format": 9, "kind": "x", "crc32": 0}])
def test_newer_format(tmp_path, description):
    write_description(tmp_path / "file", description)
    version = description["format"]
    with pytest.raises(FileFormatError, match=f"has format {version}, .* up to 1.*upgrade dilim"):
        load_arrays(tmp_path / "file")


def test_foreign_files_only_on_request(tmp_path):
    path = tmp_path / "file"
    arrays = {"w": np.ones((2, 2), np.float16), "b": np.array(3, np.int64)}
    for metadata in (None, {"format": "pt"}):
        path.write_bytes(safetensors.numpy.save(arrays, metadata))
        with pytest.raises(FileFormatError, match="dilim did not write; pass foreign=True"):
            load_arrays(path)
        loaded, header = load_arrays(path, foreign=True)
        assert header == (metadata or {})
        assert all(same_bits(loaded[name], array) for name, array in arrays.items())


def test_foreign_request_still_checks_our_files(saved):
    assert load_arrays(saved, "weights", foreign=True)[1] == HEADER
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    with pytest.raises(FileFormatError, match="checksum"):
        load_arrays(saved, foreign=True)


def test_foreign_dtype_is_named(tmp_path):
    data = safetensors.numpy.save({"w": np.ones(2, np.uint16)}, {"made": "x"})
    data = data.replace(b'"U16"', b'"BF16"')
    size = len(data) - 4 - 8
    (tmp_path / "file").write_bytes(size.to_bytes(8, "little") + data[8:])
    with pytest.raises(FileFormatError, match="array 'w' has dtype 'BF16'; dilim reads BOOL"):
        load_arrays(tmp_path / "file", foreign=True)
