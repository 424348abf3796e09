from __future__ import annotations

import struct
import zlib

import pytest
from wandb.proto.wandb_internal_pb2 import Record

from experiments.wandb_log import is_complete, records


def framed(*contents):
    """The file of wandb that holds these records, by the description of LevelDB's log format."""
    log = b":W&B\xe1\xbe\x00"
    for content in contents:
        first = True
        while True:
            left = 32768 - len(log) % 32768
            if left < 7:
                log += bytes(left)
                continue
            part, content = content[: left - 7], content[left - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, not content]
            log += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
            if not content:
                break
    return log


def named(number, size):
    record = Record(num=number)
    record.run.display_name = "x" * size
    return record.SerializeToString()


def ending(number):
    record = Record(num=number)
    record.exit.exit_code = 1
    return record.SerializeToString()


@pytest.mark.parametrize("size", [10, 32768 - 50, 100_000, *range(32730, 32760)])
def test_records_are_read_across_blocks(tmp_path, size):
    (tmp_path / "log").write_bytes(framed(named(1, size), named(2, 40), ending(3)))
    read = list(records(tmp_path / "log"))
    assert [record.num for record in read] == [1, 2, 3]
    assert len(read[0].run.display_name) == size


def test_a_file_is_complete_with_the_record_that_ends_the_run(tmp_path):
    log, whole = tmp_path / "log", framed(named(1, 40_000), ending(2))
    assert not is_complete(log)
    for end in (0, 3, 10, 32768, 35000, len(whole) - 1):
        log.write_bytes(whole[:end])
        assert not is_complete(log)
    log.write_bytes(whole)
    assert is_complete(log)


@pytest.mark.parametrize("damage", [0, 20])
def test_a_damaged_file_is_no_run(tmp_path, damage):
    whole = bytearray(framed(named(1, 100)))
    whole[damage] ^= 1
    (tmp_path / "log").write_bytes(whole)
    with pytest.raises(ValueError, match="damaged at byte 7" if damage else "not a file of wandb"):
        list(records(tmp_path / "log"))
