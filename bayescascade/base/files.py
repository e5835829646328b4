"""Writing files so that a failure leaves the old one as it was; reading JSON with clear errors."""

import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayescascade.base.errors import BayesCascadeError, ModelFileError
from bayescascade.base.texts import shortened

_MARK = b"\nbayescascade sha256 "
_LENGTH = len(_MARK) + hashlib.sha256().digest_size * 2


class FileError(BayesCascadeError, OSError):
    """A file cannot be written."""


@contextmanager
def replaced_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` if the block succeeds; FileError if it cannot.

    A link is kept, and leads to the new content. A device or a pipe is not replaced, but written.
    """
    target, is_stream = Path(os.path.realpath(path)), is_written_through(path)
    try:
        folder = tempfile.gettempdir() if is_stream else target.parent
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=folder)
        os.close(descriptor)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        if target.is_dir():
            raise FileError(f"cannot write {path}: it is a directory")
        yield temporary
        if is_stream:
            with temporary.open("rb") as written, open(path, "ab") as stream:
                shutil.copyfileobj(written, stream)
        else:
            _put(temporary, target)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def is_written_through(path: str | Path) -> bool:
    """Return whether a path is a device, a pipe or an open file, which cannot be replaced.

    A regular file instead of /dev/null would break other programs.
    """
    place = os.path.abspath(path)
    if place.startswith(("/dev/", "/proc/")) and not place.startswith("/dev/shm/"):
        return True  # also /dev/stdout and /dev/fd/3, which may lead to regular files
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Name the file in an OSError that names none, as of writing to an open one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.strerror:
            error.filename = name
        raise


def _put(temporary: Path, target: Path) -> None:
    """Replace a file by a temporary one, once its content is on the disk."""
    with temporary.open("rb+") as written:
        os.fsync(written.fileno())
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~mask)
    temporary.replace(target)


def json_ready(value: Any) -> Any:  # Any: nested plain data of any shape
    """Return nested plain data with null for infinities and NaN, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(path: str | Path, record: Any) -> None:
    """Write plain data as JSON, atomically; numbers keep every digit, arrays become lists."""
    with replaced_file(path) as temporary:
        text = json.dumps(record, allow_nan=False, default=_plain)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path, format_name: str, version: int) -> dict[str, Any]:
    """Return the JSON object that `write_json` wrote; ModelFileError if it is not complete."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise ModelFileError(
            f"{path} is not a saved model: it is not text; if it is a trace, use bayescascade "
            "diagnose"
        ) from None
    try:
        record = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError):  # also an integer of more digits than Python converts
        raise ModelFileError(f"{path} is not a saved model, or is cut short: not JSON") from None
    if not isinstance(record, dict) or record.get("format") != format_name:
        raise ModelFileError(f'{path} is not a saved model: its format must be "{format_name}"')
    if type(record.get("version")) is not int or record["version"] != version:
        raise ModelFileError(
            f"{path} has format version {shortened(repr(record.get('version')))}, "
            f"this program reads {version}"
        )
    return record


def _plain(value: Any) -> Any:
    """Return a value of NumPy or pandas as plain Python; json only calls it for such types."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
    return value.tolist()


def _finite(number: str) -> float:
    """Return a number; raise ValueError if it is too large for a float, as in no file of ours."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is beyond floats")
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def seal(path: str | Path) -> None:
    """Write the checksum of a file at its end, which shows damage before a library reads it.

    HDF5 accepts bytes beyond the end of a file. When it reads a damaged file, it may never return:
    one bit is enough. Damage that it does not notice would change draws. Files without a seal, such
    as those that ArviZ wrote, are read without this check.
    """
    with Path(path).open("rb+") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0, 2)
        file.write(_MARK + digest.encode())


def is_damaged(path: str | Path) -> bool:
    """Return whether a file has a seal that its content contradicts."""
    content = Path(path).read_bytes()
    body, end = content[:-_LENGTH], content[-_LENGTH:]
    if not end.startswith(_MARK):
        return _MARK in content[-2 * _LENGTH :]  # truncated or appended to
    return hashlib.sha256(body).hexdigest().encode() != end[len(_MARK) :]
