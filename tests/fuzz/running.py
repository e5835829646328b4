"""What fuzzers share: their command line, the loop over problems, and the summary at the end.

A fuzzer is a mapping of names to checks. A check draws one problem from a generator, notes its
ranges, and raises `Found` if a promise is broken; any other exception is a find, too. Problem k of
a seed is drawn from its own generator, so that it can be repeated alone.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np


class Found(Exception):
    """A promise is broken; says which, and how."""


@dataclass
class Problem:
    """One problem: where its randomness comes from, and what is noted of it."""

    rng: np.random.Generator
    noted: dict[str, float | str] = field(default_factory=dict)

    def note(self, **ranges: float | str | bool) -> None:
        """Note numbers, of which the summary prints ranges, and words, which it counts."""
        for name, value in ranges.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            self.noted[name] = value if is_number else str(value)


Check = Callable[[Problem], None]


@dataclass
class Summary:
    """What was tried, and what was found."""

    tried: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    numbers: dict[str, tuple[float, float]] = field(default_factory=dict)
    words: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, check: str, noted: Mapping[str, float | str]) -> None:
        """Count a problem and what was noted of it."""
        self.tried[check] += 1
        for name, value in noted.items():
            if isinstance(value, str):
                self.words.setdefault(name, Counter())[value] += 1
            else:
                low, high = self.numbers.get(name, (value, value))
                self.numbers[name] = min(low, value), max(high, value)

    @property
    def text(self) -> str:
        """Some lines for a person."""
        lines = [f"{check:<32}{n:>9,} problems" for check, n in sorted(self.tried.items())]
        lines += [f"{name}: {low:.6g} to {high:.6g}" for name, (low, high) in self.numbers.items()]
        for name, words in self.words.items():
            shown = [f"{word} {n:,}" for word, n in words.most_common(12)]
            lines.append(f"{name}: {', '.join(shown)}{', ...' if len(words) > 12 else ''}")
        total = sum(self.tried.values())
        return "\n".join([*lines, f"{total:,} problems tried, {len(self.found):,} found"])


def search(
    checks: Mapping[str, Check],
    seed: int,
    *,
    seconds: float = float("inf"),
    problems: Sequence[int] | None = None,
    say: Callable[[str], None] | None = None,
) -> Summary:
    """Try problems, the checks in turn, until the time is up or those asked for were tried.

    Parameters
    ----------
    checks : mapping of str to callable
    seed : int >= 0
    seconds : float > 0
        No problem begins later than this; one that has begun ends.
    problems : sequence of int, optional
        Numbers of the problems to try; by default 0, 1, 2, ...
    say : callable
        Prints a find when it is made, and progress.
    """
    say = say or _nothing
    summary, names = Summary(), list(checks)
    began = shown = time.monotonic()
    for number in count() if problems is None else problems:
        name = names[number % len(names)]
        if checks[name] is _nothing:
            continue
        problem = Problem(np.random.default_rng([seed, number]))
        try:
            checks[name](problem)
        except Exception as error:
            what = str(error) if isinstance(error, Found) else traceback.format_exc().strip()
            summary.found.append(f"{name}, --seed {seed} --problem {number}: {what}")
            say(f"found: {summary.found[-1]}\n  {problem.noted}")
        summary.add(name, problem.noted)
        now = time.monotonic()
        if now - shown > 10.0:
            shown = now
            tried = sum(summary.tried.values())
            say(f"{now - began:,.0f} s: {tried:,} problems, {len(summary.found):,} found")
        if now - began > seconds:
            break
    return summary


def main(checks: Mapping[str, Check], title: str) -> None:
    """Read the command line, search, print a summary; the exit code is 1 if anything was found.

    Parameters
    ----------
    checks : mapping of str to callable
    title : str
        What is searched for, for --help.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long; 5")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same problems; 0")
    parser.add_argument("--problem", type=int, help="try this one alone, as a find names it")
    parser.add_argument("--only", help="checks whose name contains this, all others left out")
    options = parser.parse_args()
    if options.only is not None and not any(options.only in name for name in checks):
        parser.error(f"--only must be part of one of {', '.join(checks)}, got {options.only}")
    chosen = {
        name: check if options.only is None or options.only in name else _nothing
        for name, check in checks.items()
    }
    summary = search(
        chosen,
        options.seed,
        seconds=60.0 * options.minutes,
        problems=None if options.problem is None else [options.problem],
        say=_say,
    )
    sys.stdout.write(f"seed {options.seed}, {options.minutes:g} minutes\n{summary.text}\n")
    sys.exit(1 if summary.found else 0)


def _nothing(*ignored: object) -> None:
    """Stand in for a check that was not chosen, so that numbers of problems stay theirs."""


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
