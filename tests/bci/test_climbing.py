import numpy as np
import pytest
import torch
from gp_oracle import log_likelihood, log_prior, optimum

from bci.climbing import Climb
from bci.expansions import Expansions
from bci.map_objective import MapObjective


@pytest.fixture
def pair():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 2))
    rows[:, 1] = np.tanh(rows[:, 0]) + 0.4 * rows[:, 1]
    return Expansions(torch.tensor(rows), torch.tensor([[0]]), torch.tensor([1]), 1.0, 1e-3)


@pytest.mark.parametrize("together", [False, True])
def test_climbs_reach_the_maximum_from_anywhere(pair, together):
    rows = pair.rows.numpy()
    best, _, parameters = optimum(rows[:, :1], rows[:, 1])
    starts = torch.tensor(parameters + np.random.default_rng(0).uniform(-1.2, 1.2, size=(30, 4)))
    zeros = torch.zeros(30, dtype=torch.int64)
    climb = Climb(pair, MapObjective(1, 1.0), zeros, zeros, pair.of_pairs(zeros, zeros, starts))
    found = climb.run(together=together)
    np.testing.assert_allclose(found.objective, best, atol=0.05)
    for logs, objective in zip(found.parameters.numpy(), found.objective, strict=True):
        there = log_likelihood(rows[:, :1], rows[:, 1], logs) + log_prior(1, logs)
        assert float(objective) == pytest.approx(there, abs=0.05)


def test_climbs_that_get_near_a_known_maximum_end(pair):
    rows = pair.rows.numpy()
    _, _, parameters = optimum(rows[:, :1], rows[:, 1])
    zero = torch.zeros(1, dtype=torch.int64)
    origin = pair.of_pairs(zero, zero, torch.tensor(parameters)[None] + 0.15)
    objective = MapObjective(1, 1.0)
    known = objective.predict(pair.of_pairs(zero, zero, torch.tensor(parameters)[None])).here
    expanded = []

    class Counting(Expansions):
        def of_pairs(self, *arguments):
            expanded.append(arguments)
            return super().of_pairs(*arguments)

    counting = Counting(pair.rows, pair.members, pair.nodes, 1.0, 1e-3)
    Climb(counting, objective, zero, zero, origin, known).run(together=False)
    assert len(expanded) <= 1
