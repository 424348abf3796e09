from __future__ import annotations

import numpy as np
import torch

from baselines.svgd import svgd_direction


def naive_direction(particles, gradients, squared_bandwidth):
    """Liu & Wang (2016), eq. 8, one pair at a time; the kernel's gradient by automatic differentiation."""
    directions = torch.zeros_like(particles)
    for m, mine in enumerate(particles):
        for other, gradient in zip(particles, gradients, strict=True):
            moving = other.clone().requires_grad_()
            kernel = torch.exp(-((moving - mine) ** 2).sum() / (2 * squared_bandwidth))
            kernel.backward()
            directions[m] += kernel.detach() * gradient + moving.grad
    return directions / len(particles)


def test_the_direction_is_that_of_a_loop_over_pairs():
    generator = torch.Generator().manual_seed(0)
    particles = torch.randn(6, 10, generator=generator, dtype=torch.float64)
    gradients = torch.randn(6, 10, generator=generator, dtype=torch.float64)
    for squared_bandwidth in (0.5, 4.0, 100.0):
        torch.testing.assert_close(
            svgd_direction(particles, gradients, squared_bandwidth),
            naive_direction(particles, gradients, squared_bandwidth),
        )


def test_particles_keep_apart_and_one_alone_follows_its_gradient():
    pair = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    apart = svgd_direction(pair, torch.zeros_like(pair), 1.0)
    assert apart[0, 0] < 0 < apart[1, 0]
    torch.testing.assert_close(apart[:, 1], torch.zeros(2, dtype=torch.float64))
    gradient = torch.tensor([[2.0, -3.0]], dtype=torch.float64)
    torch.testing.assert_close(svgd_direction(pair[:1], gradient, 1.0), gradient)


def test_particles_come_to_spread_like_the_target():
    """A standard normal: mean 0, variance 1."""
    generator = torch.Generator().manual_seed(1)
    particles = 3 + 0.1 * torch.randn(40, 1, generator=generator, dtype=torch.float64)
    for _ in range(3000):
        particles = particles + 0.1 * svgd_direction(particles, -particles, 0.25)
    np.testing.assert_allclose(float(particles.mean()), 0, atol=0.05)
    np.testing.assert_allclose(float(particles.var()), 1, atol=0.15)
