from __future__ import annotations

import torch

from baselines.node_networks import NodeNetworks


def test_a_prediction_is_that_of_a_network_per_node_on_its_parents():
    generator = torch.Generator().manual_seed(0)
    networks = NodeNetworks(4, [5, 3], generator)
    rows = torch.randn(7, 4, generator=generator)
    dag = (torch.rand(4, 4, generator=generator) < 0.5).float()
    predicted = networks.predict(rows, dag)
    for node in range(4):
        values = rows * dag[:, node]
        for layer, (weight, bias) in enumerate(zip(networks.weights, networks.biases, strict=True)):
            values = values @ weight[node] + bias[node]
            values = values.relu() if layer < 2 else values
        torch.testing.assert_close(predicted[:, node], values[:, 0])
