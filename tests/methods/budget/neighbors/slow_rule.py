"""Algorithm 1 of Nan (2018, chapter 2), row by row and slow; it knows nothing of ours."""

import numpy as np


def is_right(scores, label):
    """Whether a row's class has the largest score alone; of one score, by its sign."""
    if len(scores) == 1:
        return (2 * label - 1) * scores[0] > 0
    return all(scores[label] > score for k, score in enumerate(scores) if k != label)


def neighbors(distances, weights, n_neighbors, ties):
    """Return the rows that are near, by increasing distance until their weight is enough."""
    order = np.argsort(np.round(distances, 9), kind="stable")
    reached = np.cumsum(weights[order])
    last = int(np.argmax(reached >= n_neighbors - 1e-9)) if reached[-1] >= n_neighbors else -1
    if ties == "first":
        return sorted(order[: last + 1] if last >= 0 else order)
    return np.flatnonzero(distances <= distances[order[last]] * (1 + 1e-9)).tolist()


def route(rows, parts, labels, weights, offset, features, price, row, own, how):
    """Return a row's order, and by step its accuracy, gain, cost, margin scores and votes.

    rows, row: standardized columns, NaN where not measured; parts, own: what each feature adds;
    features: the columns of each; price(measured, feature): what it costs then; how: n_neighbors,
    tradeoff, rest, ties, threshold, least_gain, most, max_cost.
    """
    d = len(features)
    measured, known, result = [], [], []
    while True:
        near = list(range(len(rows)))
        if known:
            columns = [column for j in known for column in features[j]]
            distances = ((rows[:, columns] - row[columns]) ** 2).sum(axis=1)
            near = neighbors(distances, weights, how["n_neighbors"], how["ties"])
        share = weights[near] / weights[near].sum()
        means = np.zeros(parts.shape[1:])
        if how["rest"] == "neighbors":
            means = np.tensordot(share, parts[near], 1)

        def right(measured, near=near, share=share, means=means):
            others = means[[j for j in range(d) if j not in measured]].sum(axis=0)
            scores = offset + parts[near][:, measured].sum(axis=1) + others
            return sum(
                s for s, k, one in zip(share, near, scores, strict=True) if is_right(one, labels[k])
            )

        left = [j for j in range(d) if j not in measured]
        spent = sum(price(measured[:t], j) for t, j in enumerate(measured))
        fits = [j for j in left if spent + price(measured, j) <= how["max_cost"] + 1e-9]
        accuracy, each = right(known), {j: right([*known, j]) for j in fits}
        best = None
        for j in fits:
            value, cost = each[j] - how["tradeoff"] * price(measured, j), price(measured, j)
            if best is None or (round(value, 9), -cost) > (round(best[1], 9), -best[2]):
                best = j, value, cost
        scores = offset + own[known].sum(axis=0)
        scores = scores + means[[j for j in range(d) if j not in known]].sum(axis=0)
        votes = np.bincount(np.array(labels)[near], share)
        gain = -np.inf if best is None else best[1] - accuracy
        result.append((accuracy, gain, spent, scores, votes))
        if (
            best is None
            or len(measured) >= how["most"]
            or accuracy > how["threshold"] + 1e-9
            or gain <= how["least_gain"]
        ):
            return measured, result
        measured.append(best[0])
        if not np.isnan(row[features[best[0]][0]]):
            known.append(best[0])
