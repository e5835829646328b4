"""Slow twins of the sums of gated sensors, row by row; they import nothing of ours."""

import math


def sums(rows, owner, w, b, V, a, cloud, activation, alive=None):
    """Return who sends and the outputs of each row: (7.1) and what is counted in (7.3)."""
    all_sends, outputs = [], []
    for i, row in enumerate(rows):
        total, sends = list(cloud), []
        for k in range(len(b)):
            z = b[k] + sum(w[j] * row[j] for j in range(len(row)) if owner[j] == k)
            lives = alive is None or bool(alive[i][k])
            sends.append(z > 0 and lives)
            gate = {"step": float(z > 0), "sigmoid": 1 / (1 + math.exp(-z)), "relu": max(z, 0.0)}[
                activation
            ] * lives
            for m in range(len(cloud)):
                sent = a[k][m] + sum(V[j][m] * row[j] for j in range(len(row)) if owner[j] == k)
                total[m] += gate * sent
        all_sends.append(sends)
        outputs.append(total)
    return all_sends, outputs


def cross_entropy(outputs, labels):
    """Return minus the log of the softmax at each label."""
    return [
        math.log(sum(math.exp(s - row[label]) for s in row))
        for row, label in zip(outputs, labels, strict=True)
    ]


def divergence(q, z):
    """Return KL(q, sigmoid(z))."""
    p = 1 / (1 + math.exp(-z))
    parts = ((q, p), (1 - q, 1 - p))
    return sum(x * math.log(x / y) for x, y in parts if x > 0)
