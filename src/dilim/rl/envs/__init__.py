"""Built-in environments, and the base class of one's own.

To add an environment: write it in a file here and name it in `envs/table.py`; the tests then
check it.
"""

from dilim.rl.envs.bandit import Bandit
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.cart_pole import CartPole
from dilim.rl.envs.table import ENVIRONMENTS, make_environment, register_with_gymnasium

__all__ = [
    "ENVIRONMENTS",
    "Bandit",
    "CartPole",
    "TensorEnvironment",
    "make_environment",
    "register_with_gymnasium",
]
