from __future__ import annotations

import math

import pytest
import torch

from baselines.sgmcmc import AdamSGMCMC


def sampler_of(state, **changes):
    settings = {"learning_rate": 3e-4, "scale_noise": 0.0, "generator": torch.Generator().manual_seed(0)} | changes
    return AdamSGMCMC(state, **settings)


def test_two_steps_without_noise_are_those_of_the_formula():
    state = torch.tensor([1.0, -2.0], dtype=torch.float64)
    sampler = sampler_of(state)
    expected, momentum, square, step = [1.0, -2.0], [0.0, 0.0], [0.0, 0.0], math.sqrt(3e-4)
    for gradient in ([4.0, 0.5], [-1.0, 2.0]):
        sampler.update(torch.tensor(gradient, dtype=torch.float64))
        for i, slope in enumerate(gradient):
            square[i] = 0.99 * square[i] + 0.01 * slope**2
            scale = 1 / math.sqrt(1e-8 + math.sqrt(1e-8 + square[i]))
            momentum[i] = 0.9 * momentum[i] + step * scale * slope
            expected[i] -= step * scale * momentum[i]
        assert state.tolist() == pytest.approx(expected, rel=1e-12)


def test_noise_has_its_variance():
    state = torch.zeros(200_000)
    sampler = sampler_of(state, scale_noise=0.5)
    sampler.update(torch.zeros_like(state))
    step, scale = math.sqrt(3e-4), 1 / math.sqrt(1e-8 + 1e-4)
    noise = 0.5 * math.sqrt(2 * step * (0.1 / step - step / 2))
    assert state.std().item() == pytest.approx(step * scale * noise, rel=0.01)


def test_a_chain_without_noise_finds_the_mode():
    state = torch.full((3,), 4.0)
    sampler = sampler_of(state, learning_rate=1e-2)
    for _ in range(2000):
        sampler.update((state - torch.tensor([1.0, -1.0, 0.0])) * 50)
    torch.testing.assert_close(state, torch.tensor([1.0, -1.0, 0.0]), rtol=0, atol=0.02)
