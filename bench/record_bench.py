#!/usr/bin/env python3
"""Records the bench in bench/results, from committed sources only.

Usage: bench/record_bench.py BUILD [--sets main,paths,plan] [--gpus N] [--seconds S] [--folder DIR] [--manifest FILE] [--no-build]
       bench/record_bench.py BUILD --output FILE [--gpus N] [...] -- options of ggm_bench      a record of one's own
       bench/record_bench.py --write-manifest FILE      where the checkout is
BUILD holds bench/ggm_bench, built with GGM_BUILD_BENCH=ON. The sets:
  main   bench-h200.jsonl   every cell of the peers' file, bf16, with the baselines and the portable kernels beside it
  paths  paths-h200.jsonl   the other paths (PATHS of cells.py)
  plan   plan-h200.jsonl    the shapes of shapes12.json, the planned kernel beside each forced one
With --gpus N the cells are dealt out to N GPUs of one machine that work beside each other, each with S seconds in all (190). The
baselines are left out of a cell when the cells behind it would not fit into the set's share, and a cell that would begin after it is not measured.
What each program printed is in BUILD/bench/record-*.log.

On a copy of the files without .git, a manifest written in the checkout takes git's place: every file is compared with it. It refuses when
include, src, tests or bench (results apart) have changes. The records carry the source id:
  first 12 hex digits of: git ls-files -s include src | sha256sum
Exit: 0 all cells measured, 1 some were not, 2 refused.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from cells import path_options
from record_tests import Refused, check_manifest, ids, output, visible_gpus

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("include", "src", "tests", "bench", ":!bench/results")
# Share of the time, options of ggm_bench. A baseline with groups padded to the largest of a skewed routing is not worth more than half a second.
SETS = {
    "main": (0.65, ["--operations", "grouped,grouped_k,moe_forward,moe_backward", "--contender-seconds", "0.5"]),
    "paths": (0.27, [*path_options(), "--contenders", "ggm"]),
    "plan": (0.08, ["--shapes", "seeded", "--operations", "grouped,grouped_k,moe_forward", "--contenders", "rows"]),
}
FILES = {"main": "bench-h200.jsonl", "paths": "paths-h200.jsonl", "plan": "plan-h200.jsonl"}


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
    parser.add_argument("--sets", default="main,paths,plan")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=190, help="for each GPU, all sets together; 0: no limit")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--output", type=pathlib.Path, help="file of a record of one's own")
    parser.add_argument("--manifest", type=pathlib.Path)
    parser.add_argument("--no-build", action="store_true", help="trust that BUILD is up to date; by default it is built first")
    parser.add_argument("--write-manifest", type=pathlib.Path)
    arguments = parser.parse_args(own)
    if arguments.build is None and arguments.write_manifest is None:
        parser.error("name the build folder")
    if bool(options) != bool(arguments.output):
        parser.error("--output FILE and -- options of ggm_bench go together")
    unknown = set(arguments.sets.split(",")) - set(SETS)
    if unknown or arguments.gpus < 1:
        parser.error(f"--sets = {arguments.sets}, --gpus = {arguments.gpus}: sets are {' '.join(SETS)}, at least one GPU")
    return arguments, options


def jobs_of(arguments, options):
    """[(name, file, options)], in the order in which every GPU does them."""
    if options:
        return [("own", arguments.output, options)]
    names = arguments.sets.split(",")
    whole = sum(SETS[name][0] for name in names)
    jobs = []
    for name in names:
        share, words = SETS[name]
        seconds = arguments.seconds * share / whole
        jobs.append((name, arguments.folder / FILES[name], [*words, *(["--budget", f"{seconds:.0f}"] if seconds else [])]))
    return jobs


def run_jobs(program, jobs, gpu, part, parts, stamp, scratch):
    """One GPU's part of every job, one after the other. Returns the worst exit status."""
    worst = 0
    for name, _, options in jobs:
        log = program.parent / f"record-{name}-{part}.log"
        command = [str(program), *options, "--source-id", stamp, "--output", str(scratch / f"{name}-{part}.jsonl"),
                   "--peers", str(ROOT / "bench" / "peers-h200.csv")]
        if parts > 1:
            command += ["--part", f"{part}/{parts}"]
        started = time.monotonic()
        with open(log, "w", encoding="utf-8") as file:
            status = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
                                    env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu}).returncode
        lines = log.read_text(encoding="utf-8").splitlines()
        told = [line for line in lines if line.startswith(("FAILED", "ggm_bench:", "the device is"))]
        left_out = sum(" left out: " in line or ": no " in line for line in lines)
        print(f"{name} {part}/{parts} on GPU {gpu}: status {status}, {time.monotonic() - started:.0f} s, {left_out} contenders left out; "
              f"{lines[-1] if lines else 'nothing printed'}\n" + "".join(line + "\n" for line in told), end="", flush=True)
        worst = max(worst, abs(status))
    return worst


def join(parts, path):
    """The parts' lines in one file: bandwidths first, as in the record of one run."""
    lines = [line for part in parts if part.is_file() for line in part.read_text(encoding="utf-8").splitlines(keepends=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    first = '{"operation": "bandwidth"'
    path.write_text("".join(sorted(lines, key=lambda line: not line.startswith(first))), encoding="utf-8")
    print(f"{len(lines)} records written to {path}")


def measure(arguments, options):
    manifest = check_manifest(arguments.manifest.read_text(encoding="utf-8")) if arguments.manifest else git_manifest()
    program = arguments.build.resolve() / "bench" / "ggm_bench"
    if not arguments.no_build:  # what runs is made of these sources
        subprocess.run(["cmake", "--build", str(arguments.build), "--target", "ggm_bench"], cwd=ROOT, check=True)
    if not program.is_file():
        raise Refused(f"{program} is not there: build it with -DGGM_BUILD_BENCH=ON")
    jobs, stamp, gpus = jobs_of(arguments, options), ids(manifest)["source_id"], visible_gpus(arguments.gpus)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(gpus)) as pool:
        scratch = pathlib.Path(folder)
        work = [pool.submit(run_jobs, program, jobs, gpu, part, len(gpus), stamp, scratch) for part, gpu in enumerate(gpus, 1)]
        status = max(job.result() for job in work)
        for name, path, _ in jobs:
            join([scratch / f"{name}-{part}.jsonl" for part in range(1, len(gpus) + 1)], path)
    return min(status, 1)


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
