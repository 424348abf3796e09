"""Stein variational gradient descent: particles that climb a log density together and keep apart.

Liu & Wang (2016), "Stein variational gradient descent: a general purpose Bayesian inference algorithm".
"""

from __future__ import annotations

from torch import Tensor


def svgd_direction(particles: Tensor, gradients: Tensor, squared_bandwidth: float) -> Tensor:
    """The direction (particles, n) in which every particle moves, uphill.

    `phi(z_m) = mean over l of k(z_l, z_m) grad log p(z_l) + grad_{z_l} k(z_l, z_m)` with the kernel
    `k(z, z') = exp(-|z - z'|^2 / (2 bandwidth^2))` over whole particles; Liu & Wang (2016), eq. 8.

    Args:
        particles: (particles, n).
        gradients: (particles, n), of the log density at the particles.
        squared_bandwidth: above zero.
    """
    squared = (particles[:, None] - particles[None]).square().sum(dim=2)
    kernel = (-squared / (2 * squared_bandwidth)).exp()
    # sum over l of -(z_l - z_m) k(z_l, z_m) / bandwidth^2, without the differences
    repulsion = (kernel.sum(dim=1, keepdim=True) * particles - kernel @ particles) / squared_bandwidth
    return (kernel @ gradients + repulsion) / len(particles)
