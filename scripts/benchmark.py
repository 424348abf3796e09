"""Measure accuracy, speed and memory on one core, and print each figure beside what it should reach.

python scripts/benchmark.py [SECTION ...]

Every section runs in a process of its own, so that peak memory is its own; figures of one section come from one run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import gpytorch
import numpy as np
import torch
from scipy.optimize import minimize
from store_load import METRICS, append_from_processes, job_id, job_rows, make_store

from bci.arco_gp import ArcoGP, ExactGP
from bci.data.sachs import sachs, sachs_gp
from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset
from bci.kernels import NOISE_PRIOR, OUTPUTSCALE_PRIOR, SHAPE_PRIOR, lengthscale_prior
from bci.likelihood import dense_log_marginal_likelihood
from bci.marginalisation import log_order_evidence, log_parent_set_weights
from bci.metrics import INTERVENTIONAL, STRUCTURE, evaluate
from bci.oracle_gp import OracleGP
from bci.randomness import stream
from bci.scores import ScoreTable, score_parent_sets
from experiments.store import ResultStore
from experiments.store.compaction import compact
from experiments.store.history import history

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


class Figure(NamedTuple):
    """One line of the report; `limit` is the most it may be, or the least if `at_least`."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False


def example(graph_model: str = "er", num_nodes: int = 20, num_samples: int = 200, seed: int = 0) -> Dataset:
    """The paper's simulated setting: expected degree 2, GP mechanisms, no test interventions."""
    return simulated_dataset(
        graph_model=graph_model,
        num_nodes=num_nodes,
        expected_degree=2,
        mechanism="gp",
        num_samples=num_samples,
        seed=seed,
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def scores() -> Iterator[Figure]:
    """Time to score all parent sets, and the plain per-set fit for comparison."""
    data = example()
    score_parent_sets(example(num_nodes=6, num_samples=20), 2)  # first calls of the libraries
    ours = seconds(lambda: score_parent_sets(data, 2))
    yield Figure("scores, d = 20, N = 200, K = 2", ours, "s", 2.5)
    rng, sample = np.random.default_rng(0), 40
    pairs = [random_pair(rng, 20, int(rng.integers(1, 3))) for _ in range(sample)]
    plain = seconds(lambda: [rmsprop_fit(data, target, parents) for target, parents in pairs]) / sample
    count = 20 * (19 + 19 * 18 // 2)
    yield Figure(f"  one gpytorch fit (RMSprop, 12 steps), mean of {sample}", plain * 1e3, "ms")
    yield Figure(f"  ratio: {count} such fits / scores", plain * count / ours, "x", 120, at_least=True)
    yield Figure("scores, d = 20, N = 200, K = 3", seconds(lambda: score_parent_sets(data, 3)), "s", 15)


def scores_large() -> Iterator[Figure]:
    """N = 1,000, where kernel matrices are of low rank."""
    data = example(num_samples=1000)
    tables: list[ScoreTable] = []
    yield Figure("scores, d = 20, N = 1000, K = 2", seconds(lambda: tables.append(score_parent_sets(data, 2))), "s", 40)
    yield Figure("  peak memory of the process", peak_memory(), "MB", 1000)
    table, rng, worst = tables[0], np.random.default_rng(0), 0.0
    for trial in range(50):
        target, parents = random_pair(rng, 20, trial % 2 + 1)
        number = table.parent_sets.number(parents)
        dense = DenseGP(data, target, parents)
        theirs = dense.score(table.hyperparameters[target, number].numpy())
        worst = max(worst, abs(float(table.scores[target, number]) - theirs))
    yield Figure("  against gpytorch at their parameters, worst of 50", worst, "nats", 0.05)


def accuracy() -> Iterator[Figure]:
    """Scores of K = 4 against dense multi-start optima of the same objective in gpytorch; sums over all of them."""
    data = example()
    tables: list[ScoreTable] = []
    yield Figure("scores, d = 20, N = 200, K = 4", seconds(lambda: tables.append(score_parent_sets(data, 4))), "s", 75)
    table, rng = tables[0], np.random.default_rng(0)
    worst_score = worst_likelihood = 0.0
    for trial in range(200):
        target, parents = random_pair(rng, 20, trial % 4 + 1)
        number = table.parent_sets.number(parents)
        dense = DenseGP(data, target, parents)
        worst_score = max(worst_score, abs(float(table.scores[target, number]) - dense.best_score()))
        psi = table.hyperparameters[target, number]
        ours = dense_log_marginal_likelihood(dense.inputs[None], dense.outputs[None], psi[None])[0]
        theirs = dense.log_likelihood(psi.numpy())
        worst_likelihood = max(worst_likelihood, abs(float(ours) - theirs) / abs(theirs))
    yield Figure("scores against the dense gpytorch optimum, worst of 200", worst_score, "nats", 0.05)
    yield Figure("log marginal likelihood against gpytorch, worst of 200", worst_likelihood, "relative", 1e-6)

    orders = torch.as_tensor(rng.permuted(np.tile(np.arange(20), (100, 1)), axis=1))
    ours = min(seconds(lambda: log_order_evidence(table, orders)) for _ in range(5))
    plain = min(
        seconds(lambda: torch.logsumexp(log_parent_set_weights(table, orders), dim=2).sum(dim=1)) for _ in range(5)
    )
    yield Figure("evidence of 100 orders, d = 20, K = 4", ours * 1e3, "ms")
    yield Figure("  ratio: the same in logarithms throughout", plain / ours, "x", 3, at_least=True)


def jobs() -> Iterator[Figure]:
    """Whole jobs: fit, posterior and all structure metrics."""
    data = example()
    yield Figure("exact_gp job, d = 20, N = 200, K = 2", seconds(lambda: run_job(ExactGP(), data)), "s", 7)
    yield Figure("  peak memory of the process", peak_memory(), "MB")
    table = score_parent_sets(data, 2)
    training = seconds(lambda: ArcoGP(patience=0).posterior(table, np.random.default_rng(0)))
    yield Figure("ARCO training, d = 20, 400 steps of 100 orders", training, "s", 10)
    yield Figure("arco_gp job, Sachs (N = 853)", seconds(lambda: run_job(ArcoGP(patience=0), sachs())), "s", 60)


def fifty_nodes() -> Iterator[Figure]:
    """The paper's larger setting."""
    data = example(num_nodes=50, num_samples=100)
    yield Figure("arco_gp job, d = 50, N = 100", seconds(lambda: run_job(ArcoGP(patience=0), data)), "s", 120)
    yield Figure("  peak memory of the process", peak_memory(), "MB")


def quality() -> Iterator[Figure]:
    """Mean ESHD over data.seed = 0..9 with exact orders, d = 20, N = 200, K = 2."""
    for graph_model, limit in (("sf", 1.0), ("er", 18.0)):
        errors = []
        for seed in range(10):
            data = example(graph_model, seed=seed)
            posterior = ExactGP().fit(data, np.random.default_rng(0))
            errors.append(float(np.abs(data.graph - posterior.edge_probabilities).sum()))
        yield Figure(f"ESHD, exact_gp on {graph_model}, mean of 10", float(np.mean(errors)), "", limit)


def task2() -> Iterator[Figure]:
    """Causal queries on simulated Sachs data: one evaluation, then the means over data.seed = 0..9 beside the paper's.

    Five interventions a node, 55 in all, with 1,000 true and 10,000 posterior samples each.
    """
    limits = {"mmd": 0.15, "l1": 0.93, "l2": 0.37}
    values: dict[str, list[dict[str, float]]] = {"arco_gp": [], "oracle_gp": []}
    for seed in range(10):
        data = sachs_gp(mechanism="gp", num_samples=100, seed=seed, interventional_test={})
        assert len(data.interventional_test) == 55
        for name, method in (("arco_gp", ArcoGP()), ("oracle_gp", OracleGP())):
            posterior = method.fit(data, stream(0, "method"))
            start = time.perf_counter()
            found = evaluate(posterior, data, names=INTERVENTIONAL, rng=stream(0, "metrics"))
            if seed == 0 and name == "arco_gp":
                yield Figure("evaluation of 55 interventions", time.perf_counter() - start, "s", 60)
                yield Figure("  peak memory of the process", peak_memory(), "MB", 1500)
            values[name].append(found)
    for name, limit in limits.items():
        for method_name, rows in values.items():
            mean = float(np.mean([row[name] for row in rows]))
            bound = limit if method_name == "arco_gp" else None
            yield Figure(f"{name.upper()}, {method_name}, mean of 10", mean, "", bound)


def sweeps() -> Iterator[Figure]:
    """Forty small jobs one after the other and on two workers, from the shell; then one job by itself."""
    small = ["data=er", "data.num_nodes=15", "data.num_samples=200", "data.expected_degree=2", "method=exact_gp"]
    count, walls, rows = 40, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for launcher in (["basic"], ["processes", "launcher.jobs=2"]):
            sweep = [f"launcher={launcher[0]}", *launcher[1:], f"data.seed=range({count})", "-m"]
            walls[launcher[0]] = seconds(lambda: run_command(folder, launcher[0], *small, *sweep))  # noqa: B023
            rows[launcher[0]] = ResultStore(Path(folder) / launcher[0]).rows().drop_duplicates("run_id")
        alone = seconds(lambda: run_command(folder, "alone", *small))
        fit = float(ResultStore(Path(folder) / "alone").rows()["fit_seconds"].iloc[0])
    assert all(len(each) == count for each in rows.values())
    yield Figure(f"sweep of {count} jobs, launcher=basic", walls["basic"], "s")
    yield Figure("  of that per job: fit", float(rows["basic"]["fit_seconds"].mean()), "s")
    overhead = (walls["basic"] - float(rows["basic"]["fit_seconds"].sum())) / count
    yield Figure("  of that per job: all but the fit", overhead, "s", 3)
    yield Figure("  launcher=processes on 2 cores: times faster", walls["basic"] / walls["processes"], "x", 1.8, True)
    yield Figure("one job by itself: all but the fit", alone - fit, "s")


def run_command(folder: str, store: str, *arguments: str) -> None:
    """Run jobs from the shell in a folder, their rows to a store in it."""
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "experiments.run", f"store.path={store}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)


def store() -> Iterator[Figure]:
    """The result store with 5,000 commits, and 8 processes that append at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_store(Path(folder) / "large", 5000).path
        appends = [seconds(lambda: ResultStore(path).append(job_rows(f"new {k}"))) for k in range(21)]  # noqa: B023
        yield Figure("append at 5,000 commits, median of 21", float(np.median(appends)), "s", 0.2)
        yield Figure("  the slowest of them, which also sums up the log", max(appends), "s")
        yield Figure("  is a job done, at 5,000 files", seconds(lambda: ResultStore(path).done(job_id("2500"))), "s")
        yield Figure("  all rows of 5,000 files", seconds(lambda: ResultStore(path).table()), "s")
        yield Figure("  history", seconds(lambda: history(ResultStore(path))), "s")
        yield Figure("  compaction", seconds(lambda: compact(ResultStore(path))), "s")
        yield Figure("  append after it", seconds(lambda: ResultStore(path).append(job_rows("last"))), "s")
        yield Figure("  is a job done, after it", seconds(lambda: ResultStore(path).done(job_id("2500"))), "s")
        yield Figure("  all rows, after it", seconds(lambda: ResultStore(path).table()), "s")
        shared = Path(folder) / "shared"
        taken = seconds(lambda: append_from_processes(shared, 8, 25))
        counts = ResultStore(shared).rows().groupby("job_id").size()
        stored = int((counts == len(METRICS)).sum())
        yield Figure("200 concurrent appends from 8 processes, stored once", stored, "", 200, at_least=True)
        yield Figure("  time of all, with the start of the processes", taken, "s")


def run_job(method: ArcoGP | ExactGP, data: Dataset) -> None:
    posterior = method.fit(data, stream(0, "method"))
    evaluate(posterior, data, names=STRUCTURE, rng=stream(0, "metrics"))


def random_pair(rng: np.random.Generator, num_nodes: int, size: int) -> tuple[int, tuple[int, ...]]:
    target, *parents = rng.choice(num_nodes, size + 1, replace=False).tolist()
    return target, tuple(sorted(parents))


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _PlainGP(gpytorch.models.ExactGP):
    """Zero-mean GP with the rational-quadratic kernel of the paper."""

    def __init__(self, inputs: torch.Tensor, outputs: torch.Tensor) -> None:
        super().__init__(inputs, outputs, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RQKernel())
        self.double()

    def forward(self, inputs: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


class DenseGP:
    """The objective of one (target, parents) pair in gpytorch; psi as in `bci.likelihood`."""

    def __init__(self, data: Dataset, target: int, parents: tuple[int, ...]) -> None:
        observations = torch.as_tensor(data.observations)
        self.inputs, self.outputs = observations[:, list(parents)], observations[:, target]
        self.priors = (lengthscale_prior(len(parents)), SHAPE_PRIOR, OUTPUTSCALE_PRIOR, NOISE_PRIOR)
        self.model = _PlainGP(self.inputs, self.outputs)
        self.marginal = gpytorch.mlls.ExactMarginalLogLikelihood(self.model.likelihood, self.model)
        self.model.train()

    def log_likelihood(self, log_psi: np.ndarray) -> float:
        return float(self._log_likelihood(log_psi).detach())

    def score(self, log_psi: np.ndarray) -> float:
        return -self._loss(log_psi)[0]

    def best_score(self) -> float:
        """Multi-start L-BFGS over all four hyper-parameters."""
        modes = np.log([prior.mode for prior in self.priors])
        starts = [modes + shift for shift in ((0.1, 0, 0, 0.5), (-0.5, -0.4, 0, -1.0), (-0.9, -0.6, 0, 0.5))]
        return max(-minimize(self._loss, start, jac=True, method="L-BFGS-B").fun for start in starts)

    def _loss(self, log_psi: np.ndarray) -> tuple[float, np.ndarray]:
        raw = [parameter for _, parameter in self.model.named_parameters()]
        likelihood = self._log_likelihood(log_psi)
        gradients = dict(zip((id(p) for p in raw), torch.autograd.grad(likelihood, raw), strict=True))
        kernel, noise = self.model.covar_module, self.model.likelihood.noise_covar
        order = (  # as in psi
            kernel.base_kernel.raw_lengthscale,
            kernel.base_kernel.raw_alpha,
            kernel.raw_outputscale,
            noise.raw_noise,
        )
        value, gradient = float(likelihood.detach()), np.zeros(4)
        for index, (parameter, prior) in enumerate(zip(order, self.priors, strict=True)):
            # The parameter is softplus(raw), for the noise plus a bound; its derivative is the sigmoid.
            natural = float(np.exp(log_psi[index]))
            slope = float(torch.sigmoid(parameter.detach()).reshape(()))
            gradient[index] = float(gradients[id(parameter)].reshape(())) / slope * natural
            gradient[index] += prior.shape - 1 - prior.rate * natural
            value += float(prior.log_density(torch.tensor(log_psi[index])))
        return -value, -gradient

    def _log_likelihood(self, log_psi: np.ndarray) -> torch.Tensor:
        lengthscale, gamma, outputscale, noise = np.exp(log_psi)
        kernel = self.model.covar_module
        kernel.base_kernel.lengthscale, kernel.base_kernel.alpha = lengthscale, gamma
        kernel.outputscale, self.model.likelihood.noise = outputscale, max(noise, 1.01e-4)
        with gpytorch.settings.fast_computations(log_prob=False):
            return self.marginal(self.model(self.inputs), self.outputs) * len(self.outputs)


def rmsprop_fit(data: Dataset, target: int, parents: tuple[int, ...]) -> None:
    """A GP fitted by itself with RMSprop, learning rate 0.05, 12 steps, priors on all hyper-parameters."""
    dense = DenseGP(data, target, parents)
    kernel, likelihood = dense.model.covar_module, dense.model.likelihood
    parts = ((kernel.base_kernel, "lengthscale"), (kernel.base_kernel, "alpha"), (kernel, "outputscale"))
    for (module, name), prior in zip((*parts, (likelihood, "noise")), dense.priors, strict=True):
        module.register_prior(f"{name}_prior", gpytorch.priors.GammaPrior(prior.shape, prior.rate), name)
    optimiser = torch.optim.RMSprop(dense.model.parameters(), lr=0.05)
    with gpytorch.settings.fast_computations(log_prob=False):
        for _ in range(12):
            optimiser.zero_grad()
            loss = -dense.marginal(dense.model(dense.inputs), dense.outputs)
            loss.backward()
            optimiser.step()


SECTIONS: dict[str, Callable[[], Iterator[Figure]]] = {
    section.__name__: section
    for section in (scores, scores_large, accuracy, jobs, fifty_nodes, quality, task2, sweeps, store)
}


def run_section(name: str) -> None:
    """Print the figures of a section as JSON lines."""
    torch.set_num_threads(1)
    for figure in SECTIONS[name]():
        print(json.dumps(figure._asdict()), flush=True)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"benchmark: unknown section {unknown[0]!r}; expected some of {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or list(SECTIONS):
        command = [sys.executable, __file__, "--section", name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_CORE}) as process:
            assert process.stdout is not None
            for line in process.stdout:
                figure = Figure(**json.loads(line))
                missed += not report(figure)
        if process.returncode:
            return process.returncode
    print("all figures reached" if not missed else f"{missed} figure(s) not reached")
    return 1 if missed else 0


def report(figure: Figure) -> bool:
    """Print a figure; whether it is within its limit."""
    line = f"{figure.what:<62} {figure.value:>10.4g} {figure.unit:<8}"
    if figure.limit is None:
        print(line.rstrip(), flush=True)
        return True
    reached = figure.value >= figure.limit if figure.at_least else figure.value <= figure.limit
    bound = f"{'at least' if figure.at_least else 'at most'} {figure.limit:g}"
    print(f"{line} {bound:<14} {'ok' if reached else 'MISSED'}", flush=True)
    return reached


if __name__ == "__main__":
    if sys.argv[1:2] == ["--section"]:
        run_section(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
