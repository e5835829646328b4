"""The public names, as the package itself lists them: no page of the reference is written by hand.

A name that is added to ``bayescascade/__init__.pyi`` is in the reference with the next build.
"""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# What a part of the package is called; several may share a section. The order is that of the pages.
_TITLES = {
    "methods.cascades": "Density trees",
    "methods.histogram": "Density trees",
    "methods.cascade_mixtures": "Mixtures",
    "methods.mixtures": "Mixtures",
    "methods.comparing": "Comparisons",
    "methods.comparing_classifiers": "Comparisons",
    "methods.rules": "Rule lists",
    "methods.adaptive": "Feature budgets",
    "methods.auto_budget": "Feature budgets",
    "methods.forests": "Feature budgets",
    "methods.prunings": "Feature budgets",
    "methods.classifier_trees": "Feature budgets",
    "methods.cost_trees": "Feature budgets",
    "methods.margin_neighbors": "Feature budgets",
    "costs": "Feature budgets",
    "methods.neighbors": "Nearest neighbors",
    "methods.boxes": "Boxes",
    "methods.causal": "Causal directions",
    "methods.effects": "Effects of treatments",
    "methods.online": "Online labels",
    "methods.sensors": "Gated sensors",
    "methods.rado": "Sums of rows",
    "privacy": "Privacy",
    "data": "Data",
    "model": "Posteriors, searches and files",
    "base": "Errors",
}

BESIDE = {
    "What a fit has in it": (
        "bayescascade.methods.adaptive.boosted.BoostedFit",
        "bayescascade.methods.adaptive.growing.BoostedScores",
        "bayescascade.methods.adaptive.choosing.ScoredGate",
        "bayescascade.methods.adaptive.linear.LinearScores",
        "bayescascade.methods.adaptive.objective.GateProblem",
        "bayescascade.methods.adaptive.oracle.GateOracle",
        "bayescascade.methods.adaptive.selecting.Fit",
        "bayescascade.methods.cascades.exact.posterior.ExactPosterior",
        "bayescascade.methods.cascades.exact.posterior.SummedPosterior",
        "bayescascade.methods.cascades.exact.tilted.TiltedPosterior",
        "bayescascade.methods.cascades.shallow_trees.ShallowTrees",
        "bayescascade.methods.causal.release.DirectionRelease",
        "bayescascade.methods.causal.protection.PrivacyPlan",
        "bayescascade.methods.margin_neighbors.rule.Rule",
        "bayescascade.methods.rado.protection.Promise",
        "bayescascade.methods.sensors.candidates.SensorCandidate",
    )
}
"""Classes that nobody imports, but that attributes of a fitted model are of, by section."""


class PublicName(NamedTuple):
    """A name that users import from `bayescascade`, and the module that it comes from."""

    name: str
    module: str

    @property
    def section(self) -> str:
        """Return the title of the section that it is listed in."""
        parts = self.module.split(".")
        room = ".".join(parts[:2]) if parts[0] == "methods" else parts[0]
        return _TITLES.get(room, room.rpartition(".")[2].replace("_", " ").capitalize())


def public_names() -> list[PublicName]:
    """Return every public name of `bayescascade`, in the order of its list."""
    spec = find_spec("bayescascade")
    assert spec is not None
    assert spec.origin is not None
    stub = Path(spec.origin).with_suffix(".pyi").read_text(encoding="utf-8")
    return [
        PublicName(alias.asname or alias.name, statement.module or "")
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


def sections() -> dict[str, list[str]]:
    """Return the public names of each section, the sections in the order of the pages."""
    names = public_names()
    titles = dict.fromkeys([*_TITLES.values(), *(each.section for each in names)])
    return {
        title: [each.name for each in names if each.section == title]
        for title in titles
        if any(each.section == title for each in names)
    }
