"""The files of a path: one or several, a folder, a pattern, or a URL of another file system.

Several files are read as one table: a list in its order, a folder or pattern in the order of names.
All must have the same columns.
"""

import itertools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from glob import glob
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TypeAlias, TypeGuard

import pandas as pd

from bayescascade.base.errors import DataError, ParameterError, warn_user
from bayescascade.data.column import Column
from bayescascade.data.data_file import DataFile, recognized
from bayescascade.data.dialects import TO_BE_FOUND, GivenDialect
from bayescascade.data.levels import level_text
from bayescascade.data.read_as import ReadAs, as_learned
from bayescascade.data.readers import READERS, ExcelSource, FileSource
from bayescascade.data.scanning import changed_sources
from bayescascade.data.sources import BLOCK_ROWS, Batch, Source, Units, missing_codes_of, source_of
from bayescascade.data.text_files import CsvSource

FilePaths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
Paths: TypeAlias = FilePaths | ReadAs

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br", ".zip")
_PATTERN = re.compile(r"[*?\[]")
_ROW = re.compile(r'"[^"]*"|\bin row (\d+)')  # a value in quotes may look like a row number


def are_paths(rows: object) -> TypeGuard[Paths]:
    """Return whether rows are files: a text, a path, a `ReadAs`, or a list of paths."""
    if isinstance(rows, ReadAs):
        return True
    if isinstance(rows, list | tuple):
        return bool(rows) and all(isinstance(row, str | PathLike) and _is_path(row) for row in rows)
    return isinstance(rows, str | PathLike)


def open_files(
    paths: Paths, chunk_rows: int = BLOCK_ROWS, reader: type[FileSource] | None = None
) -> Source:
    """Open files to be read as one table, at most `chunk_rows` rows at a time.

    `paths` are files, folders, patterns such as "parts/*.parquet", or URLs that fsspec knows. A
    folder stands for the files of one format in it; names that begin with "." or "_" are left out.
    The default `reader` follows the file's name, CSV for unknown names. DataError if there is no
    file, one cannot be read, or formats or columns differ.
    """
    label, sources = open_each(paths, chunk_rows, reader)
    return sources[0] if len(sources) == 1 else FilesSource(sources, label)


def open_learned(paths: Paths, columns: Iterable[Column], chunk_rows: int = BLOCK_ROWS) -> Source:
    """Open files to be read as a model's columns were; warn if a file without units needs one."""
    known = list(columns)
    source = open_files(as_learned(paths, known), chunk_rows)
    check_units(source, known)
    typed = [] if source.is_text else [c for c in known if c.unit and c.name in source.names]
    for column in typed:
        text = f'column "{column.name}" had numbers with {column.unit} when the model was fitted'
        warn_user(UserWarning(f"{text}: 20 in {source.label} is read as 20 {column.unit}"))
    return source


def check_units(source: Source, columns: Iterable[Column]) -> None:
    """Raise DataError if a text file's numbers have another unit than those of learned columns."""
    known = {
        column.name: column.unit
        for column in columns
        if source.units.get(column.name, ("", ""))[1] not in map(level_text, column.missing_codes)
    }
    _check_units(source, known, "when the model was fitted")


def open_each(
    paths: Paths, chunk_rows: int = BLOCK_ROWS, reader: type[FileSource] | None = None
) -> tuple[str, list[Source]]:
    """Return the label of several files, and a source for each; see `open_files`."""
    if not isinstance(paths, ReadAs):
        return _open_each(paths, chunk_rows, reader, TO_BE_FOUND)
    if are_paths(paths.rows):
        label, sources = _open_each(paths.rows, chunk_rows, reader, paths.dialect)
        whole = sources[0] if len(sources) == 1 else FilesSource(sources, label)
        return label, changed_sources(paths, sources, whole)
    opened = source_of(paths.rows)
    if opened is None or paths.dialect.of_text:
        raise ParameterError(
            "rows must be files, or a table with named columns, which has no sep, encoding, "
            f"decimal, thousands, skip or comment, got {type(paths.rows).__name__}"
        )
    return opened.label, changed_sources(paths, [opened], opened)


