"""Where the nodes of a drawn graph go and how its edges bend: arrows point down and none hides behind a node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from bci.dataset import Floats

ROW_GAP = 1.0
COLUMN_GAP = 1.1
CLEARANCE = 0.33  # distance from an edge to a node that it passes
_SWEEPS = 8  # of the ordering within rows; it settles after a few
_ROUNDS = 4  # of the improvement after it
_BENDS = (0.0, 0.1, -0.1, 0.18, -0.18, 0.26, -0.26, 0.36, -0.36, 0.48, -0.48, 0.62, -0.62)
_ALONG = np.linspace(0.0, 1.0, 41)[:, None]


def forward_order(weights: Floats) -> list[int]:
    """An order of the nodes with little weight on edges against it; a topological order if the edges have no cycle.

    The greedy heuristic of Eades, Lin and Smyth (1993): sinks to the end, sources to the front, then the node with
    the largest surplus of outgoing weight.

    Args:
        weights: (d, d) non-negative, row causes column, zero for no edge.
    """
    remaining = list(range(len(weights)))
    front: list[int] = []
    back: list[int] = []
    while remaining:
        part = weights[np.ix_(remaining, remaining)]
        outgoing, incoming = part.sum(axis=1), part.sum(axis=0)
        sources, sinks = np.flatnonzero(incoming == 0), np.flatnonzero(outgoing == 0)
        if sources.size:
            front.append(remaining.pop(int(sources[0])))
        elif sinks.size:
            back.append(remaining.pop(int(sinks[-1])))
        else:
            front.append(remaining.pop(int(np.argmax(outgoing - incoming))))
    return front + back[::-1]


def layered_positions(weights: Floats) -> Floats:
    """Positions (d, 2), causes above their effects, for a graph with edge weights (d, d), row causes column.

    A node stands in the first row below all its causes that has room; rows are at most about the square root of d
    wide. Within the rows nodes stand near their neighbours, where straight edges pass behind few other nodes.
    """
    rows = _rows(weights)
    symmetric = weights + weights.T
    positions = np.zeros((len(weights), 2))
    for index, row in enumerate(rows):
        _place(positions, row, index)
    for sweep in range(_SWEEPS):
        for index, row in list(enumerate(rows))[:: 1 if sweep % 2 == 0 else -1]:
            pull = symmetric[row].sum(axis=1)
            centre = np.where(pull > 0, symmetric[row] @ positions[:, 0] / np.maximum(pull, 1e-12), positions[row, 0])
            rows[index] = [row[k] for k in np.argsort(centre, kind="stable")]
            _place(positions, rows[index], index)
    return _improve(positions, rows, symmetric)


def bends(positions: Floats, edges: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """Curvature of every edge (matplotlib's `arc3` rad): the smallest that keeps `CLEARANCE` to all other nodes.

    An edge with a counterpart in the opposite direction is bent, so that both can be seen. Where no curvature is
    clear, the one that comes least close is taken.
    """
    edges = list(edges)
    present = set(edges)
    chosen: dict[tuple[int, int], float] = {}
    for cause, effect in edges:
        candidates = [bend for bend in _BENDS if bend > 0] if (effect, cause) in present else list(_BENDS)
        others = np.delete(positions, [cause, effect], axis=0)
        widest = (-math.inf, 0.0)
        for bend in candidates:
            gap = _gap(curve(positions[cause], positions[effect], bend), others)
            widest = max(widest, (min(gap, CLEARANCE), bend), key=lambda pair: pair[0])
            if gap >= CLEARANCE:
                break
        chosen[cause, effect] = widest[1]
    return chosen


def curve(start: Floats, end: Floats, bend: float) -> Floats:
    """Points (41, 2) on the quadratic Bezier curve that matplotlib's `arc3` draws between two positions (2,)."""
    along = end - start
    control = (start + end) / 2 + bend * np.array([along[1], -along[0]])
    points: Floats = (1 - _ALONG) ** 2 * start + 2 * _ALONG * (1 - _ALONG) * control + _ALONG**2 * end
    return points


def _gap(points: Floats, others: Floats) -> float:
    """Distance from a curve (points, 2) to the nearest of the other nodes (nodes, 2)."""
    return float(np.linalg.norm(points[:, None] - others, axis=2).min()) if len(others) else math.inf


def _rows(weights: Floats) -> list[list[int]]:
    """Nodes by row from the top; a node stands below its causes, of the faint ones only below the strongest."""
    order = forward_order(weights)
    rank = np.argsort(order)
    widest = max(3, math.ceil(1.2 * math.sqrt(len(weights))))
    row_of: dict[int, int] = {}
    rows: list[list[int]] = []
    for node in order:
        before = np.where(rank < rank[node], weights[:, node], 0.0)
        causes = np.flatnonzero((before > 0) & (before >= min(0.2, before.max())))
        row = 1 + max((row_of[int(cause)] for cause in causes), default=-1)
        while row < len(rows) and len(rows[row]) >= widest:
            row += 1
        rows.extend([] for _ in range(row + 1 - len(rows)))
        row_of[node] = row
        rows[row].append(node)
    return rows


def _place(positions: Floats, row: list[int], index: int) -> None:
    shift = 0.25 * COLUMN_GAP * (-1) ** index  # neighbouring rows are not in line, which keeps long edges clear
    for place, node in enumerate(row):
        positions[node] = (place - (len(row) - 1) / 2) * COLUMN_GAP + shift, -index * ROW_GAP


def _improve(positions: Floats, rows: list[list[int]], weights: Floats) -> Floats:
    """Swap nodes within a row and shift rows as long as that lowers the cost."""
    ends = np.argwhere(np.triu(weights, 1) > 0)
    best = _cost(positions, ends, weights)
    for _ in range(_ROUNDS):
        before = best
        for row in rows:
            for moved in _moves(positions, row):
                cost = _cost(moved, ends, weights)
                if cost < best - 1e-9:
                    positions, best = moved, cost
        if best == before:
            break
    return positions


def _moves(positions: Floats, row: list[int]) -> Iterator[Floats]:
    for k, first in enumerate(row):
        for second in row[k + 1 :]:
            moved = positions.copy()
            moved[[first, second]] = positions[[second, first]]
            yield moved
    for step in (-0.5, -0.25, 0.25, 0.5):
        moved = positions.copy()
        moved[row, 0] += step * COLUMN_GAP
        yield moved


def _cost(positions: Floats, ends: NDArray[np.intp], weights: Floats) -> float:
    """Length of the straight edges by weight, plus a penalty for every node that one of them hides behind."""
    if not len(ends):
        return 0.0
    start, end = positions[ends[:, 0]], positions[ends[:, 1]]  # (edges, 2)
    along = end - start
    squared = (along**2).sum(axis=1)
    share = np.clip(((positions - start[:, None]) * along[:, None]).sum(axis=2) / squared[:, None], 0.0, 1.0)
    gap = np.linalg.norm(positions - (start[:, None] + share[:, :, None] * along[:, None]), axis=2)  # (edges, nodes)
    gap[np.arange(len(ends))[:, None], ends] = np.inf
    weight = 0.2 + weights[ends[:, 0], ends[:, 1]]
    return float(2.0 * (gap < CLEARANCE).sum() + (weight * np.sqrt(squared)).sum())
