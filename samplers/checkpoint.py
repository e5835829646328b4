"""Checkpoint files: one JSON file with the state of a run, or of several successive runs.

The file is {"format", "version", "sha256", "body"}; the checksum is that of the body's text. The
body says whether the run is finished and has one *section* per engine run. A complete new file is
renamed over the old one, so a run that is killed during a write leaves the previous checkpoint.
Nothing in the file is ever executed.

The first write happens before the run and raises if it fails. Later failures, such as a full disk,
give one warning and the run continues, because its result is not lost.
"""

import hashlib
import json
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from samplers.parameters import CheckpointError, SamplerValueError, check_positive

FORMAT = "samplers checkpoint"
VERSION = 1
HEADER = re.compile(rf'\{{"format": "{FORMAT}", "version": (?P<version>\d{{1,9}}), ')

_LONGEST = 600  # characters of the description of an error


class Checkpoint:
    """A checkpoint file of one or more successive engine runs.

    Every run has its own section; the owner calls `finish` after the last one. Until then the file
    counts as unfinished. A complete section returns its run at once when resumed.

    Parameters
    ----------
    path : str or Path
    resume : bool
        Whether to continue the run in the file; without a file, the run starts from the beginning.
        Otherwise a finished file is overwritten and an unfinished one is an error.
    checkpoint_seconds : float > 0
        Minimum time between two writes.

    Raises
    ------
    CheckpointError
        If the file is not a checkpoint, is damaged, or is unfinished and `resume` is False.
    """

    def __init__(
        self, path: str | Path, resume: bool = False, *, checkpoint_seconds: float = 5.0
    ) -> None:
        self.path = Path(path)
        self.resume = bool(resume)
        self.checkpoint_seconds = check_positive("checkpoint_seconds", checkpoint_seconds)
        self._was_written, self._has_warned, self._is_finished = False, False, False
        self._sections: dict[str, str] = {}  # as JSON
        self._stored = self._read()

    def section(self, name: str) -> "CheckpointSection":
        """Return the section called `name`, for an engine's `checkpoint` parameter."""
        return CheckpointSection(self, name)

    def finish(self) -> None:
        """Declare that no further section follows."""
        if not self._is_finished:
            self._is_finished = True
            self._save(must_succeed=False)

    def error(self, problem: str) -> CheckpointError:
        """Return an error about this file; long values are cut."""
        problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]} ..."
        return CheckpointError(f"checkpoint {self.path} {problem}")

    def warn(self, problem: object) -> None:
        """Warn once that the run is no longer saved."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the run continues, but is no longer saved: {problem}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _read(self) -> dict[str, object]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError:
            raise self.error("is not a checkpoint file") from None
        is_finished, sections = self._parse(text)
        if self.resume:
            self._is_finished = is_finished
            self._sections = {name: json.dumps(content) for name, content in sections.items()}
            return sections
        if not is_finished:
            raise self.error("holds an unfinished run: resume it, or delete it to start again")
        return {}

    def _parse(self, text: str) -> tuple[bool, dict[str, object]]:
        header = HEADER.match(text)
        if header is None:
            raise self.error("is not a checkpoint file")
        version = int(header["version"])
        if version != VERSION:
            raise self.error(f"has format version {version}, this release reads {VERSION}")
        body = text[len(_file_text("")) - len("}\n") : -len("}\n")]
        if text != _file_text(body):
            raise self.error("is damaged: its content does not fit its checksum")
        try:
            content = json.loads(body)
            return bool(content["finished"]), dict(content["sections"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise self.error("is damaged: it has no sections") from error

    def _save(self, *, must_succeed: bool) -> None:
        try:
            self._write()
        except OSError as error:
            problem = self.error(f"cannot be written: {error.strerror}")
            if must_succeed:
                raise problem from error
            self.warn(problem)
        else:
            self._was_written = True

    def _write(self) -> None:
        path = Path(os.path.realpath(self.path))
        temporary = path.with_name(f".{path.name}.tmp")
        sections = ", ".join(f"{json.dumps(name)}: {text}" for name, text in self._sections.items())
        finished = json.dumps(self._is_finished)
        text = _file_text(f'{{"finished": {finished}, "sections": {{{sections}}}}}')
        try:
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@dataclass(frozen=True, eq=False)
class CheckpointSection:
    """One engine run's part of a checkpoint file; made by `Checkpoint.section`."""

    checkpoint: Checkpoint
    name: str
    is_whole_file: bool = False

    def stored(self) -> object:
        """Return the file's content for this section, or None."""
        return self.checkpoint._stored.get(self.name)

    def write(self, text: str, *, is_finished: bool) -> None:
        """Save JSON as this section."""
        file = self.checkpoint
        file._sections[self.name] = text
        file._is_finished = is_finished and self.is_whole_file
        file._save(must_succeed=not file._was_written)


def open_section(
    checkpoint: str | Path | CheckpointSection | None, resume: bool
) -> CheckpointSection | None:
    """Return the section for an engine's parameters."""
    if checkpoint is None:
        if resume:
            raise SamplerValueError("checkpoint must be given when resume is True, got None")
        return None
    if isinstance(checkpoint, CheckpointSection):
        if resume and not checkpoint.checkpoint.resume:
            raise SamplerValueError("resume must be given to the Checkpoint of a section, got True")
        return checkpoint
    if not isinstance(checkpoint, str | os.PathLike):
        raise SamplerValueError(
            f"checkpoint must be a path, a section of a Checkpoint or None, got {checkpoint!r}"
        )
    return CheckpointSection(Checkpoint(checkpoint, resume), "run", is_whole_file=True)


def _file_text(body: str) -> str:
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return (
        f'{{"format": "{FORMAT}", "version": {VERSION}, "sha256": "{checksum}", "body": {body}}}\n'
    )