def _open_each(
    paths: FilePaths, chunk_rows: int, reader: type[FileSource] | None, dialect: GivenDialect
) -> tuple[str, list[Source]]:
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not listed:
        raise DataError("at least one file must be given, got none")
    if any(isinstance(path, ReadAs) for path in listed):
        raise ParameterError("ReadAs must contain the whole list of files, got it inside a list")
    files = [file for path in listed for file in _find(path, reader)]
    sources: list[Source] = []
    for file in files:
        sources.append(_open(file, chunk_rows, reader, dialect))
    for other in sources[1:]:
        _check_same_columns(sources[0], other)
    units: dict[str, str] = {}
    for source in sources:
        _check_units(source, units, "in the files before")
        units |= {name: unit for name, (unit, _) in source.units.items()}
    label = sources[0].label
    if len(sources) > 1:
        whole = PurePosixPath(str(listed[0])).name
        label = whole if len(listed) == 1 else f"{label} and {len(sources) - 1} more"
    return label, sources


def _open(
    file: DataFile, chunk_rows: int, reader: type[FileSource] | None, dialect: GivenDialect
) -> Source:
    """Open a file with the reader that its first bytes need, if it is not known to be another."""
    chosen = reader or _reader_of(file.path) or CsvSource
    if chosen not in (CsvSource, ExcelSource):
        return chosen(file, chunk_rows, dialect)
    found = recognized(file, dialect.encoding)
    fitting = READERS.get(found.extension, CsvSource)
    if reader is not None and fitting is not reader:
        raise DataError(f"{file.label} must be a CSV file, got {fitting.format_name}")
    source = fitting(found.file, chunk_rows, dialect)
    notes = [found.note] if found.note else []
    if not notes and fitting is not chosen and _reader_of(file.path) is not None:
        notes = [f"{file.label} is read as {fitting.format_name}, not as its name says"]
    if isinstance(source, CsvSource):
        source.opening_notes[:0] = notes
    else:
        source.notes = [*notes, *source.notes]
    return source


class FilesSource:
    """The rows of several files with the same columns, at least one, one file after the other."""

    def __init__(self, sources: Sequence[Source], label: str) -> None:
        first = sources[0]
        self.label = label
        self.names = first.names
        self.is_text = first.is_text
        self.categorical = first.categorical
        self.missing_codes = missing_codes_of(first)
        self.units: Units = {
            name: unit for source in sources for name, unit in source.units.items()
        }
        self._sources = sources
        self._n_rows: list[int] = []  # the rows of each file in the last pass, as far as it went
        self._is_reading = False

    @property
    def notes(self) -> Sequence[str]:
        """Notes of all files, each once."""
        return list(dict.fromkeys(text for source in self._sources for text in source.notes))

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, file by file."""
        self._n_rows, self._is_reading = [], True
        for source in self._sources:
            self._n_rows.append(0)
            for block in source.blocks(names):
                self._n_rows[-1] += len(block)
                self._is_reading = False
                yield block
                self._is_reading = True
        self._is_reading = False

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, in the form that takes least time to make."""
        for source in self._sources:
            alike = source.categorical == self.categorical
            yield from source.batches(names) if alike else source.blocks(names)

    def located(self, message: str) -> str:
        """Return a message about a row of the last pass, with its file and its row in that file."""
        if self._is_reading:  # the file's reader has already named it
            return message
        return _ROW.sub(
            lambda found: f"in row {self._place(int(found[1]))}" if found[1] else found[0], message
        )

    def _place(self, row: int) -> str:
        ends = itertools.accumulate(self._n_rows)
        for source, n_rows, end in zip(self._sources, self._n_rows, ends, strict=False):
            if row <= end:
                return f"{row - end + n_rows} of {source.label}"
        return str(row)


@contextmanager
def located_errors(source: Source) -> Iterator[None]:
    """Name file and row in errors about rows of several files."""
    try:
        yield
    except DataError as error:
        if isinstance(source, FilesSource):
            error.args = (source.located(str(error)), *error.args[1:])
        raise


def _is_path(text: str | PathLike[str]) -> bool:
    """Return whether a text in a list is a path, not a cell of a row."""
    return not isinstance(text, str) or "/" in text or _reader_of(text) is not None


