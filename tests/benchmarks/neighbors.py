"""Errors of few prototypes in place of many rows: learned, drawn, condensed, or cluster centers.

    python -m tests.benchmarks.neighbors [--data FOLDER] [--data-sets letter ...] [--out FILE.jsonl]
    python -m tests.benchmarks.neighbors --table FILE.jsonl

A fifth of the rows, drawn by class, is held out. adult has its official split, of whose training
rows 10,000 are drawn; its levels are columns of 0 and 1. mnist_10k is projected to 50 principal
components of the training rows, isolet to 100. Columns of letter, covertype and adult, whose units
differ, are divided by their standard deviations, those of other sets by one number;
`NeighborCompressionClassifier` gets them as they are, and decides by itself.

"SNC, nearest" has that rule; by default all prototypes vote. "condensed" are rows by Hart's rule
(1968): each is one that those kept before it take wrong, until there are enough.
"NCA, clusters" are cluster centers in the space that scikit-learn's neighborhood components
analysis learns from at most 3,000 rows; its time is counted for every number of prototypes.
Seconds are of the processor. ``--most-rows 4000`` draws that many rows of larger sets,
``--noise 0.16`` gives that part of them labels drawn at random. The sets are public: the UCI
Machine Learning Repository's, and the test images of MNIST; digits is in scikit-learn.
"""

import json
from functools import cache
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from bayescascade import NeighborCompressionClassifier
from bayescascade.methods.compress.starting import shares_of_classes
from tests.benchmarks.figures import parser, say, timed

RATIOS = (0.01, 0.02, 0.04, 0.08, 0.16)
MOST_LINEAR, MOST_ANALYZED, MOST_OF_ADULT = 60, 3_000, 10_000
N_OFFICIAL = 32_561  # rows of adult to learn from
N_JOBS = 2


class DataSet(NamedTuple):
    """A file, the principal components to keep if not all, and whether columns' units differ."""

    file: str
    n_components: int | None = None
    differ: bool = False


DATA_SETS = {
    "digits": DataSet(""),
    "letter": DataSet("letter.csv", differ=True),
    "pendigits": DataSet("pendigits.csv"),
    "isolet": DataSet("isolet.csv.gz", n_components=100),
    "mnist_10k": DataSet("mnist_10k.csv.gz", n_components=50),
    "adult": DataSet("adult.csv.gz", differ=True),
    "covertype": DataSet("covertype.csv.gz", differ=True),
}


class Split(NamedTuple):
    """Rows to learn from and held-out rows, (n, n_columns) float64, and codes of their labels."""

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    held_out: NDArray[np.float64]
    truth: NDArray[np.int64]


def main():
    """Print a line of JSON for each fit as soon as it is known, or a table of such lines."""
    made = parser(__doc__, DATA_SETS, DATA_SETS)
    made.add_argument("--ratios", nargs="+", type=float, default=RATIOS)
    made.add_argument("--seeds", nargs="+", type=int, default=[0])
    made.add_argument("--noise", nargs="+", type=float, default=[0.0])
    made.add_argument("--most-rows", type=int, help="to learn from, of larger sets")
    made.add_argument("--only", nargs="+", help="contenders to compare, by name")
    made.add_argument("--out", type=Path, help="file to add lines of JSON to")
    made.add_argument("--table", type=Path, help="file of such lines to print as a table")
    arguments = made.parse_args()
    if arguments.table:
        print_table(arguments.table)
        return
    cases = [
        (ratio, name, seed, noise)
        for seed in arguments.seeds
        for ratio in arguments.ratios
        for name in arguments.data_sets
        for noise in arguments.noise
    ]

    @cache
    def known(name, seed, noise):
        split = fewer(read(name, arguments.data, seed), arguments.most_rows, seed)
        return contenders(name, mislabeled(split, noise, seed), seed)

    for ratio, name, seed, noise in cases:
        for title, contender in known(name, seed, noise).items():
            if arguments.only and title not in arguments.only:
                continue
            if title.startswith("all rows") and ratio != arguments.ratios[0]:
                continue
            found, seconds = contender(ratio)
            truth = read(name, arguments.data, seed).truth
            line = {"data": name, "ratio": ratio, "contender": title, "seed": seed}
            line |= {"noise": noise, "error": float(np.mean(found != truth))}
            line["seconds"] = round(seconds, 3)
            say(json.dumps(line))
            if arguments.out:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


