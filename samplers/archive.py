"""The content of a checkpoint section for an engine run, and the checks before it is resumed.

A section is {"engine", "settings", "seed", "fingerprint", "chains"}; a chain is its snapshot and
one record per traced block. The text of a record is made once, at its first save, and does not
depend on the time of that save: the bytes of a finished run do not depend on earlier saves and
resumes.

States are written as JSON, exactly. None, bool, int, str and finite floats are written as they are
(a float's shortest decimal gives the same float back). Lists stay lists; everything else becomes an
object with one key that names its kind. Types must match exactly: a subclass would be read back as
its base, so it is refused. The order of iteration over a frozenset is not part of its value. A move
that depends on this order, instead of sorting, is not repeatable, with or without checkpoints.
"""

import base64
import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from samplers.blocks import Chunk, Memory, Program, Record, Snapshot, restore_generator
from samplers.checkpoint import CheckpointSection
from samplers.parameters import CheckpointError
from samplers.types import ChainState, ProvidesFingerprint, ProvidesStateCodec

S = TypeVar("S")
Array = np.ndarray[Any, np.dtype[Any]]  # of any shape and dtype

ARRAY_KINDS = "biufcSUmM"

DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
TOLERANCE = 1e-6  # for log densities, which compiled targets may update in small steps


