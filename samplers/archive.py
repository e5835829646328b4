"""What a checkpoint section holds of an engine run, and when it may be resumed.

A section is {"engine", "settings", "seed", "fingerprint", "chains"}; a chain is its snapshot and
one record per traced block. The text of a record is made once, when it is first saved, and does
not depend on when that was: a run ends in the same bytes however often it was saved or resumed.
"""

import hashlib
import json
import math
import time
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from samplers.blocks import Chunk, Memory, Program, Record, Snapshot, restore_generator
from samplers.checkpoint import CheckpointSection
from samplers.codec import StateCodec, decode, encode
from samplers.errors import CheckpointError
from samplers.types import ChainState, ProvidesFingerprint

__all__ = ["Archive", "History"]

S = TypeVar("S")

DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
TOLERANCE = 1e-6  # of log densities: compiled targets may update theirs in small steps


class History(NamedTuple, Generic[S]):
    """A run so far.

    Attributes
    ----------
    snapshots : tuple of Snapshot
        One per chain, all after the same number of blocks.
    records : tuple of tuples of Record
        Per chain, one per traced block.
    """

    snapshots: tuple[Snapshot[S], ...]
    records: tuple[tuple[Record[S], ...], ...]

    @property
    def block(self) -> int:
        """Number of blocks done by every chain."""
        return self.snapshots[0].block

    def extended(self, chunks: list[Chunk[S]]) -> "History[S]":
        """Return the history after one more chunk of every chain."""
        return History(
            tuple(chunk.snapshot for chunk in chunks),
            tuple(
                (*records, *chunk.records)
                for records, chunk in zip(self.records, chunks, strict=True)
            ),
        )


