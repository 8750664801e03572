#!/usr/bin/env python3
"""Records the bench in bench/results/bench-h200.jsonl, from committed sources only.

Usage: bench/record_bench.py BUILD [--output FILE] [--manifest FILE] [--no-build] [-- options of ggm_bench]
       bench/record_bench.py --write-manifest FILE      where the checkout is
BUILD holds bench/ggm_bench, built with GGM_BUILD_BENCH=ON. Without options of its own it measures the cells that check.py asks for:
grouped, grouped_k, moe_forward and moe_backward in bf16. On a copy of the files without .git, a manifest written in the
checkout takes git's place: every file is compared with it.

It refuses when include, src, tests or bench (results apart) have changes. The records carry the source id:
  first 12 hex digits of: git ls-files -s include src | sha256sum
Exit: 0 all cells measured, 1 some were not, 2 refused.
"""
import argparse
import pathlib
import subprocess
import sys
import time

from record_tests import Refused, check_manifest, ids, output

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPERATIONS = "grouped,grouped_k,moe_forward,moe_backward"
FOLDERS = ("include", "src", "tests", "bench", ":!bench/results")


def git_manifest():
    changed = output(["git", "status", "--porcelain", "--", *FOLDERS])
    if changed:
        raise Refused("the checkout has changes, so a record could not name what was measured:\n" + changed)
    return output(["git", "ls-files", "-s", "--", *FOLDERS])


def parse():
    words = sys.argv[1:]
    own, options = (words[:words.index("--")], words[words.index("--") + 1:]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench" / "results" / "bench-h200.jsonl")
    parser.add_argument("--manifest", type=pathlib.Path)
    parser.add_argument("--no-build", action="store_true", help="trust that BUILD is up to date; by default it is built first")
    parser.add_argument("--write-manifest", type=pathlib.Path)
    arguments = parser.parse_args(own)
    if arguments.build is None and arguments.write_manifest is None:
        parser.error("name the build folder")
    return arguments, options


def measure(arguments, options):
    manifest = check_manifest(arguments.manifest.read_text(encoding="utf-8")) if arguments.manifest else git_manifest()
    program = arguments.build.resolve() / "bench" / "ggm_bench"
    if not arguments.no_build:  # what runs is made of these sources
        subprocess.run(["cmake", "--build", str(arguments.build), "--target", "ggm_bench"], cwd=ROOT, check=True)
    if not program.is_file():
        raise Refused(f"{program} is not there: build it with -DGGM_BUILD_BENCH=ON")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    if not any(option == "--operations" for option in options):
        options = ["--operations", OPERATIONS, *options]
    command = [str(program), *options, "--source-id", ids(manifest)["source_id"], "--output", str(arguments.output),
               "--peers", str(ROOT / "bench" / "peers-h200.csv")]
    started = time.monotonic()
    status = subprocess.run(command, cwd=ROOT).returncode
    print(f"{time.monotonic() - started:.0f} s, written to {arguments.output}")
    return status


def main():
    arguments, options = parse()
    try:
        if arguments.write_manifest:
            arguments.write_manifest.write_text(git_manifest(), encoding="utf-8")
            return 0
        return measure(arguments, options)
    except Refused as refusal:
        print(f"refused: {refusal}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
