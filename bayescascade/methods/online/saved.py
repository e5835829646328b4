"""A saved gate: its rounds, and the rows that its models learned from, but no model.

A file cannot hold any classifier without code, so models are fitted again when the gate is read.
They are the same if they are deterministic, or have a `random_state`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.methods.online.kernels.rounds import Standing
from bayescascade.methods.online.stream import Stream

FORMAT = "bayescascade gate"
VERSION = 1

_GENERATORS = {"PCG64": np.random.PCG64, "PCG64DXSM": np.random.PCG64DXSM}
_KINDS = {"b": np.bool_, "i": np.int64, "f": np.float64}  # of rows


def generator_record(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a random generator; ParameterError of a kind that no file holds."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    if state["bit_generator"] not in _GENERATORS:
        raise ParameterError(
            "random_state must be an int or a generator of PCG64 for a gate that is saved, got "
            f"{state['bit_generator']}"
        )
    return state


def read_generator(record: Mapping[str, Any]) -> np.random.Generator:
    """Return the generator of a record."""
    kind = _GENERATORS[record["bit_generator"]]()
    kind.state = dict(record)
    return np.random.Generator(kind)


def stream_record(stream: Stream) -> dict[str, Any]:
    """Return the rounds played, and the labels bought with their rows."""
    rows, labels = stream.known()
    return {
        "losses": stream.standing.losses,
        "sums": stream.standing.sums,
        "uniforms": stream.uniforms,
        "rng": generator_record(stream.rng),
        "n_learned": stream.n_learned,
        "rows": rows,
        "kind": rows.dtype.kind,
        "labels": labels,
    }


def restore_stream(stream: Stream, record: Mapping[str, Any], n_classes: int, width: int) -> None:
    """Become the stream of a record; models learn from its rows, of some width, again."""
    losses = read_array(record, "losses", stream.standing.losses.shape)
    sums = read_array(record, "sums", stream.standing.sums.shape)
    uniforms = read_array(record, "uniforms", (None, 2))
    n_learned, n = record["n_learned"], len(record["labels"])
    rows = read_array(record, "rows", (n, width), _KINDS[record["kind"]])
    labels = read_array(record, "labels", (n,), np.int64)
    is_whole = type(n_learned) is int and 0 <= n_learned <= n
    if not is_whole or (n and not 0 <= labels.min() <= labels.max() < n_classes):
        raise ModelFileError("a saved gate's labels must be of its classes, and as many as learned")
    is_sound = sums[0] == int(sums[0]) >= sums[1] == int(sums[1]) >= 0 < sums[4]
    if not is_sound or (uniforms.size and not 0 <= uniforms.min() <= uniforms.max() < 1):
        raise ModelFileError("a saved gate's rounds must be counts, and its uniforms in [0, 1)")
    stream.standing = Standing(losses, sums, np.zeros_like(losses))
    stream.uniforms, stream.rng = uniforms, read_generator(record["rng"])
    stream.restore(rows, labels, n_learned)
