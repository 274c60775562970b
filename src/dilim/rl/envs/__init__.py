"""Built-in environments, and the base class of one's own.

To add an environment: write it in a file here and name it in `envs/table.py`; the tests then
check it.
"""

from dilim.rl.envs.acrobot import Acrobot
from dilim.rl.envs.bandit import Bandit
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.cart_pole import CartPole
from dilim.rl.envs.frozen_lake import FrozenLake
from dilim.rl.envs.grid_world import GridWorld
from dilim.rl.envs.mountain_car import MountainCar
from dilim.rl.envs.pendulum import Pendulum
from dilim.rl.envs.snake import Snake
from dilim.rl.envs.table import ENVIRONMENTS, make_environment, register_with_gymnasium
from dilim.rl.envs.vector import VectorEnvironment

__all__ = [
    "ENVIRONMENTS",
    "Acrobot",
    "Bandit",
    "CartPole",
    "FrozenLake",
    "GridWorld",
    "MountainCar",
    "Pendulum",
    "Snake",
    "TensorEnvironment",
    "VectorEnvironment",
    "make_environment",
    "register_with_gymnasium",
]