class Archive(Generic[S]):
    """Saves one run to its section, and brings it back.

    Parameters
    ----------
    section : CheckpointSection
    program : Program
    n_chains : int
    root : SeedSequence or None
        Where the chains' generators come from; None when the user gave no seed.
    initial_states : tuple of S, or None
        What the user gave.
    """

    def __init__(
        self,
        section: CheckpointSection,
        program: Program[S],
        n_chains: int,
        root: np.random.SeedSequence | None,
        initial_states: tuple[S, ...] | None,
    ) -> None:
        self._section = section
        self._program = program
        self._codec = StateCodec(program.target)
        self._header = {
            "engine": program.method,
            "settings": {
                **program.settings(),
                "n_chains": n_chains,
                "initial_states": self._digest(initial_states),
            },
            "seed": None if root is None else _describe_seed(root),
            "fingerprint": _fingerprint(program.target),
        }
        self._texts: list[list[str]] = [[] for _ in range(n_chains)]
        self._last_saved = -math.inf
        self._was_saved = False

    def save_if_due(self, history: History[S]) -> None:
        """Save the run unless it was saved a moment ago."""
        if time.monotonic() - self._last_saved >= self._section.checkpoint.checkpoint_seconds:
            self.save(history)

    def save(self, history: History[S]) -> None:
        """Save the run; raises only the first time, later the user is warned.

        Raises
        ------
        CheckpointError
            If a state cannot be encoded, or the file cannot be written.
        """
        is_finished = history.block == self._program.plan.n_blocks
        try:
            self._section.write(self._text(history), is_finished=is_finished)
        except CheckpointError as error:
            if not self._was_saved:
                raise
            self._section.checkpoint.warn(error)
        self._was_saved = True
        self._last_saved = time.monotonic()

    def load(self) -> History[S] | None:
        """Return the run that the section holds, or None if it holds none.

        Raises
        ------
        CheckpointError
            If the run is another one, or the section is damaged.
        """
        stored = self._section.stored()
        if stored is None:
            return None
        try:
            content: dict[str, Any] = dict(stored)  # type: ignore[call-overload]
            self._compare(content)
            history = self._decode_history(content["chains"])
        except DAMAGE as error:
            raise self._error(f"is damaged: {type(error).__name__}: {error}") from error
        for snapshot in history.snapshots:
            self._check_snapshot(snapshot)
        if content["seed"] is None or self._header["seed"] is None:
            self._header["seed"] = content["seed"]
        return history

    def _error(self, problem: str) -> CheckpointError:
        return self._section.checkpoint.error(problem.replace("\n", " "))

    def _compare(self, stored: dict[str, Any]) -> None:
        ours: dict[str, Any] = json.loads(json.dumps(self._header))
        if stored["engine"] != ours["engine"]:
            raise self._error(f"is of {stored['engine']}, not of {ours['engine']}")
        if stored["fingerprint"] != ours["fingerprint"]:
            raise self._error(
                f"is of another model or other data: its fingerprint is {stored['fingerprint']!r}, "
                f"this target's is {ours['fingerprint']!r}"
            )
        for name, value in ours["settings"].items():
            if stored["settings"][name] != value:
                raise self._error(
                    f"is of a run with other settings: its {name} is "
                    f"{stored['settings'][name]!r}, not {value!r}"
                )
        if None not in (stored["seed"], ours["seed"]) and stored["seed"] != ours["seed"]:
            raise self._error(
                f"is of a run with another seed: {stored['seed']!r}, not {ours['seed']!r}"
            )

    def _digest(self, states: tuple[S, ...] | None) -> str | None:
        """Return a short text that tells initial states apart."""
        if states is None:
            return None
        text = ", ".join(self._codec.dumps(self._codec.encode(state)) for state in states)
        return hashlib.sha256(text.encode()).hexdigest()

    def _text(self, history: History[S]) -> str:
        chains = []
        for snapshot, texts, records in zip(
            history.snapshots, self._texts, history.records, strict=True
        ):
            texts += map(self._record_text, records[len(texts) :])
            last = snapshot._replace(
                replicas=[self._encode_chain(chain) for chain in snapshot.replicas],
                best=self._encode_chain(snapshot.best),
            )
            told = self._codec.dumps(last._asdict())
            chains.append(f'{{"snapshot": {told}, "records": [{", ".join(texts)}]}}')
        return f'{json.dumps(self._header)[:-1]}, "chains": [{", ".join(chains)}]}}'

    def _record_text(self, record: Record[S]) -> str:
        told = record._asdict()
        told["values"] = {name: encode(value) for name, value in record.values.items()}
        for name in ("proposed", "accepted"):
            told[name] = {move: int(count) for move, count in told[name].items()}
        if told.pop("state") is not None:
            told["state"] = self._codec.encode(record.state)
        return self._codec.dumps(told)

    def _encode_chain(self, chain: ChainState[S]) -> list[object]:
        return [self._codec.encode(chain.state), chain.log_density]

    def _decode_history(self, chains: list[dict[str, Any]]) -> History[S]:
        history = History(
            tuple(self._decode_snapshot(chain["snapshot"]) for chain in chains),
            tuple(tuple(self._decode_record(one) for one in chain["records"]) for chain in chains),
        )
        if len(chains) != len(self._texts):
            raise ValueError("chains are missing")
        if any(snapshot.block != history.block for snapshot in history.snapshots):
            raise ValueError("the chains are not at the same block")
        if not 0 <= history.block <= self._program.plan.n_blocks:
            raise ValueError("the chains are beyond the end of the run")
        n_records = self._program.plan.n_traced_before(history.block)
        if any(len(records) != n_records for records in history.records):
            raise ValueError("records are missing")
        if len({_names(record) for records in history.records for record in records}) > 1:
            raise ValueError("the records are not of the same kind")
        return history

    def _decode_snapshot(self, content: dict[str, Any]) -> Snapshot[S]:
        restore_generator(content["bit_generator"])  # raises when it is no such state
        return Snapshot(
            bit_generator=content["bit_generator"],
            replicas=tuple(self._decode_chain(chain) for chain in content["replicas"]),
            best=self._decode_chain(content["best"]),
            memory={
                name: tuple(float(value) for value in values)
                for name, values in content["memory"].items()
            },
            block=int(content["block"]),
        )

    def _decode_chain(self, content: list[Any]) -> ChainState[S]:
        state, log_density = content
        return ChainState(self._codec.decode(state), float(log_density))

    def _decode_record(self, content: dict[str, Any]) -> Record[S]:
        return Record(
            values={name: _decode_float(value) for name, value in content["values"].items()},
            proposed={name: int(count) for name, count in content["proposed"].items()},
            accepted={name: int(count) for name, count in content["accepted"].items()},
            state=self._codec.decode(content["state"]) if "state" in content else None,
        )

    def _check_snapshot(self, snapshot: Snapshot[S]) -> None:
        """Catch states and memories that this target and engine could not have left."""
        try:
            replicas, memory = self._program.start(snapshot.replicas[0].state)
            densities = [
                (chain.log_density, float(self._program.target.log_density(chain.state)))
                for chain in (*snapshot.replicas, snapshot.best)
            ]
        except Exception as error:  # the target's own, about a state that is none of its
            raise self._error(f"is damaged: its states raise {error!r}") from error
        if len(replicas) != len(snapshot.replicas) or _shape(memory) != _shape(snapshot.memory):
            raise self._error("is damaged: its chains are not this engine's")
        for stored, here in densities:
            if not math.isclose(stored, here, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                raise self._error(
                    f"is of another target: a state's log density was {stored!r}, "
                    f"here it is {here!r}"
                )


def _shape(memory: Memory) -> dict[str, int]:
    """Return what every memory of an engine has in common; NaN and infinity have no place."""
    return {
        name: len(values) if all(map(math.isfinite, values)) else -1
        for name, values in memory.items()
    }


def _names(record: Record[S]) -> tuple[object, ...]:
    """Return what all records of a run have in common."""
    has_state = record.state is not None
    return (*record.values, *record.proposed, *record.accepted, has_state)


def _decode_float(encoded: object) -> float:
    value = decode(encoded)
    if not isinstance(value, float):
        raise TypeError(f"a float was expected, got {value!r}")
    return value


def _describe_seed(root: np.random.SeedSequence) -> Mapping[str, object]:
    entropy = root.entropy
    if isinstance(entropy, list | tuple):
        entropy = [int(word) for word in entropy]
    return {
        "entropy": entropy,
        "spawn_key": [int(word) for word in root.spawn_key],
        "n_children_spawned": root.n_children_spawned,
    }


def _fingerprint(target: object) -> str | None:
    return str(target.fingerprint()) if isinstance(target, ProvidesFingerprint) else None
