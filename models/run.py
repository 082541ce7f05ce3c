"""Check every model exhaustively and demand a counterexample from every broken variant."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MODELS = Path(__file__).resolve().parent
PARALLEL = 2
MEMORY_MIB = 6000
SOAK_MEMORY_MIB = 12000
DEPTH = 2_000_000
COUNTEREXAMPLE = re.compile(
    r"^pan:\d+: (?P<what>assertion violated .*|acceptance cycle.*)$", re.MULTILINE
)
STATES = re.compile(r"^\s*(?P<count>[\d.e+]+) states, stored", re.MULTILINE)
MEMORY = re.compile(r"^\s*(?P<mib>[\d.]+)\s+total actual memory usage", re.MULTILINE)
INCOMPLETE = ("max search depth too small", "out of memory", "memory limit", "Search not completed")


class Verdict(StrEnum):
    """What one check must end with, and what it did end with."""

    HOLDS = "holds"
    BREAKS = "counterexample"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One model with one set of definitions and the verdict it must give."""

    name: str
    model: str
    expected: Verdict
    defines: tuple[str, ...] = ()
    ltl: str | None = None
    soak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What Spin said about one configuration."""

    configuration: Configuration
    verdict: Verdict
    states: str
    mebibytes: str
    seconds: float
    detail: str

    @property
    def passed(self) -> bool:
        """Say whether the verdict is the expected one."""
        return self.verdict is self.configuration.expected


def holds(
    name: str, model: str, *defines: str, ltl: str | None = None, soak: bool = False
) -> Configuration:
    """Declare a configuration that must pass without an error."""
    return Configuration(
        name=name, model=model, expected=Verdict.HOLDS, defines=defines, ltl=ltl, soak=soak
    )


def breaks(name: str, model: str, *defines: str, ltl: str | None = None) -> Configuration:
    """Declare a broken variant that must give a counterexample."""
    return Configuration(name=name, model=model, expected=Verdict.BREAKS, defines=defines, ltl=ltl)


CLAIM = "claim_settlement.pml"
RING = "ring_reclaim.pml"
COMPLETION = "completion_rescue.pml"
MATERIALIZATION = "materialization.pml"
WORK = "work_permit.pml"

CONFIGURATIONS = (
    holds("claim-3x4", CLAIM, "PRODUCERS=3", "NUMBERS=4"),
    holds("claim-cap", CLAIM, "PRODUCERS=2", "NUMBERS=5", "HOLE_RANGES=1"),
    holds("claim-two-claimers", CLAIM, "CLAIMERS=2"),
    holds("claim-3x5", CLAIM, "PRODUCERS=3", "NUMBERS=5", soak=True),
    breaks("claim-look-before-lock", CLAIM, "LOOK_BEFORE_LOCK"),
    breaks("claim-newest-generation-only", CLAIM, "NEWEST_ONLY"),
    breaks("claim-no-reread", CLAIM, "NO_REREAD"),
    breaks("claim-drop-unsettled", CLAIM, "DROP_UNSETTLED"),
    breaks("claim-no-bump", CLAIM, "NO_BUMP"),
    breaks("claim-limit-ignored", CLAIM, "LIMIT_IGNORED"),
    breaks("claim-no-lane-lock", CLAIM, "NO_LANE_LOCK", "CLAIMERS=2"),
    holds("ring", RING),
    holds("ring-4-chapters", RING, "CHAPTERS=4"),
    holds("ring-3-slots", RING, "SLOTS=3", "CHAPTERS=4", soak=True),
    holds("ring-two-claimers", RING, "CLAIMERS=2"),
    holds("ring-frontier-may-return", RING, "NO_CLAIM_CHILD_LOCK", "FRONTIER_MAY_RETURN"),
    breaks("ring-no-claim-child-lock", RING, "NO_CLAIM_CHILD_LOCK"),
    breaks("ring-closer-checks-first", RING, "CLOSER_CHECKS_FIRST"),
    breaks("ring-prove-before-lock", RING, "PROVE_BEFORE_LOCK"),
    breaks("ring-no-save", RING, "NO_SAVE"),
    breaks("ring-no-lane-lock", RING, "NO_LANE_LOCK"),
    breaks("ring-enqueue-unchecked", RING, "ENQUEUE_UNCHECKED"),
    breaks("ring-head-before-look", RING, "HEAD_BEFORE_LOOK"),
    breaks("ring-rotate-by-tail", RING, "ROTATE_BY_TAIL"),
    breaks("ring-tail-late", RING, "TAIL_LATE"),
    breaks("ring-evacuate-unlocked", RING, "EVACUATE_UNLOCKED"),
    breaks("ring-state-head-before-lock", RING, "STATE_HEAD_BEFORE_LOCK", "CLAIMERS=2"),
    holds("completion", COMPLETION, ltl="together"),
    holds("completion-no-attempt-lock", COMPLETION, "NO_ATTEMPT_LOCK", ltl="together"),
    holds("completion-two-rescuers", COMPLETION, "RESCUERS=2", ltl="together"),
    holds("completion-ends", COMPLETION, "FINITE_ROLLBACKS", ltl="ends"),
    holds("completion-two-sessions", COMPLETION, "SESSIONS=2", ltl="together", soak=True),
    holds(
        "completion-3-attempts",
        COMPLETION,
        "ATTEMPTS=3",
        "NO_ATTEMPT_LOCK",
        ltl="together",
        soak=True,
    ),
    breaks("completion-rescue-without-key", COMPLETION, "RESCUE_WITHOUT_KEY", ltl="together"),
    breaks("completion-rescue-ignores-loss", COMPLETION, "RESCUE_IGNORES_CONFLICT", ltl="together"),
    breaks("completion-returns-false", COMPLETION, "RETURNS_FALSE", ltl="together"),
    breaks("completion-two-transactions", COMPLETION, "TWO_TRANSACTIONS", ltl="together"),
    breaks("completion-tail-unchecked", COMPLETION, "TAIL_UNCHECKED", ltl="together"),
    breaks("completion-unknown-is-failure", COMPLETION, "UNKNOWN_IS_FAILURE", ltl="together"),
    breaks("completion-unknown-is-completion", COMPLETION, "UNKNOWN_IS_COMPLETION", ltl="together"),
    breaks("completion-no-rescue", COMPLETION, "RESCUERS=0", "FINITE_ROLLBACKS", ltl="ends"),
    holds("lease", MATERIALIZATION, ltl="together"),
    holds("lease-two-batches", MATERIALIZATION, "BATCHES=2", "RESOLVERS=1", ltl="together"),
    breaks("lease-without-key", MATERIALIZATION, "WITHOUT_KEY", ltl="together"),
    breaks("lease-two-transactions", MATERIALIZATION, "TWO_TRANSACTIONS", ltl="together"),
    breaks("lease-same-statement", MATERIALIZATION, "SAME_STATEMENT", ltl="together"),
    breaks("lease-tail-unchecked", MATERIALIZATION, "TAIL_UNCHECKED", ltl="together"),
    breaks("lease-unseen", MATERIALIZATION, "LEASE_UNSEEN", ltl="together"),
    breaks("lease-resolved-twice", MATERIALIZATION, "RESOLVED_TWICE", ltl="together"),
    holds("work-unsafe", WORK),
    holds("work-safe", WORK, "SAFE=true"),
    holds("work-safe-5-attempts", WORK, "SAFE=true", "ATTEMPTS=5", soak=True),
    breaks("work-admit-again", WORK, "ADMIT_AGAIN"),
    breaks("work-recovery-is-proof", WORK, "RECOVERY_IS_PROOF"),
    breaks("work-claim-is-authority", WORK, "CLAIM_IS_AUTHORITY"),
    breaks("work-no-fence", WORK, "NO_FENCE"),
    breaks("work-cancel-is-proof", WORK, "CANCEL_IS_PROOF"),
    breaks("work-failure-is-final", WORK, "FAILURE_IS_FINAL"),
    breaks("work-unsafe-retries", WORK, "UNSAFE_RETRIES"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen configurations, print the table, return the exit status."""
    options = parse(arguments)
    missing = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
    if missing:
        print(
            f"models: {' and '.join(missing)} not found; install Spin 6.5 and gcc", file=sys.stderr
        )
        return 2
    chosen = choose(soak=options.soak, only=options.only)
    if not chosen:
        print(f"models: no configuration is named {options.only}; see --list", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(configuration.name for configuration in chosen))
        return 0
    if options.trace:
        return trace(chosen[0])
    return check_all(chosen)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="check one configuration")
    parser.add_argument("--soak", action="store_true", help="check the larger configurations too")
    parser.add_argument(
        "--trace", action="store_true", help="with --only: replay the counterexample"
    )
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args(arguments)
    if options.trace and options.only is None:
        parser.error("--trace needs --only NAME")
    return options


