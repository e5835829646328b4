"""Labels of rows: checks, classes, and labeled training rows."""

from collections.abc import Collection, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.store import As
from bayescascade.base.typed_words import typed_setting
from bayescascade.base.validation import check_weights
from bayescascade.data.arrow_frames import as_column
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.declarations import ColumnKinds, Declarations, by_name, declared
from bayescascade.data.given import GivenRows
from bayescascade.data.label_notes import label_notes
from bayescascade.data.levels import Cells, check_numbers, holds_numbers, level_text, to_numbers
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sources import with_readings
from bayescascade.data.table import Table

_KINDS = "biufUO"  # NumPy's letters for allowed labels: truth values, numbers and text
_FEW = 20  # rows


def check_labels(y: Any, name: str, owner: str) -> NDArray[Any]:
    """Return labels as a (n_rows,) array of text, whole numbers or truth values, of one type.

    Messages call the labels `name` and the estimator that needs them `owner`.
    """
    if y is None:
        raise ParameterError(f"{owner} requires y to be passed, but the target y is None")
    # scikit-learn would turn nullable integers and truth values into floats
    y = as_column(y)
    y = y.to_numpy() if isinstance(y, pd.Series) else y
    if isinstance(y, np.ndarray) and y.dtype.kind == "T":  # text of any length
        y = y.astype(object)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    is_missing = pd.isna(labels)
    if labels.dtype.kind == "f":
        _check_classes(name, labels[np.isfinite(labels)])
    if is_missing.any():
        row = 1 + int(np.argmax(is_missing))
        raise DataError(
            f"{name} must not have missing labels, got a missing cell (NaN) in row {row}: fill "
            f"them, or leave such rows out ({typed_setting('missing_labels', 'drop', 'ReadAs')})"
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        row = 1 + int(np.argmax(np.isinf(labels)))
        raise DataError(f"{name} must hold labels, got {labels[row - 1]} in row {row}")
    if labels.dtype == object:
        labels = pd.Series(labels).infer_objects().to_numpy()
    if labels.dtype == object and len({type(label) for label in labels}) > 1:
        kinds = sorted({type(label).__name__ for label in labels})
        raise DataError(f"{name} must hold labels of one type, got {', '.join(kinds)}")
    if labels.dtype == np.longdouble:  # which our files cannot store
        labels = labels.astype(np.float64)
    unknown = "" if labels.dtype.kind in _KINDS else str(labels.dtype)
    if not unknown:
        try:  # by the first rows, which are as all are: of many classes it would warn
            check_classification_targets(labels[:_FEW])
        except ValueError:
            unknown = type_of_target(labels[:_FEW])
    if unknown:
        raise DataError(
            f"{name} must hold text, whole numbers or truth values: Unknown label type: {unknown}"
        )
    return labels


def find_classes(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes of checked labels, two or more, and each label's position."""
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.dtype.kind == "U":
        classes = np.array(classes.tolist())  # as wide as the longest text
    if len(classes) < 2:
        only = level_text(classes.tolist()[0])
        raise DataError(f'{name} must have at least two classes, got one class, "{only}"')
    return classes, codes


def label_codes(labels: NDArray[Any], classes: NDArray[Any], name: str) -> Integers:
    """Return the position of each checked label among the classes of `y`, (n_rows,) int64."""
    position = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([position.get(label, -1) for label in labels.tolist()], np.int64)
    if codes.size and codes.min() < 0:
        row = int(np.argmin(codes))
        raise DataError(
            f"{name} must have the classes of y, "
            f'got "{level_text(labels.tolist()[row])}" in row {row + 1}'
        )
    return codes


def class_number(classes: NDArray[Any], label: object, name: str = "label") -> int:
    """Return the position of a label among the classes; ParameterError if it is not a class."""
    listed: list[object] = classes.tolist()
    if label not in listed:
        raise ParameterError(
            f"{name} must be one of {', '.join(repr(one) for one in listed)}, got {label!r}"
        )
    return listed.index(label)


def classes_record(classes: NDArray[Any]) -> dict[str, Any]:
    """Return classes as plain JSON types."""
    return {"values": classes.tolist(), "dtype": classes.dtype.str}


def read_classes(record: Any) -> NDArray[Any]:
    """Return the classes of a record that `classes_record` made."""
    values, dtype = record["values"], np.dtype(str(record["dtype"]))
    if dtype.kind not in _KINDS or not isinstance(values, list):
        raise ModelFileError("a saved classifier's classes must be text, numbers or truth values")
    if len({type(value) for value in values}) != 1 or len(set(values)) != len(values) >= 2:
        raise ModelFileError(
            f"a saved classifier's classes must be different and of one type, got {values}"
        )
    longest = max(len(str(value)) for value in values)
    if dtype.kind == "U" and dtype.itemsize > longest * np.dtype("U1").itemsize:
        raise ModelFileError(
            f"a saved classifier's classes must be as wide as the longest, {longest}, got {dtype}"
        )
    classes = np.array(values, dtype)
    if classes.tolist() != values:
        raise ModelFileError(f"a saved classifier's classes must be of type {dtype}")
    return classes


CLASSES = As(classes_record, read_classes)
"""How classes are saved."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Labeled rows; made by `read`."""

    # (n_rows, n_matrix_columns), C-contiguous; the encoder's policy sets its type
    # and its missing cells
    rows: Matrix
    classes: NDArray[Any]  # (n_classes,), sorted, two or more
    labels: Integers  # (n_rows,), positions among `classes`
    weights: Floats  # (n_rows,) >= 0, some positive; 1 each if none were given
    validation_rows: Matrix  # (n_validation_rows, n_matrix_columns); `rows` if there are no others
    validation_labels: Integers | None  # (n_validation_rows,); None if not given
    notes: tuple[str, ...] = ()  # on columns that say what the label or another column says

    @classmethod
    def read(
        cls,
        encoder: MatrixEncoder,
        given: GivenRows,
        validation: GivenRows | None = None,
        *,
        owner: str,
    ) -> "TrainingRows":
        """Read rows and labels, and validation rows; messages name the `owner`.

        Levels that only validation rows have become the mean of the training rows, if the policy is
        "mean".
        """
        checked = check_labels(given.labels, "y", owner)
        rows = encoder.transform(given, owner)
        _check_length("y", checked, "X", rows)
        classes, labels = find_classes(checked, "y")
        weights = np.ones(len(rows))
        if given.weights is not None:
            weights = check_weights("sample_weight", given.weights, len(rows))
        validation_rows, validation_labels = rows, None
        if validation is not None:
            is_mean = encoder.policy.unknown == "mean"
            means = weights @ rows / weights.sum() if is_mean else None
            validation_rows = encoder.transform(validation, owner, means)
            if validation.labels is not None:
                checked = check_labels(validation.labels, "y_val", owner)
                validation_labels = label_codes(checked, classes, "y_val")
                _check_length("y_val", validation_labels, "X_val", validation_rows)
        labels = labels.astype(np.int64)
        notes = label_notes(given.frame(), labels, weights)
        return cls(rows, classes, labels, weights, validation_rows, validation_labels, notes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def commonest(self) -> int:
        """Position of the class of most weight, the first of equals."""
        return int(np.bincount(self.labels, self.weights).argmax())

    def part(self, chosen: Flags) -> "TrainingRows":
        """Return the rows in a mask (n_rows,) with their classes, without validation rows."""
        classes, labels = np.unique(self.labels[chosen], return_inverse=True)
        rows = self.rows[chosen]
        return TrainingRows(
            rows, self.classes[classes], labels.astype(np.int64), self.weights[chosen], rows, None
        )

    def needed_validation_labels(self, what_for: str) -> Integers:
        """Return the labels of the validation rows, which `what_for` needs."""
        if self.validation_labels is None:
            raise ParameterError(f"X_val and y_val must be given for {what_for}, got None")
        return self.validation_labels


@dataclass(frozen=True, slots=True)
class LabeledRows:
    """A table with a column of labels.

    `of` decides what `Table` requires to be declared: numbers with many values are cut at
    quantiles, and numbers with few are ordinal levels. Everything else is as in `Table`. Labels
    become a last column, whose levels are the positions of the classes.
    """

    table: Table
    target: str  # the table's column of labels
    classes: NDArray[Any]  # (n_classes,), the label of each code of that column
    notes: tuple[str, ...] = ()  # as those of `TrainingRows`

    @classmethod
    def of_table(cls, table: Table, target: object) -> "LabeledRows":
        """Return a table that has labels among its columns; `target` names that column."""
        names = table.schema.names
        if not isinstance(target, str) or target not in names:
            raise ParameterError(
                f"y must be the name of the label column with a Table, got {target!r}; "
                f"columns: {', '.join(names)}"
            )
        column = table.schema.columns[names.index(target)]
        return cls(table, target, np.array(column.levels))

    @classmethod
    def of(
        cls,
        given: GivenRows,
        *,
        n_bins: int,
        kinds: ColumnKinds,
        owner: str,
        labels_name: str = "y",
        source: str = "",
    ) -> "LabeledRows":
        """Return rows and their labels as a table.

        Rows of weight zero are counted, but nothing is learned from them. Messages call the labels
        `labels_name` and the estimator `owner`; `source` is the name of the rows' file.
        """
        Declarations(**declared(kinds))  # checks their types
        frame, sample_weight = given.frame(), given.weights
        labels = check_labels(given.labels, labels_name, owner)
        check_consistent_length(frame, labels)
        weights = None
        if sample_weight is not None:
            weights = check_weights("sample_weight", sample_weight, len(frame))
            # A row that does not count is replaced by one that does, so row numbers stay right.
            stand_in = np.where(weights > 0, np.arange(len(frame)), int(np.argmax(weights > 0)))
            frame, labels = frame.take(stand_in), labels[stand_in]
        classes, codes = find_classes(labels, labels_name)
        names = list(frame.columns)
        continuous = by_name("continuous", kinds.continuous, names)
        ordinal = by_name("ordinal", kinds.ordinal, names)
        nominal = by_name("nominal", kinds.nominal, names)
        numbers = _numbers_of(frame, {*continuous, *ordinal, *nominal}, kinds.missing)
        few = [name for name, values in numbers.items() if len(values) <= n_bins]
        cut = {name: values for name, values in numbers.items() if len(values) > n_bins}
        continuous |= dict.fromkeys(cut, n_bins)
        columns: dict[str, Any] = {name: frame[name] for name in names}
        for name, spec in continuous.items():
            if not isinstance(spec, int | np.integer):
                columns[name] = _within(name, frame[name], spec)
        target = getattr(given.labels, "name", None)
        target = target if isinstance(target, str) else "label"
        while target in names:
            target += "_"
        columns[target] = codes
        whole = pd.DataFrame(columns, copy=False)  # many columns one by one would warn
        table = Table.from_arrays(
            with_readings(whole, frame),
            sample_weight=weights,
            nominal=nominal,
            ordinal={**ordinal, **dict.fromkeys(few), target: list(range(len(classes)))},
            continuous=continuous,
            missing=kinds.missing,
            source=source,
        )
        return cls(table, target, classes, label_notes(frame, codes, weights))


def _check_classes(name: str, numbers: NDArray[np.floating]) -> None:
    """Raise DataError if labels are not integers but other numbers."""
    broken = numbers[numbers != np.rint(numbers)]
    if len(broken):
        raise DataError(
            f"{name} must hold text, whole numbers or truth values: Unknown label type: "
            f"continuous, {len(np.unique(numbers)):,} different numbers such as {broken[0]:g}; "
            "numbers must be cut into classes first"
        )


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise DataError if labels are of more classes than two, (n_classes,)."""
    if len(classes) > 2:
        shown = ", ".join(f'"{level_text(label)}"' for label in classes[:4].tolist())
        raise DataError(
            "y must have two classes. Only binary classification is supported, got "
            f"{len(classes)} classes: {shown}{', ...' if len(classes) > 4 else ''}"
        )


def _check_length(name: str, labels: Sized, rows_name: str, rows: Sized) -> None:
    if len(labels) != len(rows):
        raise DataError(
            f"{name} must have a label per row of {rows_name}, {len(rows)}, got {len(labels)}"
        )


def _numbers_of(frame: pd.DataFrame, declared: Collection[str], missing: str) -> dict[str, Floats]:
    """Return the distinct values of each undeclared column of numbers."""
    found = {}
    for name, cells in frame.items():
        is_missing = cells.isna().to_numpy(dtype=np.bool_)
        if missing == "error" and is_missing.any():
            raise DataError(
                f'column "{name}" has a missing cell (NaN) in row {1 + int(np.argmax(is_missing))}'
                ": fill it, drop the column, or make missing cells a level with "
                + typed_setting("missing", "level")
            )
        if name not in declared and holds_numbers(cells):
            numbers = to_numbers(f'column "{name}"', cells)
            check_numbers(f'column "{name}"', numbers)
            found[str(name)] = np.unique(numbers[~np.isnan(numbers)])
    return found


def _within(name: str, cells: Cells, edges: Any) -> Cells:
    """Return numbers, moved to the outer edges if they are beyond them: the outer bins are open."""
    try:
        ends = np.array([min(edges), max(edges)], np.float64)
    except (TypeError, ValueError):  # no edges: `Table` raises the error
        return cells
    numbers = to_numbers(f'continuous column "{name}"', cells)
    check_numbers(f'column "{name}"', numbers)
    return pd.Series(np.clip(numbers, *ends), cells.index)
