"""The result store: a Delta Lake table with one tidy row per job and metric.

Every append is one atomic commit and one new version that can be read again; writers in several processes
do not lose rows. No version is ever deleted, as published tables name the version they were built from.
"""

from experiments.store.result_store import DEFAULT_STORE, ResultStore, StoreWriteError, latest
from experiments.store.schema import SCHEMA, STATUSES

__all__ = ["DEFAULT_STORE", "SCHEMA", "STATUSES", "ResultStore", "StoreWriteError", "latest"]
