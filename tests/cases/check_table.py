#!/usr/bin/env python3
"""Compares the table in README.md with the tests that exist.

usage: check_table.py README.md [--without-cuda] EXECUTABLE...

Every id of the table needs either tests or a line "waits for ...". A test is named in the table by its title without the
id and the backend, followed by the places where it runs: `columns past N are never stored` (host, gpu). It exists when an
executable lists "BR-030 columns past N are never stored: host" and "...: gpu". Every listed test needs a row that names
it. In a build without CUDA the tests that the table gives for the GPU alone are not expected, though allowed.
"""
import re
import subprocess
import sys

IDS_EXPECTED = 60
# Catch2 2.13 indents the wrapped title of a failed test by the place of ": ", and never ends when that is the whole line.
LONGEST_NAME = 72
ROW = re.compile(r"^\| (BR-\d{3}) \|(.*)\|\s*$")
TEST = re.compile(r"`([^`]+)` \(([a-z, ]+)\)")
TITLE = re.compile(r"^\s*(BR-\d{3}(?:, BR-\d{3}| BR-\d{3})*) (.+): (host|gpu)$")


def read_table(path):
    """id -> (set of (name, place), waits for something)"""
    rows, problems = {}, []
    for line in open(path, encoding="utf-8"):
        match = ROW.match(line.rstrip("\n"))
        if not match:
            continue
        case, rest = match.groups()
        if case in rows:
            problems.append(f"{case}: two rows")
        cell = rest.split("|")[-1]
        tests = set()
        for name, places in TEST.findall(cell):
            for place in places.split(","):
                tests.add((name, place.strip()))
        rows[case] = (tests, "waits for" in TEST.sub("", cell))
    return rows, problems


def list_tests(executable):
    """The titles that a Catch2 executable knows: version 2 by one option, version 3 by another."""
    for options in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        run = subprocess.run([executable] + options, capture_output=True, text=True, timeout=60)
        if "BR-" in run.stdout:
            return run.stdout.splitlines()
    return []


def main(arguments):
    without_cuda = "--without-cuda" in arguments
    paths = [a for a in arguments if a and not a.startswith("--")]
    if len(paths) < 2:
        sys.exit(__doc__)
    rows, problems = read_table(paths[0])
    if len(rows) != IDS_EXPECTED:
        problems.append(f"the table has {len(rows)} ids, {IDS_EXPECTED} are expected")

    found = {}
    for executable in paths[1:]:
        for title in list_tests(executable):
            match = TITLE.match(title.strip())
            if match:
                if len(title.strip()) - len(": host") > LONGEST_NAME:
                    problems.append(f'test "{title.strip()}": over {LONGEST_NAME} characters before the colon')
                for case in re.findall(r"BR-\d{3}", match.group(1)):
                    found.setdefault(case, set()).add((match.group(2), match.group(3)))
            elif "BR-" in title:
                problems.append(f'test "{title.strip()}": the title is not "BR-### name: host" or "...: gpu"')

    for case in sorted(set(rows) | set(found)):
        if case not in rows:
            problems.append(f"{case}: has tests, but no row in the table")
            continue
        tests, waits = rows[case]
        if not tests and not waits:
            problems.append(f'{case}: the row names no test and does not say "waits for"')
        listed = found.get(case, set())
        for name, place in sorted(tests - listed):
            if not (without_cuda and place == "gpu"):
                problems.append(f"{case}: the table names `{name}` ({place}), no executable has it")
        for name, place in sorted(listed - tests):
            problems.append(f"{case}: the test `{name}` ({place}) is not in the table")

    for problem in problems:
        print(problem)
    waiting = [case for case, (tests, waits) in sorted(rows.items()) if waits]
    print(f"{len(rows)} ids, {sum(len(t) for t in found.values())} tests listed, waiting (whole or in part): {', '.join(waiting)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
