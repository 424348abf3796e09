"""All candidate parent sets of bounded size, numbered once for every tensor that has a set dimension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import torch
from torch import Tensor

from bci.errors import InvalidInput


@dataclass(frozen=True)
class ParentSets:
    """The subsets of {0..num_nodes-1} with at most `max_size` members, smallest first, then lexicographic.

    Set 0 is the empty set. The same numbering serves every node: set S is no candidate for the nodes it
    contains, and tensors of shape (nodes, sets) hold -inf or zero there.

    Raises:
        InvalidInput: max_size is negative or not below num_nodes.
    """

    num_nodes: int
    max_size: int

    def __post_init__(self) -> None:
        if not 0 <= self.max_size < self.num_nodes:
            raise InvalidInput(
                f"max_parents: expected 0 to {self.num_nodes - 1} for {self.num_nodes} variables, got {self.max_size}; "
                "lower it"
            )

    def __len__(self) -> int:
        return num_sets(self.num_nodes, self.max_size)

    @cached_property
    def members(self) -> list[tuple[int, ...]]:
        """The sets as sorted tuples; position = number of the set."""
        nodes = range(self.num_nodes)
        return [members for size in range(self.max_size + 1) for members in combinations(nodes, size)]

    @cached_property
    def padded_members(self) -> Tensor:
        """(sets, max_size) int64; missing members hold `num_nodes`."""
        padding = self.num_nodes
        rows = [(*members, *[padding] * (self.max_size - len(members))) for members in self.members]
        return torch.tensor(rows, dtype=torch.int64).reshape(len(self), self.max_size)

    @cached_property
    def membership(self) -> Tensor:
        """(sets, nodes) bool: whether the node is in the set."""
        with_padding = torch.zeros(len(self), self.num_nodes + 1, dtype=torch.bool)
        with_padding.scatter_(1, self.padded_members, value=True)
        return with_padding[:, :-1]

    @cached_property
    def sizes(self) -> Tensor:
        """(sets,) int64."""
        return self.membership.sum(dim=1)

    @cached_property
    def bitmasks(self) -> Tensor:
        """(sets,) int64 with bit j set iff node j is a member."""
        return (self.membership.long() << torch.arange(self.num_nodes)).sum(dim=1)

    @cached_property
    def _numbers(self) -> dict[tuple[int, ...], int]:
        return {members: number for number, members in enumerate(self.members)}

    def number(self, members: Iterable[int]) -> int:
        """The number of the set with these members. Raises KeyError if it is too large or unknown."""
        return self._numbers[tuple(sorted(members))]

    def latest_positions(self, positions: Tensor) -> Tensor:
        """Position of the last member of every set; -1 for the empty set.

        Args:
            positions: (orders, nodes), the place of each node in each order, from 0.

        Returns:
            (orders, sets) int64. A set fits node i under an order iff this is below the position of i.
        """
        orders = positions.shape[0]
        before_all = positions.new_full((orders, 1), -1)
        if self.max_size == 0:
            return before_all
        extended = torch.cat([positions, before_all], dim=1)
        members = self.padded_members.to(positions.device)
        latest = extended[:, members[:, 0]]
        for column in range(1, self.max_size):
            latest = torch.maximum(latest, extended[:, members[:, column]])
        return latest


def num_sets(num_candidates: int, max_size: int) -> int:
    """Number of subsets of `num_candidates` nodes with at most `max_size` members."""
    return sum(comb(num_candidates, size) for size in range(max_size + 1))
