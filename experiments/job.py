"""What a job is: a resolved config, the id of the part of it that determines the numbers, and its columns in a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from bci.dataset import Dataset
from bci.errors import InvalidInput

Settings = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One resolved config. `data_name` and `method_name` are the chosen files of the config groups."""

    data_name: str
    method_name: str
    data: Settings
    method: Settings
    metrics: Settings
    seed: int
    store_path: Path
    force: bool
    job_id: str
    tracking: Settings = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As `arco_gp on er, data.seed=3 seed=0`."""
        return f"{self.method_name} on {self.data_name}, {self.seeds}"

    @property
    def seeds(self) -> str:
        """Those of the data, if they have one, and of the method, as `data.seed=3 seed=0`."""
        of_data = [f"data.seed={self.data['seed']}"] if "seed" in self.data else []
        return " ".join([*of_data, f"seed={self.seed}"])

    @classmethod
    def from_config(cls, cfg: DictConfig, method_name: str, data_name: str) -> Job:
        """Resolve and check a composed config (keys data, method, metrics, seed, store, force, and tracking if any).

        Raises:
            InvalidInput: a value is missing, cannot be resolved or has the wrong type, or a data file cannot be read.
        """
        settings = resolve(cfg)
        for group in ("data", "method", "metrics", "store"):
            if not isinstance(settings.get(group), dict):
                got = settings.get(group)
                raise InvalidInput(
                    f"{group}: expected a group of settings, got {got!r}; leave it as in conf/config.yaml"
                )
        tracking = settings.get("tracking") or {}
        if not isinstance(tracking, dict):
            raise InvalidInput(f"tracking: expected a group of settings, got {tracking!r}; set tracking=none")
        seed, force, store = settings.get("seed"), settings.get("force"), settings["store"].get("path")
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
            raise InvalidInput(f"seed: expected a whole number from 0 to {2**63 - 1}, got {seed!r}; set seed=0")
        if not isinstance(force, bool):
            raise InvalidInput(f"force: expected true or false, got {force!r}; set force=true or leave it out")
        if not isinstance(store, str) or not store:
            raise InvalidInput(f"store.path: expected a folder, got {store!r}; set store.path=results/store")
        return cls(
            data_name=data_name,
            method_name=method_name,
            data=settings["data"],
            method=settings["method"],
            metrics=settings["metrics"],
            seed=seed,
            store_path=Path(store),
            force=force,
            job_id=job_id(cfg, method_name, data_name),
            tracking=tracking,
        )


def job_id(cfg: DictConfig, method_name: str, data_name: str) -> str:
    """Sixteen hex digits that identify what determines the numbers of a job.

    Hashed are the names of the data and the method and the resolved groups data, method, metrics and the seed;
    not where results go, how jobs are launched or tracked, nor the time limit of a method: where it is raised, only the
    jobs that reached it run again. A data file counts by its content, not by its path.

    Raises:
        InvalidInput: a value is missing or cannot be resolved, or a data file cannot be read.
    """
    settings = resolve(cfg)
    parts = {key: settings[key] for key in ("data", "method", "metrics", "seed")}
    parts["data"] = {key: _content(f"data.{key}", value) for key, value in parts["data"].items()}
    parts["method"] = {key: value for key, value in parts["method"].items() if key != "timeout_seconds"}
    return _digest(canonical_json({**parts, "data_name": data_name, "method_name": method_name}).encode())


def resolve(cfg: DictConfig) -> Settings:
    """A composed config as plain values.

    Raises:
        InvalidInput: a value is missing or cannot be resolved.
    """
    try:
        settings = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise InvalidInput(f"{error.full_key}: expected a value, got none; set {error.full_key}=...") from error
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"{error.full_key or 'config'}: expected a value that resolves, got: {reason}") from error
    assert isinstance(settings, dict)
    return {str(key): value for key, value in settings.items()}


def canonical_json(value: object) -> str:
    """JSON that is equal for equal settings: keys sorted, 2.0 written as 2."""
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))


def job_columns(job: Job) -> dict[str, Any]:
    """The columns of a result row that the config alone determines."""
    return {
        "job_id": job.job_id,
        "data_name": job.data_name,
        "graph_model": _of_type(str, job.data.get("graph_model")),
        "mechanism": _of_type(str, job.data.get("mechanism")),
        "expected_degree": _of_type(float, job.data.get("expected_degree")),
        "data_seed": _of_type(int, job.data.get("seed")),
        "data_config": canonical_json(job.data),
        "method": job.method_name,
        "method_config": canonical_json(job.method),
        "method_seed": job.seed,
        "metrics_config": canonical_json(job.metrics),
    }


def dataset_columns(dataset: Dataset) -> dict[str, Any]:
    """The columns of a result row that the data determine."""
    return {
        "num_nodes": dataset.num_nodes,
        "num_samples": dataset.num_samples,
        "data_fingerprint": dataset.fingerprint,
    }


def _content(key: str, value: object) -> object:
    """The value itself, or for a key that ends in `path` the digest of the file it names."""
    if not key.endswith("path") or value is None:
        return value
    try:
        return _digest(Path(value).read_bytes())  # type: ignore[arg-type]  # a TypeError is caught
    except (OSError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise InvalidInput(
            f"{key}: expected a file that can be read, got '{value}' ({reason}); check the path"
        ) from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _canonical(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _of_type(kind: type, value: object) -> object:
    """`value` as `kind`, or None for a value of another type: the row of an invalid job keeps what fits its columns."""
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        return None
    return None if kind is int and not -(2**63) <= value < 2**63 else kind(value)