def encode(value: object) -> object:
    """Return `value` as JSON-ready data; CheckpointError for other types."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float) and kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list) and kind is list:
        return [encode(item) for item in value]
    if isinstance(value, tuple) and kind is tuple:
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict) and kind is dict:
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, frozenset) and kind is frozenset:
        return {"frozenset": sorted((encode(item) for item in value), key=json.dumps)}
    if isinstance(value, np.ndarray) and kind is np.ndarray and value.dtype.kind in ARRAY_KINDS:
        return {"array": _encode_array(value)}
    if isinstance(value, np.generic) and value.dtype.kind in ARRAY_KINDS:
        return {"scalar": _encode_array(np.asarray(value))}
    raise CheckpointError(
        f"states holding a {kind.__module__}.{kind.__qualname__} cannot be written to a "
        "checkpoint: give the target encode_state and decode_state"
    )


def decode(encoded: object) -> object:
    """Return the value that `encode` encoded; ValueError, TypeError or KeyError if none."""
    if isinstance(encoded, list):
        return [decode(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    return DECODERS[kind](content)


def _dumps(content: object) -> str:
    """Return data as JSON text; CheckpointError if encoded states in it are not JSON."""
    try:
        return json.dumps(content)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"encode_state must return JSON: {error}") from error


def _encode_array(array: Array) -> object:
    # the memory layout is kept too: it determines the order of a sum, and so its last digit
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": "F" if is_fortran else "C",
        "base64": base64.b64encode(array.tobytes("F" if is_fortran else "C")).decode("ascii"),
    }


def _decode_array(content: dict[str, Any]) -> Array:
    dtype = np.dtype(str(content["dtype"]))
    shape = [int(size) for size in content["shape"]]
    data = bytearray(base64.b64decode(content["base64"], validate=True))
    if dtype.kind not in ARRAY_KINDS or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("an array's data do not fit its shape and dtype")
    return np.ndarray(shape, dtype, data, order="F" if content["order"] == "F" else "C")


DECODERS: dict[str, Callable[..., object]] = {
    "float": float,
    "tuple": lambda items: tuple(decode(item) for item in items),
    "dict": lambda items: {decode(key): decode(item) for key, item in items},
    "frozenset": lambda items: frozenset(decode(item) for item in items),
    "array": _decode_array,
    "scalar": lambda content: _decode_array(content)[()],
}


class History(NamedTuple, Generic[S]):
    """A run so far."""

    snapshots: tuple[Snapshot[S], ...]  # one per chain, all after the same number of blocks
    records: tuple[tuple[Record[S], ...], ...]  # per chain, one per traced block

    @property
    def block(self) -> int:
        """Number of blocks done by every chain."""
        return self.snapshots[0].block

    def extended(self, chunks: list[Chunk[S]]) -> "History[S]":
        """Return the history after one more chunk of every chain."""
        return History(
            tuple(chunk.snapshot for chunk in chunks),
            tuple((*old, *new.records) for old, new in zip(self.records, chunks, strict=True)),
        )


class Archive(Generic[S]):
    """Saves a run to its section, and loads it."""

    def __init__(
        self,
        section: CheckpointSection,
        program: Program[S],
        n_chains: int,
        root: np.random.SeedSequence | None,  # root of the chains' seeds if the user gave a seed
        initial_states: tuple[S, ...] | None,  # given by the user
    ) -> None:
        self._section, self._program = section, program
        target = program.target
        self._codec = target if isinstance(target, ProvidesStateCodec) else None
        given = {"n_chains": n_chains, "initial_states": self._digest(initial_states)}
        own = str(target.fingerprint()) if isinstance(target, ProvidesFingerprint) else None
        self._header = {
            "engine": program.method,
            "settings": {**program.settings(), **given},
            "seed": None if root is None else _describe_seed(root),
            "fingerprint": own,
        }
        self._texts: list[list[str]] = [[] for _ in range(n_chains)]
        self._last_saved, self._was_saved = -math.inf, False

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the run should be saved again."""
        due = self._last_saved + self._section.checkpoint.checkpoint_seconds
        return due - time.monotonic()

    def save(self, history: History[S], is_finished: bool = False) -> None:
        """Save the run; CheckpointError the first time only, later a warning."""
        is_finished = is_finished or history.block == self._program.plan.n_blocks
        try:
            self._section.write(self._text(history), is_finished=is_finished)
        except CheckpointError as error:
            if not self._was_saved:
                raise
            self._section.checkpoint.warn(error)
        self._was_saved = True
        self._last_saved = time.monotonic()

    def load(self) -> History[S] | None:
        """Return the run in the section, or None; CheckpointError if it is another or damaged."""
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

    def _encode(self, state: S) -> object:
        """Return a state as JSON by the target's own codec, or the built-in one."""
        if self._codec is None:
            return encode(state)
        try:
            return self._codec.encode_state(state)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"encode_state failed with {error!r}") from error

    def _decode(self, encoded: object) -> S:
        """Return the state from its JSON content; ValueError or the like if it is forged."""
        if self._codec is None:
            return decode(encoded)  # type: ignore[return-value]  # S is the encoded type
        try:
            state: S = self._codec.decode_state(encoded)
        except Exception as error:  # the target's codec may raise any error
            raise ValueError(f"decode_state failed with {error!r}") from error
        return state

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
        were, are = ({"n_rounds": 1, **header["settings"]} for header in (stored, ours))
        for name, value in are.items():
            if were[name] != value:
                raise self._error(
                    f"is of a run with other settings: its {name} is {were[name]!r}, not {value!r}"
                )
        if None not in (stored["seed"], ours["seed"]) and stored["seed"] != ours["seed"]:
            raise self._error(
                f"is of a run with another seed: {stored['seed']!r}, not {ours['seed']!r}"
            )

    def _digest(self, states: tuple[S, ...] | None) -> str | None:
        """Return a short text that identifies initial states."""
        if states is None:
            return None
        text = ", ".join(_dumps(self._encode(state)) for state in states)
        return hashlib.sha256(text.encode()).hexdigest()

    def _text(self, history: History[S]) -> str:
        chains = []
        for snapshot, texts, records in zip(
            history.snapshots, self._texts, history.records, strict=True
        ):
            texts += map(self._record_text, records[len(texts) :])
            fields = {
                **snapshot._asdict(),
                "replicas": [self._encode_chain(chain) for chain in snapshot.replicas],
                "best": self._encode_chain(snapshot.best),
            }
            chains.append(f'{{"snapshot": {_dumps(fields)}, "records": [{", ".join(texts)}]}}')
        return f'{json.dumps(self._header)[:-1]}, "chains": [{", ".join(chains)}]}}'

    def _record_text(self, record: Record[S]) -> str:
        fields = record._asdict()
        fields["values"] = {name: encode(value) for name, value in record.values.items()}
        for name in ("proposed", "accepted"):
            fields[name] = {move: int(count) for move, count in fields[name].items()}
        del fields["state"]
        if record.state is not None:
            fields["state"] = self._encode(record.state)
        return _dumps(fields)

    def _encode_chain(self, chain: ChainState[S]) -> list[object]:
        return [self._encode(chain.state), chain.log_density]

    def _decode_history(self, chains: list[dict[str, Any]]) -> History[S]:
        history = History(
            tuple(self._decode_snapshot(chain["snapshot"]) for chain in chains),
            tuple(
                tuple(self._decode_record(record) for record in chain["records"])
                for chain in chains
            ),
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
        restore_generator(content["bit_generator"])  # raises if it is not such a state
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
        return ChainState(self._decode(state), float(log_density))

    def _decode_record(self, content: dict[str, Any]) -> Record[S]:
        return Record(
            values={name: _decode_float(value) for name, value in content["values"].items()},
            proposed={name: _decode_count(count) for name, count in content["proposed"].items()},
            accepted={name: _decode_count(count) for name, count in content["accepted"].items()},
            state=self._decode(content["state"]) if "state" in content else None,
        )

    def _check_snapshot(self, snapshot: Snapshot[S]) -> None:
        """Refuse states and memories that this target and engine cannot have produced."""
        try:
            replicas, memory = self._program.start(snapshot.replicas[0].state)
            densities = [
                (chain.log_density, float(self._program.target.log_density(chain.state)))
                for chain in (*snapshot.replicas, snapshot.best)
            ]
        except Exception as error:  # the target's own, for a state that is not its own
            raise self._error(f"is damaged: its states raise {error!r}") from error
        if len(replicas) != len(snapshot.replicas) or _shape(memory) != _shape(snapshot.memory):
            raise self._error("is damaged: its chains are not this engine's")
        for stored, here in densities:
            if not math.isclose(stored, here, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                raise self._error(
                    f"is of another target: a state's log density was {stored!r}, "
                    f"here it is {here!r}"
                )


def _decode_count(content: object) -> int:
    count = int(content)  # type: ignore[call-overload]
    if not 0 <= count < 2**63:
        raise ValueError(f"a count must be at least 0 and below 2**63, got {count!r}")
    return int(count)


def _shape(memory: Memory) -> dict[str, int]:
    """Return the lengths in an engine's memory, equal for all of its memories; -1 if not finite."""
    return {
        name: len(values) if all(map(math.isfinite, values)) else -1
        for name, values in memory.items()
    }


def _names(record: Record[S]) -> tuple[object, ...]:
    """Return the names in a record, which are the same for all records of a run."""
    has_state = record.state is not None
    return (*record.values, *record.proposed, *record.accepted, has_state)


def _decode_float(encoded: object) -> float:
    value = decode(encoded)
    if not isinstance(value, float):
        raise TypeError(f"a float was expected, got {value!r}")
    return value


def _describe_seed(root: np.random.SeedSequence) -> Mapping[str, object]:
    words = root.entropy
    return {
        "entropy": list(map(int, words)) if isinstance(words, list | tuple) else words,
        "spawn_key": [int(word) for word in root.spawn_key],
        "n_children_spawned": root.n_children_spawned,
    }
