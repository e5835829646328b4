"""The game of a gate, round by round in plain Python, as a twin that imports nothing of ours."""

import math


def slow_rounds(decisions, labels, uniforms, cost, rates, *, eta=0.0, gamma=0.0, mix=False, known):
    """Return for each round (asked, answer, probability of asking), and the estimated losses."""
    n_experts = len(decisions[0])
    losses, variance_sum, last = [0.0] * n_experts, 1.0, math.inf
    rounds = []
    for t, (row, label, (first, second)) in enumerate(
        zip(decisions, labels, uniforms, strict=True), 1
    ):
        if rates != "horizon":
            variance = variance_sum / t if rates == "adaptive" else 1.0
            eta = 0.9615 * (cost * variance) ** (-1 / 3) * (math.log(n_experts) / t) ** (2 / 3)
            eta = min(eta, 2 * cost / variance)
            if rates == "anytime":
                eta = last = min(eta, last)
            gamma = min(math.sqrt(eta * variance / (2 * cost)), 1.0)
        raw = [math.exp(-eta * (loss - min(losses))) for loss in losses]
        q = [each / sum(raw) for each in raw]
        asking = sum(w for w, d in zip(q, row, strict=True) if d < 0)
        chance = (1 - gamma) * asking + gamma if mix else max(asking, gamma)
        if first < chance:
            lost = [cost if d < 0 else float(d != label) for d in row]
            mean = sum(w * x for w, x in zip(q, lost, strict=True))
            squares = sum(w * x * x for w, x in zip(q, lost, strict=True))
            variance_sum += max(squares - mean * mean, 0.0) / chance
            for i, d in enumerate(row):
                if d >= 0 or not known:
                    losses[i] += lost[i] / chance
            rounds.append((True, label, chance))
        else:
            aim = second * (1 - asking)
            for w, d in zip(q, row, strict=True):
                if d >= 0:
                    answer, aim = d, aim - w
                    if aim < 0:
                        break
            rounds.append((False, answer, chance))
        if known:
            losses = [x + cost * (d < 0) for x, d in zip(losses, row, strict=True)]
    return rounds, losses