@cache
def read(name, folder, seed):
    """Return a data set, its columns as they are."""
    file, n_components, _ = DATA_SETS[name]
    frame = pd.read_csv(folder / file) if file else load_digits(as_frame=True).frame
    labels = np.unique(frame.pop("target"), return_inverse=True)[1]
    levels = frame.select_dtypes(exclude="number").columns
    columns = pd.get_dummies(frame.fillna(dict.fromkeys(levels, "missing")), dtype=float)
    rows = columns.to_numpy(np.float64)
    chosen, held_out = np.split(np.arange(len(rows)), [N_OFFICIAL])
    if name == "adult":
        chosen, _ = train_test_split(
            chosen, train_size=MOST_OF_ADULT, stratify=labels[chosen], random_state=seed
        )
    else:
        chosen, held_out = train_test_split(
            np.arange(len(rows)), test_size=0.2, stratify=labels, random_state=seed
        )
    seen, others = rows[chosen], rows[held_out]
    if n_components is not None:
        components = PCA(n_components, random_state=seed).fit(seen)
        seen, others = components.transform(seen), components.transform(others)
    return Split(seen, labels[chosen], others, labels[held_out])


def fewer(split, most, seed):
    """Return a split with at most as many rows to learn from, drawn by class."""
    if most is None or len(split.rows) <= most:
        return split
    rows, _, labels, _ = train_test_split(
        split.rows, split.labels, train_size=most, stratify=split.labels, random_state=seed
    )
    return split._replace(rows=rows, labels=labels)


def scaled(name, split):
    """Return rows divided by the columns' standard deviations where units differ, or by one."""
    spread = split.rows.std(axis=0)
    common = np.sqrt(np.mean(spread**2))
    units = np.where(spread > 0.0, spread, 1.0) if DATA_SETS[name].differ else common
    return split._replace(rows=split.rows / units, held_out=split.held_out / units)


def mislabeled(split, noise, seed):
    """Return a split of whose rows to learn from a part has labels drawn at random."""
    rng = np.random.default_rng(seed)
    labels = split.labels.copy()
    chosen = rng.choice(len(labels), round(noise * len(labels)), replace=False)
    labels[chosen] = rng.integers(labels.max() + 1, size=chosen.size)
    return split._replace(labels=labels)


def contenders(name, split, seed):
    """Return all that can be compared on a split, by name."""
    even = scaled(name, split)

    @cache
    def analyzed():
        rows, labels = even.rows, even.labels
        if len(rows) > MOST_ANALYZED:
            rows, _, labels, _ = train_test_split(
                rows, labels, train_size=MOST_ANALYZED, stratify=labels, random_state=seed
            )
        model = NeighborhoodComponentsAnalysis(max_iter=50, random_state=seed)
        _, seconds = timed(lambda: model.fit(rows, labels), clock=process_time)
        rows, held_out = model.transform(even.rows), model.transform(even.held_out)
        return even._replace(rows=rows, held_out=held_out), seconds

    def learned(**options):
        def learn(ratio):
            model = NeighborCompressionClassifier(
                compression=ratio, dtype="float32", n_jobs=N_JOBS, random_state=seed, **options
            )
            _, seconds = timed(lambda: model.fit(split.rows, split.labels), clock=process_time)
            return model.predict(split.held_out), seconds

        return learn

    def kept(keep, among):
        def learn(ratio):
            given, before = among()
            (points, labels), seconds = timed(
                lambda: _by_class(given, keep, ratio, seed), clock=process_time
            )
            return _nearest(points, labels, given.held_out), before + seconds

        return learn

    def condensed(ratio):
        chosen, seconds = timed(
            lambda: _condensed(even, round(ratio * len(even.rows)), seed), clock=process_time
        )
        return _nearest(even.rows[chosen], even.labels[chosen], even.held_out), seconds

    def whole(n_neighbors):
        return lambda _: (_nearest(even.rows, even.labels, even.held_out, n_neighbors), 0.0)

    found = {
        "SNC": learned(),
        "SNC, nearest": learned(rule="nearest"),
        "SNC, linear": learned(metric="linear"),
        "drawn rows": kept(_drawn, lambda: (even, 0.0)),
        "clusters": kept(_centers, lambda: (even, 0.0)),
        "condensed": condensed,
        "NCA, clusters": kept(_centers, analyzed),
        "all rows, 1-NN": whole(1),
        "all rows, 3-NN": whole(3),
    }
    if split.rows.shape[1] > MOST_LINEAR:
        del found["SNC, linear"]
    return found


