"""A checksum at the end of a binary file, which shows damage before a library reads it.

HDF5 accepts bytes beyond the end of a file. When it reads a damaged file, it may never return: one
bit is enough. Damage that it does not notice would change draws. Files without a seal, such as
those that ArviZ wrote, are read without this check.
"""

import hashlib
from pathlib import Path

_MARK = b"\nbayescascade sha256 "
_LENGTH = len(_MARK) + hashlib.sha256().digest_size * 2


def seal(path: str | Path) -> None:
    """Write the checksum of a file at its end."""
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
