"""An agent learns to balance a pole, in a few lines; then it is saved, loaded and watched.

Run it: ``python examples/cartpole.py``. The same with a live line, a folder and a picture:
``dilim train cartpole``.
"""

import tempfile
from pathlib import Path

from dilim.rl import REINFORCE, CartPole, preset


def main(steps=60_000):
    """Train for at most ``steps`` environment steps; returns the mean return of the agent."""
    settings = preset("cartpole", "reinforce")
    env = CartPole()
    agent = REINFORCE.for_env(env, seed=7, **settings.options)

    def report(episode):
        if episode.episode % 25 == 0:
            print(f"episode {episode.episode:4}  average return {episode.average:.1f}")

    returns = agent.train(env, steps=steps, until=settings.until, on_episode=report)
    print(f"{len(returns)} episodes, {sum(returns):.0f} steps survived")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.safetensors"
        agent.save(path)
        twin = REINFORCE.load(path)
    scores = twin.evaluate(CartPole(), episodes=20, seed=1)
    mean = sum(scores) / len(scores)
    print(f"the loaded agent reaches {mean:.0f} of 500 on average")

    screen = CartPole(render_mode="ansi")
    observation, _ = screen.reset(seed=0)
    screen.step(twin.act(observation, explore=False))
    print(screen.render())
    return mean


if __name__ == "__main__":
    main()