def _find(path: str | PathLike[str], reader: type[FileSource] | None) -> list[DataFile]:
    """Return the files of a path, pattern, folder or URL, by name."""
    text = str(path)
    if "://" in text:
        return _find_url(text, reader)
    if Path(path).is_dir():
        found = [str(each) for each in Path(path).rglob("*") if each.is_file()]
        return [DataFile(each) for each in _files_of_folder(text, found, reader)]
    if _PATTERN.search(text) and not Path(path).exists():
        return [DataFile(each) for each in _matches(text, glob(text, recursive=True))]
    return [DataFile.of(path)]


def _find_url(url: str, reader: type[FileSource] | None) -> list[DataFile]:
    try:
        import fsspec
    except ImportError:
        raise DataError(
            f"{url} must be a local file, because fsspec is not installed: "
            "pip install 'bayescascade[fsspec]'"
        ) from None
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        filesystem, path = fsspec.core.url_to_fs(url)
        if filesystem.isdir(path):
            found = _files_of_folder(url, filesystem.find(path), reader)
        elif _PATTERN.search(path) or not filesystem.exists(path):
            found = _matches(url, filesystem.glob(path) if _PATTERN.search(path) else [])
        else:
            found = [path]
    except (ImportError, OSError, ValueError) as error:  # of a protocol that is not installed
        raise DataError(f"cannot read {url}: {str(error).splitlines()[0]}") from None
    arrow = PyFileSystem(FSSpecHandler(filesystem))
    return [DataFile(each, arrow) for each in found]


def _matches(pattern: str, found: Iterable[str]) -> list[str]:
    matches = sorted(each for each in found if not Path(each).is_dir())
    if not matches:
        raise DataError(f"no such file: {pattern}")
    return matches


def _files_of_folder(
    folder: str, found: Iterable[str], reader: type[FileSource] | None
) -> list[str]:
    """Return the data files among those found in a folder, all of one format."""
    inside = PurePosixPath(folder.partition("://")[2] or folder)
    readers = {}
    for path in sorted(map(str, found)):
        parts = PurePosixPath(path).parts[len(inside.parts) :]
        partition = next((part for part in parts[:-1] if fnmatch(part, "*=*")), None)
        if partition is not None:
            raise DataError(
                f"{folder} is partitioned by {partition.partition('=')[0]}, with values only in "
                f"the names of its folders: read it as pyarrow.dataset.dataset({folder!r}, "
                'partitioning="hive")'
            )
        chosen = _reader_of(path)
        if chosen is not None and not any(part.startswith((".", "_")) for part in parts):
            readers[path] = chosen
    if reader is not None:
        readers = {path: chosen for path, chosen in readers.items() if chosen is reader}
    if not readers:
        format_name = "data" if reader is None else reader.format_name
        ends = ", ".join(end for end, read in READERS.items() if reader in (None, read))
        raise DataError(f"{folder} is a directory without {format_name} files ({ends})")
    first, *_ = readers
    other = next((path for path in readers if readers[path] is not readers[first]), None)
    if other is not None:
        raise DataError(
            f"{folder} must have files of one format, got {Path(first).name} and "
            f"{Path(other).name}: name the files, or a pattern"
        )
    return list(readers)


def _reader_of(path: str) -> type[FileSource] | None:
    name = PurePosixPath(path)
    if name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return READERS.get(name.suffix.lower())


def _check_same_columns(first: Source, other: Source) -> None:
    missing = [name for name in first.names if name not in other.names]
    more = [name for name in other.names if name not in first.names]
    if missing:
        raise DataError(
            f'column "{missing[0]}" is missing from {other.label}, but {first.label} has it'
        )
    if more:
        raise DataError(
            f'column "{more[0]}" of {other.label} is missing from {first.label}: '
            "files that are read together must have the same columns"
        )
    if first.is_text != other.is_text:
        raise DataError(
            f"files that are read together must be of one format, got {first.label} and "
            f"{other.label}"
        )


def _check_units(source: Source, known: Mapping[str, str], where: str) -> None:
    for name, (unit, cell) in source.units.items():
        before = known.get(name, unit)
        if unit != before:
            raise DataError(
                f'column "{name}" has the cell "{cell}" in {source.label}, but '
                f"{'' if before else 'no '}numbers with {before or unit} {where}: write them alike"
            )
