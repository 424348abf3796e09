from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import leaky_relu

from baselines.message_networks import MessageNetworks


def parts_of(networks, parameters):
    """Of one chain, by name."""
    sizes = [math.prod(part.shape) for part in networks._parts.values()]
    pieces = parameters.split(sizes)
    return {name: piece.view(part.shape) for (name, part), piece in zip(networks._parts.items(), pieces, strict=True)}


def activated(hidden, part, network, norm_layers):
    """The hidden layer of one node and row."""
    hidden = leaky_relu(hidden)
    if not norm_layers:
        return hidden
    deviation = hidden.var(correction=0).add(1e-5).sqrt()
    return part[f"{network}_scale"][0] * (hidden - hidden.mean()) / deviation + part[f"{network}_shift"][0]


@pytest.mark.parametrize("norm_layers", [False, True])
def test_a_node_is_predicted_from_the_messages_of_its_parents(norm_layers):
    generator = torch.Generator().manual_seed(0)
    networks = MessageNetworks(3, norm_layers=norm_layers)
    parameters = networks.start(2, generator)
    parameters += 0.1 * torch.randn(parameters.shape, generator=generator)  # no scale is one, no shift zero
    values = torch.randn(3, 5, generator=generator)
    graphs = torch.tensor([[[0.0, 1, 1], [0, 0, 1], [0, 0, 0]], [[1.0, 0, 0], [1, 0, 0], [1, 1, 0]]])
    predicted = networks.predict(parameters, values, graphs)
    for chain in range(2):
        part = parts_of(networks, parameters[chain])
        for node in range(3):
            for row in range(5):
                total = torch.zeros(3)
                for parent in range(3):
                    if parent == node or not graphs[chain, parent, node]:
                        continue
                    hidden = values[parent, row] * part["g_value"][parent]
                    hidden = hidden + part["embedding"][parent] @ part["g_embedding"] + part["g_bias"][0]
                    message = activated(hidden, part, "g", norm_layers) @ part["g_output"] + part["g_output_bias"][0]
                    total += part["weight"][parent, node] * message
                hidden = total @ part["f_sum"] + part["embedding"][node] @ part["f_embedding"] + part["f_bias"][0]
                hidden = activated(hidden, part, "f", norm_layers)
                expected = hidden @ part["f_output"][node] + part["f_output_bias"][node, 0]
                torch.testing.assert_close(predicted[chain, node, row], expected)


@pytest.mark.parametrize("norm_layers", [False, True])
def test_derivatives_agree_with_finite_differences(norm_layers):
    generator = torch.Generator().manual_seed(1)
    networks = MessageNetworks(2, norm_layers=norm_layers)
    parameters = networks.start(1, generator).double()
    networks._no_loops = networks._no_loops.double()
    values = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    graphs = torch.tensor([[[0.0, 1], [0, 0]]], dtype=torch.float64)

    def predict(parameters, graphs):
        return networks.predict(parameters, values, graphs).square().sum()

    assert torch.autograd.gradcheck(predict, (parameters.requires_grad_(), graphs.requires_grad_()), fast_mode=True)


def test_parameters_start_as_described():
    networks = MessageNetworks(20, norm_layers=True)
    part = parts_of(networks, networks.start(1, torch.Generator().manual_seed(0))[0])
    assert abs(part["embedding"].std().item() - 0.01) < 0.002
    assert abs(part["weight"].std().item() - 0.1) < 0.02
    assert part["g_value"].shape == (20, 80)
    assert 0.95 / math.sqrt(40) < part["g_value"].abs().max() <= 1 / math.sqrt(40)
    assert part["g_scale"].eq(1).all()
    assert part["f_scale"].eq(1).all()
    assert part["g_shift"].eq(0).all()
    assert part["f_shift"].eq(0).all()
