"""Fits the polynomials of `dilim.ops.box_muller` and measures them. Run by hand; needs mpmath.

    PYTHONPATH=src python tests/ops/fit_normal.py

It prints the tables that stand in ``box_muller.py``, fails when they differ from the stored ones,
and measures the error of logarithm, cosine and sine: float32 on all 2**24 arguments against float64
NumPy, both precisions on a sample with all hard places against mpmath.
"""

import sys
from collections.abc import Callable, Iterable

import numpy as np
from mpmath import mp, mpf

from dilim.ops import box_muller

mp.dps = 60
LARGEST_ALLOWED_ULP = 2.0

# Quotients that the polynomials stand for, as functions of z, the square of the reduced argument.
# See `box_muller.log_unit` and `box_muller.cos_sin_turn`.


def log_quotient(z: mpf) -> mpf:
    """(log((1 + s) / (1 - s)) / s - 2) / z with z = s**2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def sine_quotient(z: mpf) -> mpf:
    """sin(pi / 2 * x) / x with z = x**2."""
    x = mp.sqrt(z)
    return mp.sin(mp.pi / 2 * x) / x


def cosine_quotient(z: mpf) -> mpf:
    """(cos(pi / 2 * x) - 1) / z with z = x**2."""
    return (mp.cos(mp.pi / 2 * mp.sqrt(z)) - 1) / z


SMALLEST = mpf(10) ** -20  # in place of 0, where the quotients are 0 / 0
LARGEST_LOG = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
FITS: dict[str, tuple[Callable[[mpf], mpf], mpf, dict[str, int]]] = {
    "log": (log_quotient, LARGEST_LOG, {"float32": 3, "float64": 7}),
    "sine": (sine_quotient, mpf(1) / 4, {"float32": 4, "float64": 7}),
    "cosine": (cosine_quotient, mpf(1) / 4, {"float32": 4, "float64": 7}),
}


def minimax(function: Callable[[mpf], mpf], largest: mpf, terms: int) -> list[mpf]:
    """Coefficients, lowest power first, with the smallest largest error on (0, largest]: Remez."""
    middle, half = (largest + SMALLEST) / 2, (largest - SMALLEST) / 2
    points = [middle - half * mp.cos(mp.pi * i / terms) for i in range(terms + 1)]
    grid = [middle - half * mp.cos(mp.pi * mpf(i) / 1000) for i in range(1001)]
    values = [function(z) for z in grid]
    for _ in range(12):
        matrix = mp.matrix(terms + 1)
        for row, z in enumerate(points):
            for column in range(terms):
                matrix[row, column] = z**column
            matrix[row, terms] = (-1) ** row
        solution = mp.lu_solve(matrix, mp.matrix([function(z) for z in points]))
        coefficients = [solution[i] for i in range(terms)]
        errors = [mp.polyval(coefficients[::-1], z) - v for z, v in zip(grid, values, strict=True)]
        points = extrema(grid, errors)
        if len(points) != terms + 1:
            raise RuntimeError(f"{function.__name__}: {len(points)} extrema, not {terms + 1}")
        if max(abs(e) for e in errors) <= abs(solution[terms]) * mpf("1.0001"):
            break
    return coefficients


def extrema(grid: list[mpf], errors: list[mpf]) -> list[mpf]:
    """The place of the largest error between every two changes of its sign."""
    places = [0]
    for i in range(1, len(grid)):
        if mp.sign(errors[i]) != mp.sign(errors[places[-1]]):
            places.append(i)
        elif abs(errors[i]) > abs(errors[places[-1]]):
            places[-1] = i
    return [grid[i] for i in places]


def rounded(value: mpf, dtype: str) -> float:
    """The nearest number of the dtype, as a Python float."""
    return float(mp_round(value, 24 if dtype == "float32" else 53))


def mp_round(value: mpf, bits: int) -> mpf:
    with mp.workprec(bits):
        return +value


def split_log_two(dtype: str, exponent_bits: int) -> tuple[float, float]:
    """log(2) as high + low; high times an integer of `exponent_bits` bits is exact."""
    digits = 24 if dtype == "float32" else 53
    high = mp_round(mp.log(2), digits - exponent_bits)
    return float(high), rounded(mp.log(2) - high, dtype)


def make_tables() -> dict[str, dict[str, tuple[float, ...]]]:
    tables: dict[str, dict[str, tuple[float, ...]]] = {"float32": {}, "float64": {}}
    for name, (function, largest, terms) in FITS.items():
        for dtype, count in terms.items():
            fitted = minimax(function, largest, count)
            tables[dtype][name] = tuple(rounded(c, dtype) for c in fitted)
    for dtype, bits in (("float32", 5), ("float64", 6)):
        tables[dtype]["log_two"] = split_log_two(dtype, bits)
    return tables


def exact(name: str, k: int, digits: int) -> mpf:
    if name == "log":
        return mp.log(mpf(k) / 2**digits)
    return (mp.cospi if name == "cosine" else mp.sinpi)(mpf(k) / 2 ** (digits - 1))


def ulp_error(result: float, wanted: mpf, digits: int) -> float:
    if wanted == 0:
        return 0.0 if result == 0 else float("inf")
    unit = mpf(2) ** (mp.floor(mp.log(abs(wanted), 2)) - digits + 1)
    return float(abs(mpf(result) - wanted) / unit)


def hard_places(digits: int, samples: int = 6000) -> list[int]:
    """Everything near a multiple of an octant and near a power of two, and a random sample."""
    total = 2**digits
    places = {total * i // 8 + d for i in range(9) for d in range(-40, 41)}
    places |= {2**i + d for i in range(digits + 1) for d in (-2, -1, 0, 1, 2)}
    places |= {int(2**0.5 * 2**i) + d for i in range(digits) for d in (-1, 0, 1)}
    random = np.random.default_rng(1)
    places |= {int(k) for k in random.integers(1, total, samples)}
    places |= {total - int(2**e) for e in random.uniform(0, digits - 1, samples // 4)}
    return sorted(k for k in places if 0 < k <= total)


def computed(name: str, k: Iterable[int], dtype: str) -> np.ndarray:
    constants = box_muller.CONSTANTS[dtype]
    integers = np.array(list(k), constants.bits_dtype)
    if name == "log":
        return box_muller.log_unit(integers, dtype)
    return box_muller.cos_sin_turn(integers % 2**constants.digits, dtype)[name == "sine"]


def measure_sample(name: str, dtype: str) -> float:
    digits = box_muller.CONSTANTS[dtype].digits
    places = hard_places(digits)
    results = computed(name, places, dtype)
    return max(
        ulp_error(float(r), exact(name, k, digits), digits)
        for r, k in zip(results, places, strict=True)
    )


def measure_all_float32(name: str) -> float:
    k = np.arange(1, 2**24 + 1, dtype=np.uint32)
    if name == "log":
        result, wanted = box_muller.log_unit(k, "float32"), np.log(k / 2.0**24)
    else:
        k = k[:-1]
        result = box_muller.cos_sin_turn(k, "float32")[name == "sine"]
        wanted = (np.sin if name == "sine" else np.cos)(2 * np.pi * (k / 2.0**24))
        wanted[np.abs(wanted) < 1e-12] = 0.0  # float64 pi is not exact at whole half turns
    unit = np.spacing(np.maximum(np.abs(wanted), 1e-12).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(result - wanted) / unit))


def main() -> int:
    tables = make_tables()
    failures = 0
    for dtype, table in tables.items():
        stored = box_muller.CONSTANTS[dtype]
        for name, values in table.items():
            same = getattr(stored, name) == values
            failures += not same
            print(f"{dtype} {name}: {'as stored' if same else 'DIFFERS FROM THE STORED ONE'}")
            for value in values:
                print(f'    "{value.hex()}",  # {value!r}')
    for name in FITS:
        errors = {dtype: measure_sample(name, dtype) for dtype in tables}
        errors["float32, all arguments"] = measure_all_float32(name)
        failures += sum(e > LARGEST_ALLOWED_ULP for e in errors.values())
        print(f"{name}: largest error in ulp:", {k: round(e, 3) for k, e in errors.items()})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
