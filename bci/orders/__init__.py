"""Distributions over causal orders: learnt (ARCO, Plackett-Luce) and exact."""

from bci.orders.exact import ExactOrders
from bci.orders.protocol import OrderModel
from bci.orders.sequential import AutoregressiveOrders, PlackettLuceOrders
from bci.orders.training import TrainingSettings, train_orders

__all__ = [
    "AutoregressiveOrders",
    "ExactOrders",
    "OrderModel",
    "PlackettLuceOrders",
    "TrainingSettings",
    "train_orders",
]
