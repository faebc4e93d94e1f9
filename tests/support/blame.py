"""Tells whether failed tests fail because of the change.

    make blame                                                     the tests that failed in the last run
    python tests/support/blame.py tests/ops/test_map.py::test_one  these tests
    python tests/support/blame.py --base v0.1.0                    compared with another commit

Each test runs three times in this tree, with uncommitted changes, and three times in the commit that the change starts
from: the one that the branch shares with origin/main; on main itself, HEAD if there are uncommitted changes, else its
parent. A line says for each test how often it failed in both:

    new     it fails each time here, and never before; or it did not exist
    old     it fails each time in both
    flaky   it fails sometimes, in one of them at least
    gone    it does not fail here
"""

# ruff: noqa: T201  # a program that prints what it finds

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parent)]

import recording  # noqa: E402

RUNS = 3
GIT = shutil.which("git") or "git"


class Count(NamedTuple):
    """How often a test failed, and how often it ran."""

    failed: int
    runs: int

    @property
    def is_mixed(self) -> bool:
        return 0 < self.failed < self.runs


def verdict(here: Count, before: Count) -> str:
    """Return the word for a test."""
    if here.is_mixed or before.is_mixed:
        return "flaky"
    if not here.failed:
        return "gone"
    return "old" if before.failed else "new"


def _git(*arguments: str) -> str:
    return subprocess.run([GIT, *arguments], capture_output=True, text=True, check=False).stdout.strip()


def base() -> str:
    """Return the commit that the change starts from."""
    shared = _git("merge-base", "origin/main", "HEAD")
    if shared and shared != _git("rev-parse", "HEAD"):
        return shared
    return _git("rev-parse", "HEAD" if _git("status", "--porcelain", "--untracked-files=no") else "HEAD~1")


def last_failed(root: Path) -> list[str]:
    """Return the tests that failed in pytest's last run."""
    path = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(path.read_text())) if path.exists() else []


def counts(tree: Path, tests: list[str], folder: Path) -> dict[str, Count]:
    """Run tests of a tree several times."""
    failed, runs = dict.fromkeys(tests, 0), dict.fromkeys(tests, 0)
    for _ in range(RUNS):
        for test, has_failed in _run(tree, tests, folder).items():
            failed[test] += has_failed
            runs[test] += 1
    return {test: Count(failed[test], runs[test]) for test in tests}


def _run(tree: Path, tests: list[str], folder: Path) -> dict[str, bool]:
    """Return which tests fail. If one ends the process, the tests after it run in another one."""
    found: dict[str, bool] = {}
    while pending := [test for test in tests if test not in found]:
        paths = sorted({path for path in (test.split("::")[0] for test in pending) if (tree / path).exists()})
        outcomes, selection = folder / "outcomes", folder / "selection"
        outcomes.unlink(missing_ok=True)
        selection.write_text("\n".join(pending))
        if paths:
            options = ["-p", "recording", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "", "-q"]
            subprocess.run(
                [sys.executable, "-m", "pytest", *options, "--continue-on-collection-errors", *paths],
                cwd=tree,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(folder), str(tree / "src")]),
                    "PYTHONHASHSEED": "0",  # as in the gate
                    "EXPLORE": "1",  # tests in flaky.txt run, too
                    "RECORD": str(outcomes),
                    "RECORD_ONLY": str(selection),
                },
                capture_output=True,
                check=False,
            )
        new = {each["test"]: each for each in recording.read(outcomes) if each["test"] in pending}
        found |= {test: each["outcome"] == "failed" for test, each in new.items()}
        if all(each["text"] != recording.ENDED for each in new.values()):
            break
    return found


def main() -> int:
    """Compare. Return 1 if a failure is new."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="ids of tests (default: those that failed in the last run)")
    parser.add_argument("--base", help="the commit to compare with")
    given = parser.parse_args()
    root = Path(_git("rev-parse", "--show-toplevel"))
    tests = given.tests or last_failed(root)
    if not tests:
        print("No test failed in the last run. Name tests to compare them.")
        return 0
    commit = given.base or base()
    print(f"{len(tests)} tests, {RUNS} times here and in {_git('log', '-1', '--format=%h %s', commit)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="blame-") as temporary:
        folder, tree = Path(temporary), Path(temporary, "tree")
        shutil.copy(recording.__file__, folder)
        here = counts(root, tests, folder)
        subprocess.run([GIT, "worktree", "add", "--quiet", "--detach", tree, commit], cwd=root, check=True)
        try:
            if (tree / "hatch_build.py").exists():
                subprocess.run([sys.executable, "hatch_build.py"], cwd=tree, check=True)
            before = counts(tree, tests, folder)
        finally:
            subprocess.run([GIT, "worktree", "remove", "--force", tree], cwd=root, check=True)
    verdicts = {test: verdict(here[test], before[test]) for test in tests}
    for test in sorted(tests, key=lambda test: (verdicts[test], test)):
        mine, theirs = here[test], before[test]
        earlier = f"{theirs.failed}/{theirs.runs} before" if theirs.runs else "absent before"
        print(f"{verdicts[test]:6} {mine.failed}/{mine.runs} here, {earlier:13}  {test}")
    return int("new" in verdicts.values())


if __name__ == "__main__":
    sys.exit(main())
