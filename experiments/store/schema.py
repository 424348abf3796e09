"""The columns of the result store, which rows fit them, and which tables can be read and written as a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("job_id", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),  # one of STATUSES
        pa.field("error", pa.string()),
        pa.field("data_name", pa.string(), nullable=False),
        pa.field("graph_model", pa.string()),
        pa.field("mechanism", pa.string()),
        pa.field("num_nodes", pa.int64()),
        pa.field("expected_degree", pa.float64()),
        pa.field("num_samples", pa.int64()),
        pa.field("data_seed", pa.int64()),
        pa.field("data_config", pa.string(), nullable=False),  # JSON
        pa.field("data_fingerprint", pa.string()),
        pa.field("method", pa.string(), nullable=False),
        pa.field("method_config", pa.string(), nullable=False),  # JSON
        pa.field("method_seed", pa.int64(), nullable=False),
        pa.field("metrics_config", pa.string(), nullable=False),  # JSON
        pa.field("metric", pa.string()),  # null where the job did not finish
        pa.field("value", pa.float64()),  # null where undefined
        pa.field("undefined_reason", pa.string()),
        pa.field("fit_seconds", pa.float64()),
        pa.field("eval_seconds", pa.float64()),
        pa.field("peak_memory_mb", pa.float64()),
        pa.field("git_commit", pa.string()),
        pa.field("git_dirty", pa.bool_()),
        pa.field("package_versions", pa.string(), nullable=False),  # JSON
        pa.field("device", pa.string()),
        pa.field("started_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("host", pa.string(), nullable=False),
    ]
)
_WHOLE = tuple(field.name for field in SCHEMA if field.type == pa.int64())
STATUSES = ("ok", "failed", "timeout", "invalid")


def missing_columns(found: pa.Schema) -> list[pa.Field]:
    """The columns that a table written by an older version of the schema lacks; its rows have nulls there.

    Raises:
        ValueError: the table is not a result store, or was written by a newer schema; the message goes on from "a table
            that".
    """
    unknown = [name for name in found.names if name not in SCHEMA.names]
    missing = [field for field in SCHEMA if field.name not in found.names]
    required = [field.name for field in missing if not field.nullable]
    if required:
        raise ValueError(f"lacks {_some(required)}")
    differing = [
        f"{field.name} ({_kind(found.field(field.name))} instead of {_kind(field)})"
        for field in SCHEMA
        if field.name in found.names and _kind(found.field(field.name)) != _kind(field)
    ]
    if differing:
        raise ValueError(f"differs in {_some(differing)}")
    if unknown:
        raise ValueError(f"also has {_some(unknown)}, probably of a newer version of this project, which can read it")
    return missing


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    if not rows:
        raise ValueError("expected at least one row to append, got none")
    for row in rows:
        unknown = sorted(set(row) - set(SCHEMA.names))
        if unknown:
            raise ValueError(f"expected columns of the result store, got {unknown}")
        if row.get("status") not in STATUSES:
            raise ValueError(f"expected a status of {STATUSES}, got {row.get('status')!r}")
        missing = [field.name for field in SCHEMA if not field.nullable and row.get(field.name) is None]
        if missing:
            raise ValueError(f"expected a value in every required column, got none for {missing}")
        # Arrow would cut the fraction off without a word.
        fractions = [name for name in _WHOLE if isinstance(row.get(name), float)]
        if fractions:
            raise ValueError(
                f"expected whole numbers in the columns {fractions}, got {[row[name] for name in fractions]}"
            )
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


def with_all_columns(rows: pa.Table) -> pa.Table:
    """The rows of an older schema as rows of `SCHEMA`, null where they lack a column."""
    for field in SCHEMA:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(SCHEMA.names).cast(SCHEMA)


def _kind(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ', required'}"


def _some(names: Iterable[str]) -> str:
    first = list(names)
    return ", ".join(first[:3]) + (" and others" if len(first) > 3 else "")
