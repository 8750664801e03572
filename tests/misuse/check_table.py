#!/usr/bin/env python3
"""Fails for a field of a struct, or a parameter of a function, of ggm.h that has no row in the table of misuse.

Usage: tests/misuse/check_table.py PROGRAM [--header FILE]
PROGRAM is the built ggm_misuse_rows, which prints the table. Rows that name nothing of the header fail as well.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "abi"))
from header import PATH, Header  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--header", type=pathlib.Path, default=PATH)
    arguments = parser.parse_args()

    header = Header(arguments.header)
    fields = [f"{struct}.{field}" for struct, names in header.structs() for field in names]
    params = [f"{function}.{name}" for function, names in header.functions() for name in names]
    if not fields or not params:
        print(f"{arguments.header}: no structs or no prototypes found")
        return 1
    rows = collections.Counter()
    exempt = 0
    for line in subprocess.run([arguments.program], capture_output=True, text=True, check=True).stdout.splitlines():
        subject, _, status = line.split("\t")
        rows[subject] += 1
        exempt += status == "exempt"

    problems = [f"{name}: no row of misuse" for name in fields + params if name not in rows]
    problems += [f"{name}: a row of misuse names what the header does not have" for name in rows if name not in set(fields + params)]
    for problem in problems:
        print(problem)
    print(f"misuse table: {len(fields)} fields, {len(params)} parameters, {sum(rows.values()) - exempt} rows, "
          f"{exempt} exempt with a reason, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
