"""Sizes that those who call the loops of `library` have to know, apart from all other code."""

from __future__ import annotations

from typing import Final

ROWS: Final = 8
"""Of a tile of a product, and of a chunk."""
DEPTH: Final = 512
"""k of a block."""
PANEL_BYTES: Final = 512 * 1024
"""Of the packed block of the right factor; half of a common second-level cache."""
SCRATCH_BYTES: Final = PANEL_BYTES + 2 * ROWS * DEPTH * 8
"""What a product needs for each thread, for every dtype, aligned to 64 bytes."""
POOL_WORD: Final = 0
"""The data of a product's loop: address of the threads' pool, threads, number of scratch areas."""
AREAS_WORD: Final = 3
"""From here on: for each scratch area 8 bytes that are 1 while it is taken, then its address."""
