"""Files are replaced as a whole or not at all, and read with errors that say what is wrong."""

import os
import stat

import numpy as np
import pytest

from bayescascade.base.errors import BayesCascadeError, ModelFileError
from bayescascade.base.files import (
    FileError,
    is_written_through,
    json_ready,
    read_json,
    replaced_file,
    write_json,
)


def read(path):
    return read_json(path, "thing", 3)


def test_what_is_written_is_read_back(tmp_path):
    """A loaded model must answer to the last bit, whatever the types and the language."""
    plain = {
        "format": "thing",
        "version": 3,
        "n": [0.1, 1 / 3, 5e-324, 2**64 - 1, -0.0],
        "g": "größe",
    }
    write_json(tmp_path / "a.json", {**plain, "a": np.arange(3), "b": np.float32(0.5)})
    assert read(tmp_path / "a.json") == {**plain, "a": [0, 1, 2], "b": 0.5}
    assert (tmp_path / "a.json").read_text(encoding="utf-8").endswith("}\n")


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_what_is_no_json_leaves_the_old_file(tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises((TypeError, ValueError)):
        write_json(path, {"value": value})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    expected = FileError if error is OSError else error

    def write():
        with replaced_file(path) as temporary:
            temporary.write_text("new, but not al")
            raise error("stop")

    with pytest.raises(expected):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_no_room_is_reported_as_such(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")

    def no_room(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(FileError, match=r"cannot write .*a\.json: No space left on device"):
        write_json(path, {})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_unwritable_places_are_named(tmp_path):
    with pytest.raises(FileError, match="none"):
        write_json(tmp_path / "none" / "a.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="it is a directory"):
        write_json(tmp_path / "folder", {})
    assert os.listdir(tmp_path) == ["folder"]
    assert issubclass(FileError, BayesCascadeError)
    assert issubclass(FileError, OSError)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes")
def test_devices_and_pipes_are_written_and_not_replaced(tmp_path):
    """As root, ``--out /dev/null`` made it a regular file, which breaks all other programs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_json(pipe, {"a": 1})
    assert os.read(reader, 100) == b'{"a": 1}\n'
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    assert all(is_written_through(f"/dev/{name}") for name in ("null", "full", "stdout", "fd/1"))
    assert not any(map(is_written_through, (tmp_path, tmp_path / "new", __file__)))


def test_links_lead_to_what_is_written(tmp_path):
    """A link to a shared folder was replaced by a file of its own."""
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to(other)
    for content in ("1", "2"):
        write_json(link, int(content))
        assert other.read_text() == f"{content}\n"
    assert link.is_symlink()


def test_permissions_are_those_of_any_file(tmp_path):
    """Temporary files are private; the model that replaces one must not be."""
    new, old, plain = tmp_path / "new.json", tmp_path / "old.json", tmp_path / "plain"
    plain.write_text("")
    write_json(new, {})
    assert new.stat().st_mode == plain.stat().st_mode
    old.write_text("")
    old.chmod(0o640)
    write_json(old, {})
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cut short"),
        ('{"format": "thing", "version": 3', "cut short"),
        ("[1]", 'format must be "thing"'),
        ('{"format": "other", "version": 3}', 'format must be "thing"'),
        ('{"format": "thing", "version": 4}', "format version 4, this program reads 3"),
        ('{"format": "thing", "version": 3, "x": NaN}', "not JSON"),
        ('{"format": "thing", "version": 3, "x": -Infinity}', "not JSON"),
        ('{"format": "thing", "version": ' + "3" * 5000 + "}", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=lambda text: text[:40],
)
def test_other_content_is_refused(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ModelFileError, match=words) as raised:
        read(path)
    assert str(path) in str(raised.value)


def test_unreadable_files_are_named(tmp_path):
    (tmp_path / "b.json").write_bytes(b"\x89PNG\xff")
    for name, words in (("a.json", "No such file"), ("", "Is a directory"), ("b.json", "not text")):
        with pytest.raises(ModelFileError, match=words):
            read(tmp_path / name)


def test_json_has_no_infinities():
    """JSON that says NaN or Infinity is read by few programs."""
    ready = json_ready({"a": [1.0, float("nan")], "b": (float("-inf"), 2), "c": "x", "d": True})
    assert ready == {"a": [1.0, None], "b": [None, 2], "c": "x", "d": True}
