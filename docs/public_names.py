"""The public names, as the package itself lists them: no page of the reference is written by hand.

A name that is added to ``bayescascade/__init__.pyi`` is in the reference with the next build.
"""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# What a part of the package is called; several may share a section. The order is that of the pages.
_TITLES = {
    "methods.density.auto": "Density trees",
    "methods.density.trees": "Density trees",
    "methods.density.histogram": "Density trees",
    "methods.density.cascade_mixtures": "Mixtures",
    "methods.density.mixtures": "Mixtures",
    "methods.density.comparing": "Comparisons",
    "methods.comparing_classifiers": "Comparisons",
    "methods.lists": "Rule lists",
    "methods.budget.gated": "Feature budgets",
    "methods.budget.auto": "Feature budgets",
    "methods.budget.forests": "Feature budgets",
    "methods.budget.pruning": "Feature budgets",
    "methods.budget.classifier_trees": "Feature budgets",
    "methods.budget.single_trees": "Feature budgets",
    "methods.budget.neighbors": "Feature budgets",
    "costs": "Feature budgets",
    "methods.compress": "Nearest neighbors",
    "methods.boxes": "Boxes",
    "methods.causal": "Causal directions",
    "methods.effects": "Effects of treatments",
    "methods.online": "Online labels",
    "methods.sensors": "Gated sensors",
    "methods.rados": "Sums of rows",
    "privacy": "Privacy",
    "data": "Data",
    "model": "Posteriors, searches and files",
    "base": "Errors",
}

BESIDE = {
    "What a fit has in it": (
        "bayescascade.methods.budget.gated.boosted.BoostedFit",
        "bayescascade.methods.budget.gated.growing.BoostedScores",
        "bayescascade.methods.budget.gated.choosing.ScoredGate",
        "bayescascade.methods.budget.gated.linear.LinearScores",
        "bayescascade.methods.budget.gated.objective.GateProblem",
        "bayescascade.methods.budget.gated.oracle.GateOracle",
        "bayescascade.methods.budget.gated.selecting.Fit",
        "bayescascade.methods.density.trees.exact.posterior.ExactPosterior",
        "bayescascade.methods.density.trees.exact.posterior.SummedPosterior",
        "bayescascade.methods.density.trees.exact.tilted.TiltedPosterior",
        "bayescascade.methods.density.trees.shallow_trees.ShallowTrees",
        "bayescascade.methods.causal.release.DirectionRelease",
        "bayescascade.methods.causal.protection.PrivacyPlan",
        "bayescascade.methods.budget.neighbors.rule.Rule",
        "bayescascade.methods.rados.protection.Promise",
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
        rooms = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]  # the innermost first
        titled = next((room for room in rooms if room in _TITLES), "")
        return _TITLES.get(titled) or parts[-2].replace("_", " ").capitalize()


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
