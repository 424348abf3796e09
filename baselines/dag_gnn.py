"""DAG-GNN, of gCastle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Floats
from bci.settings import check_choice, check_count, check_number

Coder = Literal["mlp", "sem"]
Optimiser = Literal["adam", "sgd"]


@dataclass(frozen=True, kw_only=True)
class DAGGNN(PackagedMethod):
    """DAG-GNN: a variational autoencoder whose layers pass on values along a learnt weighted graph.

    Yu, Chen, Gao & Yu (2019), "DAG-GNN: DAG structure learning with graph neural networks". Cycles are penalised, not
    ruled out: the graph may have one.

    Args:
        encoder_type, decoder_type: "mlp" or "sem".
        encoder_hidden, decoder_hidden: width of the hidden layer.
        latent_dim: latent dimensions of a variable, None for as many as observed ones.
        encoder_dropout, decoder_dropout: taken by gCastle without effect.
        epochs: passes over the data in one round.
        k_max_iter: most rounds.
        tau_a: weight of the L1 penalty on the graph.
        batch_size: rows of a minibatch.
        lr, lr_decay, gamma: learning rate, and its factor gamma after every lr_decay steps.
        init_lambda_a, init_c_a: the multipliers of the acyclicity constraint at the start.
        c_a_thresh: largest quadratic multiplier.
        eta, multiply_h: the quadratic multiplier grows by eta unless a round lowers the constraint to multiply_h of it.
        h_tolerance: value of the constraint that ends the fit.
        use_a_connect_loss, use_a_positiver_loss: further penalties.
        graph_threshold: edges of smaller absolute weight are left out.
        optimizer: "adam" or "sgd".
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    encoder_type: Coder = "mlp"
    decoder_type: Coder = "mlp"
    encoder_hidden: int = 64
    decoder_hidden: int = 64
    latent_dim: int | None = None
    encoder_dropout: float = 0.0
    decoder_dropout: float = 0.0
    epochs: int = 300
    k_max_iter: int = 100
    tau_a: float = 0.0
    batch_size: int = 100
    lr: float = 0.003
    lr_decay: int = 200
    gamma: float = 1.0
    init_lambda_a: float = 0.0
    init_c_a: float = 1.0
    c_a_thresh: float = 1e20
    eta: float = 10.0
    multiply_h: float = 0.25
    h_tolerance: float = 1e-8
    use_a_connect_loss: bool = False
    use_a_positiver_loss: bool = False
    graph_threshold: float = 0.3
    optimizer: Optimiser = "adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, choices in {"encoder_type": Coder, "decoder_type": Coder, "optimizer": Optimiser}.items():
            check_choice(key, getattr(self, key), get_args(choices))
        for key in ("encoder_hidden", "decoder_hidden", "epochs", "k_max_iter", "batch_size", "lr_decay"):
            check_count(key, getattr(self, key), 1)
        if self.latent_dim is not None:
            check_count("latent_dim", self.latent_dim, 1)
        for key in ("lr", "gamma", "c_a_thresh", "eta", "multiply_h"):
            check_number(key, getattr(self, key), positive=True)
        for key in _NUMBERS:
            check_number(key, getattr(self, key))

    @property
    def packages(self) -> tuple[str, ...]:
        return ("castle", "torch")


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:
    """Run in the process of the fit."""
    import castle.algorithms

    learner = castle.algorithms.DAG_GNN(**settings, seed=seed)
    learner.learn(observations)
    graph = np.asarray(learner.causal_matrix) != 0
    loops = int(graph.diagonal().sum())  # penalised as well, not ruled out
    np.fill_diagonal(graph, False)
    return FittedGraphs(graph[None], diagnostics={"self_loops_left_out": loops})


_NUMBERS = (
    "encoder_dropout",
    "decoder_dropout",
    "tau_a",
    "init_lambda_a",
    "init_c_a",
    "h_tolerance",
    "graph_threshold",
)
