"""What a fit says about itself: its data, its convergence, and how sure it is of the tree."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bayescascade.cascades.tree import Tree
from bayescascade.report.inference_data import Diagnostic, PosteriorRun
from bayescascade.table import Table

__all__ = ["FitSummary", "summarize"]


@dataclass(frozen=True, slots=True)
class FitSummary:
    """The facts that are printed with a model and saved in its file.

    Parameters
    ----------
    source : str
        Name of the file that the rows came from; empty if none.
    n_rows, n_distinct : int
        Rows read, and distinct ones.
    total_weight : float
        Sum of the rows' weights.
    notes : tuple of str
        What a user should know of the data, such as a constant column.
    method : str
        The search that was run.
    n_chains, n_draws : int
        Chains, and draws kept of each; 0 draws if nothing was sampled.
    interrupted : bool
        Whether Ctrl-C ended the search.
    acceptance : mapping of str to float
        Share of each move's proposals that were accepted while sampling.
    diagnostics : mapping of str to Diagnostic
        Of "log_posterior" and "n_leaves"; empty if nothing was sampled.
    leaf_counts : mapping of int to float
        Posterior share of each number of leaves among the draws, most probable first.
    first_split : mapping of str to float
        Share of draws whose root splits each column, most probable first.
    column_use : mapping of str to float
        Share of draws that split each column anywhere, most probable first.
    """

    source: str
    n_rows: int
    n_distinct: int
    total_weight: float
    notes: tuple[str, ...]
    method: str
    n_chains: int
    n_draws: int
    interrupted: bool
    acceptance: Mapping[str, float]
    diagnostics: Mapping[str, Diagnostic]
    leaf_counts: Mapping[int, float]
    first_split: Mapping[str, float]
    column_use: Mapping[str, float]

    @property
    def warnings(self) -> list[str]:
        """What the diagnostics object to, in words; empty if nothing."""
        found = []
        for name, diagnostic in self.diagnostics.items():
            if not diagnostic.is_fine:
                words = {"log_posterior": "log posterior", "n_leaves": "leaves"}.get(name, name)
                found.append(
                    f"{words}: R-hat {diagnostic.r_hat:.3f} (should be at most 1.01), "
                    f"ESS {diagnostic.ess:,.0f} (at least 400)"
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        record = asdict(self)
        record["notes"] = list(self.notes)
        record["acceptance"] = {k: _plain(v) for k, v in self.acceptance.items()}
        record["diagnostics"] = {
            name: {k: _plain(v) for k, v in asdict(d).items()}
            for name, d in self.diagnostics.items()
        }
        record["leaf_counts"] = {str(k): v for k, v in self.leaf_counts.items()}
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "FitSummary":
        """Rebuild from what `to_dict` returned; raises KeyError, TypeError or ValueError if odd."""
        diagnostics = {
            str(name): Diagnostic(
                **{k: float("nan") if v is None else float(v) for k, v in d.items()}
            )
            for name, d in record["diagnostics"].items()
        }
        return cls(
            source=str(record["source"]),
            n_rows=int(record["n_rows"]),
            n_distinct=int(record["n_distinct"]),
            total_weight=_finite(record["total_weight"]),
            notes=tuple(str(note) for note in record["notes"]),
            method=str(record["method"]),
            n_chains=int(record["n_chains"]),
            n_draws=int(record["n_draws"]),
            interrupted=bool(record["interrupted"]),
            acceptance={
                str(k): float("nan") if v is None else float(v)
                for k, v in record["acceptance"].items()
            },
            diagnostics=diagnostics,
            leaf_counts={int(k): _finite(v) for k, v in record["leaf_counts"].items()},
            first_split={str(k): _finite(v) for k, v in record["first_split"].items()},
            column_use={str(k): _finite(v) for k, v in record["column_use"].items()},
        )


def summarize(table: Table, run: PosteriorRun[Tree], search: str) -> FitSummary:
    """Return the summary of a run on a table."""
    draws = [tree for chain in run.draws for tree in chain]
    names = table.schema.names
    first = [names[tree.feature[0]] if tree.n_leaves > 1 else "none" for tree in draws]
    used = run.column_use().mean(axis=(0, 1)) if draws else np.zeros(len(names))
    return FitSummary(
        source=table.source,
        n_rows=table.n_rows,
        n_distinct=table.n_distinct,
        total_weight=float(table.total_weight),
        notes=table.notes,
        method=search,
        n_chains=len(run.final_states),
        n_draws=run.traces["log_density"].shape[1] if draws else 0,
        interrupted=run.interrupted,
        acceptance=run.acceptance,
        diagnostics=run.diagnostics() if draws else {},
        leaf_counts=_shares([tree.n_leaves for tree in draws]),
        first_split=_shares(first),
        column_use=dict(sorted(zip(names, used.tolist(), strict=True), key=lambda item: -item[1]))
        if draws
        else {},
    )


def _shares(values: list[Any]) -> dict[Any, float]:
    """Return the share of each value, largest first, ties by value."""
    counted = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    return {value: count / len(values) for value, count in counted}


def _plain(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _finite(value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"a summary's numbers must be finite, got {number}")
    return number