def choose(*, soak: bool, only: str | None) -> list[Configuration]:
    """Select by name, or everything that the size allows."""
    if only is not None:
        return [each for each in CONFIGURATIONS if each.name == only]
    return [each for each in CONFIGURATIONS if soak or not each.soak]


def check_all(chosen: Sequence[Configuration]) -> int:
    """Check in parallel and print one line for each as it ends in order."""
    print(f"{'configuration':<34} {'verdict':<15} {'states':>12} {'MiB':>7} {'seconds':>8}")
    with ThreadPoolExecutor(PARALLEL) as pool:
        results = []
        for result in pool.map(check, chosen):
            results.append(result)
            print(line(result), flush=True)
    failed = sum(not result.passed for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def line(result: Result) -> str:
    """Format one row of the table; a failure says what was expected."""
    row = (
        f"{result.configuration.name:<34} {result.verdict:<15} {result.states:>12} "
        f"{result.mebibytes:>7} {result.seconds:>8.1f}"
    )
    if result.passed:
        return row
    return f"{row}\n  FAILED: expected {result.configuration.expected}; {result.detail}"


def check(configuration: Configuration) -> Result:
    """Generate, compile and run one verifier in a directory of its own."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="models-") as directory:
        try:
            output = verify(configuration, Path(directory), search_switches(configuration))
        except subprocess.CalledProcessError as error:
            output = f"{error.cmd[0]} failed: {error.stdout}"
    return judge(configuration, output, time.monotonic() - started)


def search_switches(configuration: Configuration) -> list[str]:
    """Return how to search: for errors in states alone, or along whole runs as well."""
    return ["-DSAFETY"] if configuration.ltl is None else ["-DNFAIR=3"]


def verify(configuration: Configuration, directory: Path, search: Sequence[str]) -> str:
    """Return what the verifier printed."""
    generate = ["spin", *definitions(configuration), "-a", str(MODELS / configuration.model)]
    execute(generate, directory)
    memory = SOAK_MEMORY_MIB if configuration.soak else MEMORY_MIB
    switches = ["-DCOLLAPSE", "-DVECTORSZ=2048", f"-DMEMLIM={memory}", *search]
    # A counterexample comes at once, so its verifier is not worth optimizing.
    level = "-O2" if configuration.expected is Verdict.HOLDS else "-O0"
    execute(["gcc", level, "-w", *switches, "-o", "pan", "pan.c"], directory)
    formula = [] if configuration.ltl is None else ["-a", "-N", configuration.ltl]
    if configuration.ltl == "ends":
        formula.append("-f")
    return execute(["./pan", f"-m{DEPTH}", "-w22", *formula], directory, may_fail=True)


def definitions(configuration: Configuration) -> list[str]:
    """Return the definitions as Spin takes them."""
    return [f"-D{each}" for each in configuration.defines]


def execute(command: Sequence[str], directory: Path, *, may_fail: bool = False) -> str:
    """Run one tool and return its output, both streams in order."""
    done = subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=not may_fail,
    )
    killed = (
        f"\n{command[0]} was killed by signal {-done.returncode}" if done.returncode < 0 else ""
    )
    return done.stdout + killed


def judge(configuration: Configuration, output: str, seconds: float) -> Result:
    """Read the verdict; anything but a whole search or a counterexample is incomplete."""
    states, memory = STATES.search(output), MEMORY.search(output)
    verdict, detail = Verdict.INCOMPLETE, output.strip()[-400:]
    if found := COUNTEREXAMPLE.search(output):
        verdict, detail = Verdict.BREAKS, found["what"]
    elif "errors: 0" in output and not any(sign in output for sign in INCOMPLETE):
        verdict, detail = Verdict.HOLDS, "the search found no error"
    return Result(
        configuration=configuration,
        verdict=verdict,
        states=f"{int(float(states['count'])):,}" if states else "-",
        mebibytes=f"{float(memory['mib']):,.0f}" if memory else "-",
        seconds=seconds,
        detail=detail,
    )


def trace(configuration: Configuration) -> int:
    """Replay a counterexample; a search in breadth makes it a shortest one, but knows no LTL."""
    search = ["-DSAFETY", "-DBFS"] if configuration.ltl is None else search_switches(configuration)
    with tempfile.TemporaryDirectory(prefix="models-") as name:
        directory = Path(name)
        verify(configuration, directory, search)
        trail = directory / f"{configuration.model}.trail"
        if not trail.exists():
            print(f"models: {configuration.name} gave no counterexample", file=sys.stderr)
            return 1
        model = str(MODELS / configuration.model)
        replay = ["spin", *definitions(configuration), "-k", str(trail), "-p", "-g", "-l", model]
        print(execute(replay, directory, may_fail=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
