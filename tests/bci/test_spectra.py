import numpy as np
import pytest
import torch
from gp_oracle import covariance

from bci.pivots import select_pivots
from bci.spectra import kernel_spectrum

LOG_KERNEL = torch.tensor([[2.5, 1.9], [1.5, 1.1]], dtype=torch.float64).log()


@pytest.fixture
def inputs():
    return torch.tensor(np.random.default_rng(0).normal(size=(2, 50, 2)))


def dense_kernel(inputs, log_kernel):
    return torch.tensor(covariance(inputs.numpy(), [*log_kernel.tolist(), 0.0, -np.inf]))


def test_chosen_rows_span_the_kernel_to_the_tolerance(inputs):
    pivots = select_pivots(inputs, LOG_KERNEL, 1e-5)
    for each in range(2):
        rows = pivots[each][pivots[each] >= 0]
        assert len(rows.unique()) == len(rows)
        assert len(rows) < 45
        kernel = dense_kernel(inputs[each], LOG_KERNEL[each])
        left_out = kernel - kernel[:, rows] @ torch.linalg.solve(kernel[rows][:, rows], kernel[rows])
        assert left_out.diagonal().max() < 2e-5


def test_repeated_rows_are_chosen_once():
    inputs = torch.tensor([0.0, 1.0, 0.0, 1.0, 2.0, 2.0], dtype=torch.float64)[None, :, None]
    assert sorted(inputs[0, select_pivots(inputs, LOG_KERNEL[:1], 1e-5)[0], 0].tolist()) == [0, 1, 2]


def test_spectrum_is_that_of_the_dense_kernel(inputs):
    targets = torch.tensor(np.random.default_rng(1).normal(size=(50, 3)))
    spectrum, _ = kernel_spectrum(inputs, targets, LOG_KERNEL, select_pivots(inputs, LOG_KERNEL, 1e-6))
    for each in range(2):
        kernel = dense_kernel(inputs[each], LOG_KERNEL[each])
        basis = spectrum.basis[each]
        torch.testing.assert_close((basis * spectrum.eigenvalues[each]) @ basis.T, kernel, rtol=0, atol=1e-5)
        torch.testing.assert_close(spectrum.projections[each], basis.T @ targets)
        outside = targets - basis @ (basis.T @ targets)
        torch.testing.assert_close(spectrum.residual[each], outside.square().sum(dim=0))


def test_a_batch_gives_what_its_members_give_alone(inputs):
    """Members of a batch have different ranks; the smaller ones are padded."""
    targets = torch.tensor(np.random.default_rng(1).normal(size=(50, 3)))
    pivots = select_pivots(inputs, LOG_KERNEL, 1e-6)
    assert (pivots < 0).any()
    together, derivatives = kernel_spectrum(inputs, targets, LOG_KERNEL, pivots)
    for each in range(2):
        one = slice(each, each + 1)
        alone, own = kernel_spectrum(
            inputs[one], targets, LOG_KERNEL[one], select_pivots(inputs[one], LOG_KERNEL[one], 1e-6)
        )
        rank = alone.eigenvalues.shape[1]
        torch.testing.assert_close(together.eigenvalues[one, -rank:], alone.eigenvalues, rtol=1e-7, atol=1e-9)
        major = own.first[0].shape[1]
        for mine, padded in zip(own.first, derivatives.first, strict=True):
            ours, theirs = mine.diagonal(dim1=1, dim2=2), padded.diagonal(dim1=1, dim2=2)[one, -major:]
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_no_more_pivots_are_chosen_than_allowed():
    inputs = torch.tensor(np.random.default_rng(0).normal(size=(2, 50, 2)))
    kernel = torch.zeros(2, 2, dtype=torch.float64)
    every, few = select_pivots(inputs, kernel, 1e-6), select_pivots(inputs, kernel, 1e-6, most=7)
    assert every.shape[1] > 7
    assert torch.equal(few, every[:, :7])