def _by_class(given, keep, ratio, seed):
    """Return points in place of each class's rows, and their labels."""
    sizes = np.bincount(given.labels)
    counts = shares_of_classes(max(len(sizes), round(ratio * len(given.rows))), sizes)
    points = [
        keep(given.rows[given.labels == c], count, seed) for c, count in enumerate(counts.tolist())
    ]
    return np.concatenate(points), np.repeat(np.arange(len(counts)), counts)


def _drawn(rows, count, seed):
    return np.random.default_rng(seed).choice(rows, count, replace=False)


def _centers(rows, count, seed):
    clusters = KMeans(count, n_init=1, random_state=seed).fit(rows)
    return np.asarray(clusters.cluster_centers_, np.float64)


def _condensed(given, most, seed):
    """Return at most as many rows by which the others are taken right; of each class the first."""
    rows, labels = given.rows, given.labels
    order = np.random.default_rng(seed).permutation(len(rows))
    distances, nearest = np.full(len(rows), np.inf), np.full(len(rows), -1)
    kept = []

    def keep(place):
        kept.append(place)
        apart = ((rows - rows[place]) ** 2).sum(axis=1)
        is_nearer = apart < distances
        distances[is_nearer], nearest[is_nearer] = apart[is_nearer], labels[place]

    for first in np.unique(labels[order], return_index=True)[1]:
        keep(order[first])
    while (wrong := order[nearest[order] != labels[order]]).size and len(kept) < most:
        before = len(kept)
        for place in wrong:
            if len(kept) < most and nearest[place] != labels[place]:
                keep(place)
        if len(kept) == before:  # equal rows of several classes
            break
    return np.array(kept)


def _nearest(points, labels, rows, n_neighbors=1):
    if n_neighbors == 1:
        return labels[pairwise_distances_argmin(rows, points)]
    return KNeighborsClassifier(n_neighbors).fit(points, labels).predict(rows)


def print_table(results):
    """Print mean errors, with standard errors where there are more seeds, and mean seconds."""
    lines = pd.read_json(results, lines=True)
    for (name, noise), of_set in lines.groupby(["data", "noise"], sort=False):
        ratios = sorted(of_set["ratio"].unique())
        say("", f"| {name}, noise {noise:g} | " + " | ".join(f"{r:.0%}" for r in ratios) + " |")
        say("|---|" + "--:|" * len(ratios))
        for title, of_title in of_set.groupby("contender", sort=False):
            by_ratio = dict(iter(of_title.groupby("ratio")))
            cells = [" ".join(_cell(by_ratio[r])) if r in by_ratio else "" for r in ratios]
            say(f"| {title} | " + " | ".join(cells) + " |")


def _cell(fits):
    """Yield the mean error, how it varies, and the seconds."""
    last = fits.drop_duplicates("seed", keep="last")
    yield f"{last['error'].mean():.4f}"
    if len(last) > 1:
        yield f"+- {last['error'].sem():.4f} ({len(last)})"
    yield f"{last['seconds'].mean():.0f} s"


if __name__ == "__main__":
    main()
