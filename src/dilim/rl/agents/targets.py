"""Target networks: copies that follow a network slowly."""

from __future__ import annotations

from dilim.nn.module import Module
from dilim.tensors.tape import no_grad


def follow(target: Module, network: Module, rate: float) -> None:
    """A target network becomes (1 - tau) itself + tau the network.

    Args:
        target: what is moved.
        network: a module of the same sizes.
        rate: tau, above 0 and up to 1.
    """
    with no_grad():
        for mine, theirs in zip(target.parameters(), network.parameters(), strict=True):
            if rate == 1.0:
                mine[...] = theirs
            else:
                mine[...] = mine + rate * (theirs - mine)
