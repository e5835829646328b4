"""Compiled functions are cached on disk, and never stale."""

import ast
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from bayescascade import BranchCascade, LeafCascade
from bayescascade.base import jit as _jit
from bayescascade.base.kernel_cache import _FolderIndex
from tests.documents import ROOT
from tests.people import DECLARED, draw_people

HELPER = """
from typing import NamedTuple
from bayescascade.base.jit import inner_kernel

class {name}(NamedTuple):
    x: float

@inner_kernel
def helper(point):
    return point.x + {constant}
"""

CALLER = """
from bayescascade.base.jit import kernel
from {package}.helper import helper

@kernel
def caller(point):
    return 2.0 * helper(point)
"""

RUN = """
from {package} import helper
from {package}.caller import caller
(kind,) = (k for k in vars(helper).values() if getattr(k, "_fields", ()) == ("x",))
print(caller(kind(1.0)), sum(caller.stats.cache_hits.values()))
"""


def printed(code, cache=None, *, path=(), must_end=True, **more):
    """Return what a program prints that caches its kernels in a folder, and how it ended."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, filter(None, [*path, *sys.path]))),
    }
    for name in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"):
        environment.pop(name, None)
    environment |= more if cache is None else {"NUMBA_CACHE_DIR": str(cache), **more}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True,
        check=must_end, cwd=ROOT,
    )  # fmt: skip
    return done.stdout if must_end else done


@pytest.fixture
def package(tmp_path):
    """Return a function that runs a two-file package: its answer and the cache's hits."""
    folder = tmp_path / "twofiles"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "caller.py").write_text(CALLER.format(package="twofiles"))

    def run(constant=None, name="Point"):
        if constant is not None:
            (folder / "helper.py").write_text(HELPER.format(constant=constant, name=name))
        code = RUN.format(package="twofiles")
        answer, hits = printed(code, tmp_path / "cache", path=[tmp_path]).split()
        return float(answer), int(hits)

    return run


@pytest.mark.slow
def test_editing_a_helper_in_another_file_recompiles_its_callers(package):
    """Numba's own cache would go on with the old helper: a fixed bug would stay."""
    assert package(constant=10.0) == (22.0, 0)
    assert package() == (22.0, 1)
    assert package(constant=20.0) == (42.0, 0)


@pytest.mark.slow
def test_renaming_a_type_of_arguments_recompiles_too(package):
    """After an upgrade the cache names types that are gone: it is of no use, and no error."""
    assert package(constant=10.0) == (22.0, 0)
    assert package(constant=10.0, name="Place") == (22.0, 0)
    assert package() == (22.0, 1)


def test_kernels_release_the_interpreter():
    """Chains in threads would otherwise wait for each other."""
    from bayescascade.methods.density.trees.kernels.sweep import score_rows, sweep
    from bayescascade.methods.density.trees.kernels.trees import export, load

    for function in (sweep, load, export, score_rows):
        if hasattr(function, "py_func"):  # not when the JIT is disabled
            assert function.targetoptions["nogil"]
            assert function.targetoptions["error_model"] == "numpy"
            assert not function.targetoptions.get("fastmath")


MODELS = {
    "independent": LeafCascade(leaf="independent", **DECLARED),
    "multiway": LeafCascade(3.0, 0.7, max_branches=None, **DECLARED),
    "levels": BranchCascade(partitions="levels", predictive="average", **DECLARED),
    "inclusion": BranchCascade(feature_inclusion=0.3, max_branches=2, **DECLARED),
}
QUICK = {("levels", 2.9), ("inclusion", 3)}  # the others are slow


