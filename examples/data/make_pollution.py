"""Write ``pollution.tsv``, the made-up survey of 100 places that the linear classifier learns from.

Run it: ``python examples/data/make_pollution.py``. It writes the same bytes every time.
"""

from pathlib import Path

import dilim

PLACES = 100
SEED = 64_915  # a draw with 53 polluted places
BIAS, SLOPE_1, SLOPE_2 = 14.752, 1.2536, -2.0027


def survey() -> bytes:
    """Rows of x1, x2 and label, with tabs between them and CRLF at their ends.

    x1 is normal with mean 0 and deviation 1.25, x2 with mean 7 and deviation 4.5. A place is
    polluted (label 1) with probability sigmoid(BIAS + SLOPE_1 x1 + SLOPE_2 x2).
    """
    generator = dilim.Generator(SEED)
    x1 = generator.normal((PLACES,), std=1.25)
    x2 = generator.normal((PLACES,), mean=7.0, std=4.5)
    chance = dilim.sigmoid(BIAS + SLOPE_1 * x1 + SLOPE_2 * x2)
    labels = (generator.uniform((PLACES,)) < chance).astype(dilim.int64)
    columns = zip(x1.tolist(), x2.tolist(), labels.tolist(), strict=True)
    return "".join(f"{a:.4f}\t{b:.4f}\t{label}\r\n" for a, b, label in columns).encode("ascii")


if __name__ == "__main__":
    Path(__file__).with_name("pollution.tsv").write_bytes(survey())
