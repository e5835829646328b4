r"""Probabilities that a private direction is right, by epsilon: of scores, and of regularizations.

    python -m tests.benchmarks.causal_private [--data FOLDER] [--data-sets made real] [--rows 4000]

The analog of table 4.2 and figure 4.4 of Kusner (2016). Only halves and private histograms are
drawn, by seed: the probability of the order of two scores with noise is known, and so is that of
passing a test of stability; where nothing is published, a guess is right half of the time.
"published" is the probability of that test, "none" is without any noise. Made pairs have as many
rows as `--rows` says; of the Tuebingen pairs those of more than 1,000 rows count, weighted. Bounds
are the columns' ranges times `--looseness`: what a study would declare is not known, and to take
it from the rows, as here, is not private.
Epsilon is of both scores together; in the thesis it is of each.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from bayescascade import PrivateAdditiveNoiseModel
from bayescascade.base.threads import single_threaded
from bayescascade.methods.causal.pair import Pair as Columns, split_rows
from bayescascade.methods.causal.parameters import PRIVATE_SCORES, PROTECTED
from bayescascade.methods.causal.protection import ROUNDING, agreement, iqr_distance
from bayescascade.methods.causal.scores import score_of
from bayescascade.privacy.mechanisms import noise_source, stability_threshold
from tests.benchmarks.causal_data import cause_effect_pairs, made_pairs
from tests.benchmarks.figures import parser, say

EPSILONS = (0.1, 1.0, 2.0, 10.0)
DELTA = 1e-6
MORE_ROWS = 1_000


def main():
    """Print a table for each data set; lines of JSON, one a fit, go to a file if asked for."""
    made = parser(__doc__, ["made", "real"], ["made"])
    made.add_argument("--rows", type=int, default=4_000, help="of made pairs")
    made.add_argument("--seeds", nargs="+", type=int, default=[0])
    made.add_argument("--looseness", type=float, default=1.0, help="of the bounds")
    made.add_argument("--out", type=Path, help="file to add lines of JSON to")
    options = made.add_argument_group("of the model")
    options.add_argument("--protect", default="both", choices=PROTECTED)
    options.add_argument("--scores", nargs="+", default=PRIVATE_SCORES, choices=PRIVATE_SCORES)
    options.add_argument("--regularization", nargs="+", type=float, default=[None])
    options.add_argument("--bandwidth", type=float)
    options.add_argument("--test-share", type=float)
    arguments = made.parse_args()
    names = ("protect", "bandwidth", "test_share")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name)}
    for data in arguments.data_sets:
        pairs = cause_effect_pairs(arguments.data) if data == "real" else made_pairs(arguments.rows)
        lines = [
            {"data": data, "pair": pair.name, "weight": pair.weight, **given, **found}
            for pair in pairs
            if data == "made" or len(pair.x) > MORE_ROWS
            for seed in arguments.seeds
            for regularization in arguments.regularization
            for found in chances(
                pair, seed, arguments.looseness, arguments.scores,
                regularization=regularization, **given,
            )
        ]  # fmt: skip
        if arguments.out:
            with arguments.out.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        print_table(data, pd.DataFrame(lines))


def chances(pair, seed, looseness, scores, **options):
    """Yield, for each score, what is the chance of the right direction for each epsilon."""
    bounds = [_widened(numbers, looseness) for numbers in (pair.x, pair.y)]
    scaled = Columns(pair.x, pair.y, {}).within(*bounds)
    causes = (scaled.x, scaled.y) if pair.is_forward else (scaled.y, scaled.x)
    model = PrivateAdditiveNoiseModel(delta=DELTA, **options)
    settings, amount = model._protection(1.0), options["regularization"]
    is_drawn = settings.protects_training
    plain = PrivateAdditiveNoiseModel(protect="test", regularization=amount) if is_drawn else model
    without = _tested(plain, 1.0, causes, seed)
    tested = {e: _tested(model, e, causes, seed) if is_drawn else without for e in EPSILONS}
    for score in scores:
        model.set_params(score=score)
        gap = _gap(model, without)
        line = {"seed": seed, "score": score, "regularization": amount, "gap": gap}
        line |= {"none": float(np.sign(gap) + 1) / 2}
        alone = {}  # of the direction, without scores
        for epsilon, both in tested.items():
            seen = _gap(model, both) if is_drawn else gap
            passed, right = _chance(model, epsilon, both, len(pair.x), seen)
            line |= {f"{epsilon:g}": passed * right + (1 - passed) / 2}
            line |= {f"published, {epsilon:g}": passed}
            each = model._protection(epsilon).sensitivity(len(pair.x)) + ROUNDING
            alone[f"{epsilon:g}"] = float(expit(seen * epsilon / (2 * each)))
        yield line
        if score == "hsic":
            yield line | {"score": "hsic, direction alone"} | alone


def _tested(model, epsilon, causes, seed):
    """Return causes and residuals of the rows that test, of the right direction and the other."""
    n_rows, settings = len(causes[0]), model._protection(epsilon)
    rng = np.random.default_rng(seed)
    is_test = split_rows(n_rows, n_rows, rng) < settings.n_test(n_rows)
    learned, held = ([part[rows] for part in causes] for rows in (~is_test, is_test))
    with single_threaded():
        found = model._regressions(settings, *learned, noise_source("simulated", rng))
        rests = [
            effect - predict(cause).clip(-1.0, 1.0)
            for predict, cause, effect in zip(found, held, held[::-1], strict=True)
        ]
    return list(zip(held, rests, strict=True))


def _gap(model, tested):
    """Return by how much the score of the right direction is lower; 0 if one is infinite."""
    kernels = model._protection(1.0).kernels
    right, wrong = (score_of(model.score, *one, kernels) for one in tested)
    return float(wrong - right) if np.isfinite([right, wrong]).all() else 0.0


def _chance(model, epsilon, tested, n_rows, gap):
    """Return the probability that scores are published, and that their order then is right."""
    settings, passed = model._protection(epsilon), 1.0
    if not settings.can_pass(n_rows):
        return 0.0, 0.5
    if settings.is_tested:
        each = settings.sensitivity(n_rows)
        distance = iqr_distance([one for both in tested for one in both], each / 2)
        share = epsilon / 2  # discrete Laplace noise of scale 1 / share makes up for the rest
        short = stability_threshold(share, DELTA) - distance
        tail = np.exp(-share * max(short, 1 - short)) / (1 + np.exp(-share))
        passed = float(tail if short >= 1 else 1 - tail)
    scale = settings.scale(n_rows)
    kept = agreement(abs(gap), scale) if scale else 1.0
    return passed, kept if gap > 0 else 1 - kept


def _widened(numbers, times):
    low, high = float(numbers.min()), float(numbers.max())
    return (low + high) / 2 - times * (high - low) / 2, (low + high) / 2 + times * (high - low) / 2


def print_table(data, lines):
    """Print mean probabilities, weighted as the pairs are, without noise and by epsilon."""
    names = ["none", *(f"{epsilon:g}" for epsilon in EPSILONS)]
    title = f"{data}, {lines['pair'].nunique()} pairs, {lines['seed'].nunique()} seeds"
    say("", f"| {title} | lambda | " + " | ".join(names) + " | published |")
    say("|---|" + "--:|" * (len(names) + 2))
    groups = lines.groupby(["score", "regularization"], sort=False, dropna=False)
    for (score, regularization), found in groups:
        tests = [f"published, {epsilon:g}" for epsilon in EPSILONS]
        means = [np.average(found[name], weights=found["weight"]) for name in names + tests]
        cells = [f"{mean:.3f}" for mean in means]
        chosen = "chosen" if regularization is None or np.isnan(regularization) else regularization
        least = f"{min(means[len(names) :]):.2f} to {max(means[len(names) :]):.2f}"
        say(f"| {score} | {chosen} | " + " | ".join(cells[: len(names)]) + f" | {least} |")


if __name__ == "__main__":
    main()
