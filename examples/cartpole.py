"""Reinforcement learning: policy gradients on cart-pole, until the pole is balanced for 195 steps on average.

The network gives the odds of pushing right.  After some episodes every push becomes more likely if what came after it
was better than usual, and less likely if it was worse: gradient descent on -log(odds of what was done) * advantage.
"""

from __future__ import annotations

import argparse
from collections import deque

import gymnasium
import numpy as np

import pullback as pb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--goal", type=float, default=195.0, help="mean return over 100 episodes")
parser.add_argument("--seed", type=int, default=1)
settings = parser.parse_args()

DISCOUNT, EPISODES, MOST = 0.99, 8, 500
pb.random.seed(settings.seed)
random = np.random.default_rng(settings.seed)
policy = pb.sequential([pb.layers.dense(32, activation="tanh", input_shape=[4]), pb.layers.dense(1)])
optimizer = pb.train.adam(0.02)


@pb.compile
def odds(state):
    return pb.sigmoid(policy(state))[0, 0]


@pb.compile
def learn(states, pushes, advantages):
    def loss():
        logits = policy(states)[:, 0]
        return pb.mean(advantages * pb.losses.sigmoid_cross_entropy_with_logits(pushes, logits))

    return optimizer.minimize(loss, return_cost=True)


def episode(world, seed):
    """Return the states, the action in each, and the discounted return after it."""
    state, _ = world.reset(seed=seed)
    states, pushes, over = [], [], False
    while not over:
        states.append(state)
        pushes.append(int(random.random() < odds(state[None])))
        state, _, fell, late, _ = world.step(pushes[-1])
        over = fell or late
    returns = np.cumsum(DISCOUNT ** np.arange(len(pushes)))[::-1]  # the reward of every step is 1
    return np.array(states, np.float32), np.array(pushes, np.float32), returns.astype(np.float32)


world = gymnasium.make("CartPole-v1", max_episode_steps=MOST)
recent: deque[int] = deque(maxlen=100)
played = 0
while len(recent) < 100 or np.mean(recent) < settings.goal:
    assert played < 3000, "it does not learn"
    batch = [episode(world, settings.seed + played + i) for i in range(EPISODES)]
    played += EPISODES
    recent.extend(len(pushes) for _, pushes, _ in batch)
    states, pushes, returns = (np.concatenate(parts) for parts in zip(*batch, strict=True))
    advantages = (returns - returns.mean()) / (returns.std() + 1e-6)
    size = EPISODES * MOST  # padded to one size, so that one program is compiled; the padding has advantage 0
    spare = size - len(pushes)
    learn(np.pad(states, ((0, spare), (0, 0))), np.pad(pushes, (0, spare)), np.pad(advantages, (0, spare)))
    if played % 80 == 0:
        print(f"{played:5} episodes, the last 100 lasted {np.mean(recent):.0f} steps on average")

print(f"solved after {played} episodes: {np.mean(recent):.1f} steps on average")
assert np.mean(recent) >= settings.goal
