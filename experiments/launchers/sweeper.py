"""Hydra's sweeper, which composes every job before the first begins, without composing the same again and again."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins

Plugins.instance()  # it loads the modules of plugins anew, and would leave us with a class of before
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # noqa: E402

from experiments.combinations import check_num_models  # noqa: E402


class Sweeper(BasicSweeper):
    """Of jobs that choose the same configs and set the same keys one is composed: what differs are plain values.

    Each takes a tenth of a second or two, and a sweep may have a thousand jobs.
    """

    def sweep(self, arguments: list[str]) -> object:
        check_num_models(self.config)
        return super().sweep(arguments)

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        parsed: dict[str, str] = {}
        kinds: dict[tuple[str, ...], Sequence[str]] = {}
        for job in batch:
            for text in job:
                if text not in parsed:
                    parsed[text] = self._kind(parser, text)
            kinds.setdefault(tuple(parsed[text] for text in job), job)
        super().validate_batch_is_legal(list(kinds.values()))

    def _kind(self, parser: OverridesParser, text: str) -> str:
        """The override without its value, if any value will do: that of a key outside Hydra's own, typed settings."""
        override, loader = parser.parse_override(text), self.hydra_context.config_loader
        name = override.key_or_group
        chooses = loader.list_groups(name) or loader.get_group_options(name)
        return text if chooses or name.startswith("hydra") else f"{override.type} {override.get_key_element()}"
