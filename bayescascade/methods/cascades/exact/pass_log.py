"""What passes over the boxes found, kept in a checkpoint as they are made."""

import json
from functools import partial
from typing import Any

import samplers
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.cascades.tree import Tree

_real = partial(check_real, "a pass's numbers")


class PassLog:
    """Results of tilted passes, kept in a section of a checkpoint, or nowhere if that is None.

    `origin` is the exponent of the first pass, to which other logs are relative; None before it.
    `maxima` has, by tilt, the log worth of the best tree, nats, and that tree; `sums` the log of
    the sum over all trees and the numbers of leaves of trees drawn. A section that is damaged, or
    of another fingerprint, raises CheckpointError.
    """

    def __init__(
        self, section: samplers.CheckpointSection | None = None, fingerprint: str = ""
    ) -> None:
        self.maxima: dict[float, tuple[float, Tree]] = {}
        self.sums: dict[float, tuple[float, list[int]]] = {}
        self.origin: int | None = None
        self._section, self._fingerprint = section, fingerprint
        stored: Any = None if section is None else section.stored()
        if section is None or stored is None:
            return
        if isinstance(stored, dict) and "origin" not in stored:
            raise section.checkpoint.error("is of an earlier version: delete it to start anew")
        try:
            is_ours = stored["fingerprint"] == fingerprint
            self.maxima = {
                _real(t): (_real(worth), Tree.from_flat(flat))
                for t, worth, flat in stored["maxima"]
            }
            self.sums = {
                _real(t): (_real(log_sum), [check_integer("leaves", k, 1) for k in sizes])
                for t, log_sum, sizes in stored["sums"]
            }
            if self.n_passes > 0:
                self.origin = check_integer("origin", stored["origin"])
        except (KeyError, TypeError, ValueError) as error:
            raise section.checkpoint.error(f"is damaged: {error!r}") from error
        if not is_ours:
            raise section.checkpoint.error("is of another model or other data")

    @property
    def n_passes(self) -> int:
        """Number of passes kept."""
        return len(self.maxima) + len(self.sums)

    def save(self) -> None:
        """Write what there is."""
        if self._section is not None:
            content = {
                "fingerprint": self._fingerprint,
                "origin": self.origin,
                "maxima": [[t, worth, tree.to_flat()] for t, (worth, tree) in self.maxima.items()],
                "sums": [[t, log_sum, sizes] for t, (log_sum, sizes) in self.sums.items()],
            }
            self._section.write(json.dumps(content), is_finished=False)

    def finish(self) -> None:
        """Say that no pass is to follow."""
        if self._section is not None:
            self._section.checkpoint.finish()
