"""Series of seconds made for the tests of the method."""

from __future__ import annotations

import numpy as np

from iolab.core.samples import Floats

LEVEL = 10_000.0


def noise(seconds: int, share: float = 0.01, seed: int = 1) -> Floats:
    """A level with independent noise of that share of it."""
    rng = np.random.default_rng(seed)
    values: Floats = LEVEL * (1 + share * rng.standard_normal(seconds))
    return values


def decaying(seconds: int, amplitude: float, tau_s: float, seed: int = 1) -> Floats:
    """The same, with an exponential transient on top."""
    values: Floats = noise(seconds, seed=seed) + LEVEL * amplitude * np.exp(
        -np.arange(seconds) / tau_s
    )
    return values


def cycling(seconds: int, swing: float, period_s: int, seed: int = 1) -> Floats:
    """The same, with a sine of that swing, from top to bottom, around the level."""
    wave = np.sin(2 * np.pi * np.arange(seconds) / period_s) / 2
    values: Floats = noise(seconds, seed=seed) + LEVEL * swing * wave
    return values


def stalling(seconds: int, every_s: int, length_s: int, seed: int = 1) -> Floats:
    """The same, with stalls to a tenth at regular distances."""
    values = noise(seconds, seed=seed)
    values[(np.arange(seconds) % every_s) >= every_s - length_s] *= 0.1
    return values
