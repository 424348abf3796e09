from itertools import combinations, permutations

import pytest
import torch

from bci.errors import InvalidInput
from bci.parent_sets import ParentSets, num_sets


def test_sets_are_numbered_by_size_then_lexicographically():
    sets = ParentSets(5, 3)
    expected = [members for size in range(4) for members in combinations(range(5), size)]
    assert sets.members == expected
    assert len(sets) == num_sets(5, 3) == len(expected)
    assert [sets.number(reversed(members)) for members in expected] == list(range(len(expected)))


def test_tensors_describe_the_same_sets():
    sets = ParentSets(5, 3)
    for number, members in enumerate(sets.members):
        assert tuple(torch.nonzero(sets.membership[number])[:, 0].tolist()) == members
        assert tuple(node for node in sets.padded_members[number].tolist() if node < 5) == members
        assert sets.sizes[number] == len(members)
        assert sets.bitmasks[number] == sum(2**node for node in members)


def test_latest_positions_agree_with_a_naive_loop():
    sets = ParentSets(4, 2)
    positions = torch.tensor(list(permutations(range(4))))
    latest = sets.latest_positions(positions)
    for order, places in enumerate(positions.tolist()):
        for number, members in enumerate(sets.members):
            assert latest[order, number] == max((places[node] for node in members), default=-1)


def test_only_the_empty_set_where_no_parents_are_allowed():
    sets = ParentSets(3, 0)
    assert sets.members == [()]
    assert sets.latest_positions(torch.tensor([[0, 1, 2]])).tolist() == [[-1]]


def test_unknown_set_has_no_number():
    with pytest.raises(KeyError):
        ParentSets(4, 2).number((0, 1, 2))


@pytest.mark.parametrize("max_size", [-1, 3, 7])
def test_max_size_out_of_range_is_refused(max_size):
    with pytest.raises(InvalidInput, match=f"max_parents: expected 0 to 2 for 3 variables, got {max_size}"):
        ParentSets(3, max_size)
