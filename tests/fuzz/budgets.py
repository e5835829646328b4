"""Budgets by every route: threads, copies, clones, pickles, other settings."""

import copy
import math
import pickle
from threading import Thread
from typing import Any

import numpy as np
from sklearn.base import clone

import bayescascade
from bayescascade import ParameterError, PrivacyError, PrivacyLedger, PrivateAdditiveNoiseModel
from bayescascade.privacy.accounting import Cost
from tests.fuzz.running import Found, Problem


def ledger_routes(problem: Problem) -> None:
    """Whatever is entered, by copies and threads, is within the budget as added up anew."""
    rng = problem.rng
    rule = str(rng.choice(["basic", "concentrated"]))
    epsilon, delta = float(10 ** rng.uniform(-2, 1)), float(10 ** rng.uniform(-8, -1))
    ledger = PrivacyLedger(epsilon, delta, rule)
    accepted: list[Cost] = []

    def spend(held: PrivacyLedger, costs: list[Cost]) -> None:
        for cost in costs:
            try:
                held.spend(cost, "a release")
            except PrivacyError:
                continue
            accepted.append(cost)

    threads = []
    n_threads = int(rng.integers(1, 5))
    for _ in range(n_threads):
        held = [ledger, copy.copy(ledger), copy.deepcopy(ledger), clone(_model(ledger)).ledger][
            int(rng.integers(4))
        ]
        costs = [_cost(rng, epsilon, delta) for _ in range(int(rng.integers(1, 25)))]
        threads.append(Thread(target=spend, args=(held, costs)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        pickle.dumps(ledger)
    except TypeError:
        pass
    else:
        raise Found("a ledger must not be pickled, and was")
    total = ledger.spent
    within = total.epsilon <= epsilon * (1 + 1e-9) and total.delta <= delta * (1 + 1e-9)
    problem.note(rule=rule, budget=epsilon, releases=len(accepted), threads=n_threads)
    if len(ledger.entries) != len(accepted) or not within:
        raise Found(f"{len(accepted)} releases were let pass, got {ledger!r}")
    needed = _needed(accepted, delta, rule)
    if needed > epsilon * (1 + 1e-6):
        raise Found(f"releases within epsilon {epsilon} must not cost {needed} by rule {rule}")
    if rule == "basic" and math.fsum(cost.delta for cost in accepted) > delta * (1 + 1e-9):
        raise Found(f"deltas must add up to {delta} at most, got {accepted}")


def _cost(rng: np.random.Generator, epsilon: float, delta: float) -> Cost:
    each = epsilon * float(10 ** rng.uniform(-2, 0.2))
    if rng.random() < 0.4:
        return Cost(each)
    rho = None if rng.random() < 0.5 else each * each / 2 * float(rng.random())
    return Cost(each, delta * float(10 ** rng.uniform(-3, 0)), rho)


def _needed(costs: list[Cost], delta: float, rule: str) -> float:
    """Return an epsilon that is needed, added up by other formulas than the ledger's."""
    plain = math.fsum(cost.epsilon for cost in costs)
    if rule == "basic" or not costs:
        return plain
    rhos = [cost.epsilon**2 / 2 if cost.rho is None else cost.rho for cost in costs]
    orders = 1 + np.geomspace(1e-6, 1e7, 4000)
    rho = math.fsum(rhos)
    surplus = math.log(2 / delta) + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
    together = float((rho * orders + surplus / (orders - 1)).min())
    is_pure = all(cost.delta == 0.0 for cost in costs)
    return max(0.0, min(plain, together) if is_pure else together) / (1 + 1e-4)


def _model(ledger: PrivacyLedger | None, **given: Any) -> PrivateAdditiveNoiseModel:
    return PrivateAdditiveNoiseModel(
        score="spearman", x_bounds=(-1, 1), y_bounds=(-1, 1), noise="simulated", ledger=ledger,
        **given,
    )  # fmt: skip


def model_routes(problem: Problem) -> None:
    """Fit a model once, or with a ledger as often as that allows, whatever is done between."""
    rng = problem.rng
    x, y = rng.uniform(-1, 1, (2, 30))
    with_ledger = bool(rng.integers(2))
    ledger = PrivacyLedger(2.0) if with_ledger else None
    models = [_model(ledger, epsilon=0.75)]
    spent, steps = 0.0, []
    for _ in range(int(rng.integers(3, 12))):
        model = models[int(rng.integers(len(models)))]
        step = str(
            rng.choice(["fit", "fit", "copy", "deepcopy", "clone", "pickle", "load", "epsilon",
                        "no ledger"])
        )  # fmt: skip
        steps.append(step)
        is_fitted = hasattr(model, "release_")
        if step == "fit":
            try:
                model.fit(x, y)
            except PrivacyError:
                continue
            spent += model.epsilon_
        elif step == "clone" and model.ledger is not None:  # else it has a budget of its own
            models.append(clone(model))
        elif step in ("copy", "deepcopy", "pickle") and (is_fitted or with_ledger):
            models.append(_copied(model, step))
        elif step == "load" and is_fitted:
            models.append(_saved(model))
        elif step == "epsilon":
            model.set_params(epsilon=float(rng.choice([0.1, 0.75, 1.9])))
        elif step == "no ledger" and is_fitted:
            model.set_params(ledger=None)
    most = 2.0 if with_ledger else 1.9
    problem.note(steps=len(steps), spent=spent, with_ledger=with_ledger)
    if spent > most * (1 + 1e-9) or (ledger is not None and ledger.spent.epsilon < spent - 1e-9):
        raise Found(f"fits must cost {most} at most, got {spent} by {steps}")
    if ledger is None and sum(hasattr(model, "release_") for model in models) > len(models):
        raise Found(f"a model without a ledger must fit once, got {steps}")


def _copied(model: Any, how: str) -> Any:
    if how == "pickle":
        return pickle.loads(pickle.dumps(model))
    return copy.copy(model) if how == "copy" else copy.deepcopy(model)


def _saved(model: Any) -> Any:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        model.save(f"{folder}/m.json")
        try:
            return bayescascade.load(f"{folder}/m.json")
        except ParameterError as error:
            raise Found(f"a saved model must load, got {error}") from None