@pytest.mark.parametrize(
    ("model", "most"),
    [
        pytest.param(
            model,
            most,
            id=f"{words}-{name}",
            marks=() if (name, most) in QUICK else pytest.mark.slow,
        )
        for most, words in ((3, "whole"), (2.9, "fractions"))
        for name, model in MODELS.items()
    ],
)
def test_interpreted_kernels_say_the_same_to_the_last_bit(model, most, monkeypatch):
    """Whether kernels were compiled already must change nothing that anybody sees."""
    rows = draw_people(60, 1)[["sex", "crew", "age"]]
    columns = {k: model.get_params()[k] for k in ("nominal", "ordinal", "continuous")}
    kept = {k: v and {c: v[c] for c in v if c in rows} for k, v in columns.items()}
    model.set_params(**kept, random_state=0)
    weights = most * np.arange(60) % 4

    def learned():
        texts = []
        for search in ("exact", "metropolis"):
            model.set_params(search=search, n_steps=200, n_chains=1)
            model.fit(rows, sample_weight=weights)
            texts += [json.dumps(model.to_record()), model.score_samples(rows).tolist()]
        return [*texts, model.run_.traces["log_density"].tolist()]

    monkeypatch.setattr(_jit._Kernel, "_is_worth_interpreting", lambda *_: False)
    compiled, calls = learned(), []
    monkeypatch.setattr(_jit._Kernel, "_is_worth_interpreting", lambda _, steps: steps < np.inf)
    monkeypatch.setattr(_jit._Kernel, "_is_compiled", lambda kernel: calls.append(kernel))
    assert learned() == compiled
    names = {kernel.__name__ for kernel in calls}
    assert {"count_rows", "load", "evaluate_boxes", "choose_splits"} <= names


