import numpy as np
import torch
from gp_oracle import log_prior
from scipy import optimize

from bci.map_objective import TRUSTED, MapObjective
from bci.newton import QuadraticModel

CENTRE = torch.tensor([1.9, 1.8, 9.6, 0.6], dtype=torch.float64).log()


def test_prediction_is_the_maximum_of_the_expansion_and_the_prior():
    gradient = torch.tensor([0.8, -0.4, 0.3, 0.5], dtype=torch.float64)
    root = torch.tensor(np.random.default_rng(0).normal(size=(4, 4)))
    hessian = -(root @ root.T) - 5 * torch.eye(4, dtype=torch.float64)
    objective = MapObjective(2, 0.7)
    prediction = objective.predict(QuadraticModel(CENTRE, torch.tensor(-100.0).double(), gradient, hessian))

    def negative(parameters):
        step = parameters - CENTRE.numpy()
        likelihood = -100 + gradient.numpy() @ step + step @ hessian.numpy() @ step / 2
        return -(0.7 * likelihood + log_prior(2, parameters))

    best = optimize.minimize(negative, CENTRE.numpy(), tol=1e-12)
    np.testing.assert_allclose(prediction.there.parameters, best.x, atol=1e-4)
    np.testing.assert_allclose(float(prediction.there.objective), -best.fun, atol=1e-6)
    reach = np.abs(best.x - CENTRE.numpy()) / TRUSTED
    np.testing.assert_allclose(float(prediction.reach), reach.max(), atol=1e-3)


def test_an_expansion_that_is_flat_in_one_direction_has_a_finite_prediction():
    """Likelihood and prior bend against each other; a full Newton step would take the prior out of range."""
    gradient = torch.tensor([0.0, 900.0, 0.0, 0.0], dtype=torch.float64)
    hessian = -torch.diag(torch.tensor([50.0, -18.0, 100.0, 400.0], dtype=torch.float64))
    model = QuadraticModel(CENTRE, torch.tensor(-500.0).double(), gradient, hessian)
    prediction = MapObjective(2, 1.0).predict(model)
    assert prediction.there.parameters.isfinite().all()
    assert prediction.there.objective.isfinite()
    assert prediction.reach > 1