def test_kernels_that_are_called_often_are_compiled_after_all(monkeypatch, tmp_path):
    """What is interpreted costs time, too: it adds up."""
    monkeypatch.setattr(_jit, "MOST_INTERPRETED", 250)
    monkeypatch.setattr(_jit, "_LEAST_INTERPRETED", 250)
    monkeypatch.setattr(_jit, "_SECONDS_OF_STEP", 1)
    seconds = itertools.count(0, 100)
    monkeypatch.setattr(_jit, "thread_time", lambda: next(seconds))
    path = tmp_path / "fresh.py"  # of which no kernel is on disk, from an earlier run
    path.write_text("def twice(x):\n    return 2 * x\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("fresh", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    twice = _jit.kernel(module.twice)
    for _ in range(4):
        with _jit.sparing(100):
            assert twice(2) == 4
    assert twice.n_interpreted == 200
    assert len(twice.signatures) == 1


def test_how_long_compiling_takes_is_told_by_the_code_of_all_helpers():
    """A kernel of a few lines that calls a hundred helpers would else be compiled at once."""
    from bayescascade.methods.density.trees.kernels import densities, sweep, trees

    if hasattr(sweep.sweep, "py_func"):  # not when the JIT is disabled
        helpers = _jit._helpers(sweep.sweep)
        assert {trees.log_density, densities.block_size} < helpers  # by its module, and indirectly
        assert _jit._helpers(sweep.count_levels) < helpers | {sweep.count_levels}


def test_interpreted_kernels_call_helpers_as_plain_python(monkeypatch):
    """Asking of each of a million helpers whether it is compiled took a third of a small fit."""
    from bayescascade.methods.density.trees.exact.kernels import terms

    if not hasattr(terms.list_log_splits, "py_func"):  # when the JIT is disabled
        return
    calls, call = [], _jit._Kernel.__call__
    monkeypatch.setattr(_jit._Kernel, "_is_worth_interpreting", lambda *_: True)
    monkeypatch.setattr(_jit._Kernel, "_is_compiled", lambda _: False)
    monkeypatch.setattr(_jit._Kernel, "__call__", lambda *args: calls.append(args) or call(*args))
    out = np.zeros((5, 2))
    terms.list_log_splits(2.0, 0.5, 1.0, out)  # calls helpers of two modules, and these others
    assert out[1:].all()
    assert len(calls) == 1


def test_what_interpreted_kernels_remember_is_what_they_would_return():
    """A log gamma that is kept of other numbers would change what is learned."""
    from bayescascade.methods.density.trees.exact.kernels import doubles

    if hasattr(doubles.log_gamma, "py_func"):  # not when the JIT is disabled
        function = doubles.log_gamma._python
        numbers = [(0.5, 0.0), (0.5, 1e-17), (3, 0.0), (3.0, 0.0), (40.25, 0.0)] * 2
        assert [function(*one) for one in numbers] == [
            function.__wrapped__(*one) for one in numbers
        ]
        assert function.cache_info().hits > 0


FIRST_FITS = """
from time import thread_time
import pandas as pd
from numba.core import event
from bayescascade import BranchCascade, LeafCascade
from bayescascade.base import jit

jit.thread_time = lambda: thread_time() / 8  # as on a quick machine, whatever else runs on this

rows = pd.read_csv("data/titanic.csv").drop(columns="survived")
with event.install_recorder("numba:compile") as compiled:
    for leaf in ("uniform", "independent"):
        LeafCascade(leaf=leaf, search="exact", random_state=0).fit(rows).score_samples(rows)
    model = BranchCascade(leaf="dependent", partitions="levels", search="exact", random_state=0)
    model.fit(rows).score_samples(rows)
print(sorted({event.data["dispatcher"].__name__ for _, event in compiled.buffer}))
"""


@pytest.mark.slow
def test_the_first_fit_of_a_small_table_compiles_nothing(tmp_path):
    """Who tries it would otherwise wait for half a minute, for a fit of a second."""
    assert printed(FIRST_FITS, tmp_path).split() == ["[]"]


INTERRUPTED = """
import random, signal
from contextlib import nullcontext
import numpy as np
from numba.core import event
from bayescascade.base import jit
from sudden.draws import draw

if {is_broken}:
    jit.deferred_handlers = nullcontext

class Stop(BaseException):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGALRM, stop)

class Compiling(event.Listener):
    def on_start(self, _):
        signal.raise_signal(signal.SIGALRM)

    def on_end(self, _):
        pass

class Unpacked(np.random.PCG64):
    @property
    def ctypes(self):
        signal.raise_signal(signal.SIGALRM)
        return super().ctypes

for own, is_told in ((np.random.PCG64, True), (Unpacked, False)):
    rng, twin = np.random.Generator(own(0)), np.random.default_rng(0)
    try:
        with event.install_listener("numba:compile", Compiling()) if is_told else nullcontext():
            draw(rng)
        raise SystemExit("no signal came")
    except Stop:  # after the call, which was made
        assert len(draw.signatures) == 1
        twin.random()
        states = [one.bit_generator.state["state"] for one in (rng, twin)]
        assert states[0] == states[1]
print("safe")

seconds, n_stopped = random.Random(0), 0
for seed in range(2000):
    rng = np.random.default_rng(seed)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds.uniform(1e-6, 3e-4))
        draw(rng)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except Stop:
        n_stopped += 1
assert n_stopped > 100
assert draw(np.random.default_rng(0)) == np.random.default_rng(0).random()
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("is_broken", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_interrupts_do_not_end_the_process(is_broken, tmp_path):
    """Ctrl-C must keep what was found, whenever it comes, also within numba."""
    (tmp_path / "sudden").mkdir()
    (tmp_path / "sudden/draws.py").write_text(
        "from bayescascade.base.jit import kernel\n\n"
        "@kernel\ndef draw(rng):\n    return rng.random()\n"
    )
    script = INTERRUPTED.format(is_broken=is_broken)
    done = printed(script, tmp_path / "cache", path=[tmp_path], must_end=False)
    assert ("safe" in done.stdout, done.returncode == 0) == (not is_broken,) * 2, done.stderr


def test_the_cache_is_where_it_is_said_to_be(tmp_path):
    """Who is asked to make a folder writable should not be sent to another one."""
    code = (
        "from pathlib import Path\n"
        "from bayescascade.base.kernel_cache import cache_folder\n"
        "from bayescascade.methods.density.trees.kernels import sweep\n"
        "used = getattr(sweep.score_rows, '_cache', None)\n"
        "print(cache_folder())\n"
        "print(used is None or Path(used.cache_path).is_relative_to(cache_folder()))"
    )
    assert printed(code).endswith("\nTrue\n")
    assert printed(code, tmp_path) == f"{tmp_path}\nTrue\n"
    assert printed(code, tmp_path, NUMBA_DISABLE_JIT="1") == "None\nTrue\n"


HOMELESS = """
import resource, stat, sys, tempfile, warnings
from pathlib import Path
{before}
from bayescascade.base.kernel_cache import cache_folder
from homeless.double import double

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(double(2.0), double(1), sum(double.stats.cache_hits.values()), cache_folder())
print([str(one.message) for one in told])
"""


@pytest.fixture
def homeless(tmp_path):
    """Return a function that calls a kernel that can be saved in no usual place.

    It returns the values, the number of kernels loaded, the folder of compiled code, and warnings.
    """
    (tmp_path / "homeless").mkdir()
    (tmp_path / "homeless/double.py").write_text(
        "from bayescascade.base.jit import kernel\n\n@kernel\ndef double(x):\n    return 2.0 * x\n"
    )
    (tmp_path / "homeless/__pycache__").write_text("")  # no folder, also for root

    def run(before="", **more):
        more = {"XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(tmp_path), **more}
        code = HOMELESS.format(before=before)
        values, warned = printed(code, path=[tmp_path], **more).splitlines()
        *numbers, n_hits, folder = values.split()
        return [float(number) for number in numbers], int(n_hits), folder, ast.literal_eval(warned)

    return run


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users")
def test_a_user_who_may_write_nothing_gets_a_temporary_cache(homeless, tmp_path):
    """Containers, cron and web servers have such users; a bare import was an error."""
    own = tmp_path / f"bayescascade-{os.getuid()}"
    values, n_hits, _, (warning,) = homeless()
    assert (values, n_hits) == ([4.0, 2.0], 0)
    assert f"saved in the temporary folder {own}: " in warning
    assert "set NUMBA_CACHE_DIR" in warning
    assert own.stat().st_mode & 0o077 == 0
    assert homeless()[1::2] == (2, [])
    own.chmod(0o777)  # code of others would be run
    values, n_hits, _, (warning,) = homeless()
    assert (values, n_hits) == ([4.0, 2.0], 0)
    assert warning.startswith("compiled code cannot be saved: no folder")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no limits")
def test_a_full_disk_under_the_cache_ends_nothing(homeless, tmp_path):
    """It is only a cache."""
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    values, n_hits, folder, (warning,) = homeless(full, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (values, n_hits, folder) == ([4.0, 2.0], 0, str(tmp_path / "cache"))
    assert warning.startswith(f"compiled code cannot be saved in {folder}: File too large. ")


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_full_disk_leaves_no_entry_of_former_code(is_broken, tmp_path, monkeypatch):
    """After an upgrade the former kernel would run as the new one: numba saves its entry first."""

    def index(stamp):
        return _FolderIndex(tmp_path, "kernel", stamp)

    def full(*_):
        raise OSError(28, "No space left on device")

    index("old").save("signature", "old code")
    assert index("old").load("signature") == "old code"
    save = IndexDataCacheFile.save if is_broken else _FolderIndex.save
    new = index("new")
    monkeypatch.setattr(new, "_save_data", full)
    with pytest.raises(OSError, match="No space"):
        save(new, "signature", "new code")
    assert (index("new").load("signature") == "old code") == is_broken


@pytest.mark.parametrize("ending", ["nbi", "1.nbc"])
def test_files_cut_short_are_no_cache(ending, tmp_path):
    """Compiling again takes a second; a traceback at each start until somebody finds the file."""
    index = _FolderIndex(tmp_path, "kernel", "stamp")
    index.save("signature", "code")
    path = tmp_path / f"kernel.{ending}"
    path.write_bytes(path.read_bytes()[:-3])
    assert index.load("signature") is None
    index.save("signature", "code")
    assert index.load("signature") == "code"
