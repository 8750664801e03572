#!/usr/bin/env python3
"""Records the evidence of a GPU machine in bench/results/tests-<device>.json.

What it runs, on a build folder that has everything built (cmake/test.sh, or the release preset):
  1. every test labelled gpu or large, with GGM_REQUIRE_GPU=1, so that a skipped test fails
  2. the conformance suite once more from the PTX of compute_80 (CUDA_FORCE_PTX_JIT=1): the portable kernels as a card of the future
     runs them
  3. the tests of the Python package that run on the GPU, through torch: the golden file, ggm.torch
  4. compute-sanitizer's memcheck, racecheck, initcheck and synccheck over ggm_launch_all, which launches every kernel on memory
     that is fresh where it is not written (GGM_TEST_POISON=0), and says which kernels the tool saw

Usage: bench/record_tests.py BUILD [--gpus N] [--jobs N] [--limit SECONDS] [--output FILE] [--only tests,jit,python,sanitizers [--add]]
       bench/record_tests.py --join FILE ... [--output FILE]      stages that were recorded apart; needs neither the build nor a GPU
       bench/record_tests.py BUILD --one TEST [--only jit]        for debugging: shows what one test of CTest prints, writes no record
       bench/record_tests.py --write-manifest FILE      where the checkout is
       bench/record_tests.py BUILD --manifest FILE      on a copy of the files without .git
With --gpus N the stages run beside each other on N GPUs of one machine, each stage on one. A list in CUDA_VISIBLE_DEVICES is the one to take from.
But for --join and --one it refuses a checkout with changes in include, src, tests or bench (results apart), since the record names what was tested:
  source_id   first 12 hex digits of: git ls-files -s include src | sha256sum
  tests_id    the same of: git ls-files -s tests bench/*.*
Exit: 0 all passed, 1 something failed (the record is written all the same), 2 refused, 3 stopped by a signal.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# ggm_launch_all takes the first letters of a group; the groups run beside each other, since a tool slows one process a lot.
GROUPS = ("route", "permute", "gemm", "few", "array", "moe", "tiles", "hopper_rows_nk", "hopper_rows_kn", "hopper_k", "hopper_layers_ordered",
          "hopper_layers_two_step")
PATHS = ("include", "src", "tests", ":(glob)bench/*.*")


def say(text):
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def output(command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, **kwargs).stdout


# ---- commands with a limit ---------------------------------------------------------------------------------------------

RUNNING = set()  # the process groups that run() waits for, from several threads
STARTING = threading.RLock()  # held from a command's start until it is among them; never by the main thread but in stop()


def start(command, environment, cwd):
    with STARTING:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**os.environ, **environment}, cwd=cwd, start_new_session=True)
        RUNNING.add(process.pid)
        return process


def run(command, limit, environment, cwd=None):
    """(what the command wrote, its status). After `limit` seconds it and all that it started are killed, and its status is -1."""
    # From a thread of its own: Python calls stop() in the main thread between any two steps of it, also between a start and its entry.
    # Here it waits for the lock until both are done.
    with concurrent.futures.ThreadPoolExecutor(1) as starter:
        process = starter.submit(start, command, environment, cwd).result()
    try:
        text, _ = process.communicate(timeout=limit)
        return text, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return f"{text}\nstopped after {limit} s\n", -1
    finally:
        RUNNING.discard(process.pid)


def stop(*_):
    """Ends this program and all that it runs: what stayed behind would disturb whatever is measured next."""
    with STARTING:
        for group in list(RUNNING):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        os._exit(3)


# ---- what is tested -------------------------------------------------------------------------------------------------

class Refused(Exception):
    pass


def git_manifest():
    changed = output(["git", "status", "--porcelain", "--", "include", "src", "tests", "bench", ":!bench/results"])
    if changed:
        raise Refused("the checkout has changes, so a record could not name what was tested:\n" + changed)
    return output(["git", "ls-files", "-s", "--", *PATHS])


def check_manifest(text):
    """Every file of the manifest lies here with the content that git knows it by."""
    for line in text.splitlines():
        blob, path = line.split()[1], line.split("\t", 1)[1]
        data = (ROOT / path).read_bytes() if (ROOT / path).is_file() else b""
        if hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() != blob:
            raise Refused(f"{path} is not the file of the manifest")
    return text


def ids(manifest):
    """The manifest is in the order of `git ls-files -s`, so that hashing its lines is hashing that command's output."""
    def digest(*folders):
        lines = [line + "\n" for line in manifest.splitlines() if line.split("\t", 1)[1].startswith(folders)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]
    return {"source_id": digest("include/", "src/"), "tests_id": digest("bench/", "tests/")}


def visible_gpus(count):
    """What CUDA_VISIBLE_DEVICES is for each; a list that is set already is the one to take from."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    listed = given.split(",") if given else [str(i) for i in range(count)]
    if len(listed) < count:
        raise Refused(f"--gpus = {count}, but CUDA_VISIBLE_DEVICES = {given}")
    return listed[:count]


def device(gpus):
    """Of the machine. A record names one device, so `gpus` GPUs may not be of several kinds."""
    lines = output(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]).splitlines()
    if gpus > len(lines):
        raise Refused(f"--gpus = {gpus}, this machine has {len(lines)}")
    if gpus > 1 and len(set(lines)) > 1:
        raise Refused("the GPUs of this machine are not alike: " + "; ".join(lines))
    name, driver, capability = (part.strip() for part in lines[0].split(","))
    return {"device": name, "driver": driver, "compute_capability": capability}


def without_commit(build_info):
    """source_id says which files were built. The commit would be that of the folder they were built in, which may be a copy."""
    return re.sub(r" commit [^,]*,", "", build_info)


def library(build):
    import ctypes
    lib = ctypes.CDLL(str(next((build / "src").glob("libggm.so"))))
    lib.ggm_build_info.restype = ctypes.c_char_p
    return without_commit(lib.ggm_build_info().decode())


# ---- tests by CTest ----------------------------------------------------------------------------------------------------

LINE = re.compile(r"^\s*\d+/\d+ Test\s+#\d+: (.*?) \.{2,}\s*\**\s*(Passed|Skipped|Failed|Timeout|\S.*?)\s+([\d.]+) sec", re.M)


def run_ctest(build, selection, environment, limit, show=False):
    """[{name, verdict, seconds}] of the selected tests; prints the end of the output when something failed, with `show` all of it."""
    with tempfile.TemporaryDirectory() as scratch:
        junit = pathlib.Path(scratch) / "tests.xml"
        command = ["ctest", "--test-dir", str(build), *selection, "--output-junit", str(junit), "--output-on-failure", "--no-tests=error"]
        text, _ = run(command, limit, environment)
        tests = []
        if junit.exists():
            for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
                verdict = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}.get(case.get("status"), "failed")
                tests.append({"name": case.get("name"), "verdict": verdict, "seconds": round(float(case.get("time") or 0), 2)})
        else:
            for name, word, seconds in LINE.findall(text):
                verdict = {"Passed": "passed", "Skipped": "skipped"}.get(word, "failed")
                tests.append({"name": name, "verdict": verdict, "seconds": float(seconds)})
            tests.append({"name": "(all tests within the time limit)", "verdict": "failed", "seconds": limit})
    if show or any(test["verdict"] != "passed" for test in tests) or not tests:
        print(text if show else text[-6000:])
    return sorted(tests, key=lambda test: test["name"])


def counts(tests):
    return {verdict: sum(test["verdict"] == verdict for test in tests) for verdict in ("passed", "failed", "skipped")}


# What the tests need beside the choice of a GPU.
TESTS_ENVIRONMENT = {"GGM_REQUIRE_GPU": "1"}
JIT_ENVIRONMENT = {"GGM_REQUIRE_GPU": "1", "CUDA_FORCE_PTX_JIT": "1"}


def tests_stage(build, jobs, limit, gpu):
    # Tests that take gigabytes run two at a time, the others share the GPU by many processes.
    environment = {**TESTS_ENVIRONMENT, **gpu}
    tests = run_ctest(build, ["-L", "gpu", "-LE", "large", "-j", str(jobs)], environment, limit)
    tests += run_ctest(build, ["-L", "large", "-j", "2"], environment, limit)
    return {**counts(tests), "tests": tests}


def run_program(program, environment, limit):
    """The tests of one program in one process: [{name, verdict, seconds}]."""
    with tempfile.TemporaryDirectory() as scratch:
        junit = pathlib.Path(scratch) / "tests.xml"
        command = [program, "[gpu]~[large]", "-r", "junit", "-o", junit]
        text, status = run(command, limit, environment)
        tests = []
        if junit.exists() and junit.stat().st_size:
            for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
                failed = case.find("failure") is not None or case.find("error") is not None
                tests.append({"name": case.get("name"), "verdict": "failed" if failed else "passed", "seconds": round(float(case.get("time") or 0), 2)})
    if status != 0 or not tests:
        print(f"{program.name}: status {status}\n{text[-3000:]}")
        tests.append({"name": f"({program.name} ends well)", "verdict": "failed", "seconds": 0})
    return tests


def one_test(build, name, stage, limit, gpu):
    """The exit status of one test by its name in CTest, which are the names in a record, in the environment of its stage."""
    environment = {**(JIT_ENVIRONMENT if stage == "jit" else TESTS_ENVIRONMENT), **gpu}
    pattern = re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", name)
    tests = run_ctest(build, ["-R", f"^{pattern}$", "-V"], environment, limit, show=True)
    for test in tests:
        say(f"{test['verdict']}: {test['name']}")
    return 0 if tests and counts(tests)["passed"] == len(tests) else 1


def jit_stage(build, jobs, limit, gpu):
    # A process compiles the PTX of every kernel once, so the conformance programs run whole, beside each other.
    environment = {**JIT_ENVIRONMENT, **gpu}
    folder = build / "tests" / "conformance"
    programs = [folder / f"conformance_{name}" for name in ("products", "moe", "promises", "semantics", "coverage", "few")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        lists = list(pool.map(lambda program: run_program(program, environment, limit), programs))
    tests = sorted((test for part in lists for test in part), key=lambda test: test["name"])
    return {**counts(tests), "tests": tests}


# ---- the Python package ------------------------------------------------------------------------------------------------

def python_stage(build, gpu):
    package = ROOT / "bindings" / "python"
    environment = {"GGM_LIBRARY": str(build / "src" / "libggm.so"), "PYTHONPATH": f"{package}:{package / 'tests'}", **gpu}
    command = [sys.executable, "-m", "unittest", "-v", "test_golden.GoldenOnCuda", "test_torch.TorchOnCuda"]
    text, status = run(command, 300, environment, package / "tests")
    verdicts = {"ok": "passed", "FAIL": "failed", "ERROR": "failed", "skipped": "skipped"}
    tests = [{"name": f"{match.group(2)}.{match.group(1)}", "verdict": verdicts[match.group(3)], "seconds": None}
             for match in re.finditer(r"^(\w+) \((?:\w+\.)+?(\w+OnCuda)[.\w]*\).*?\.\.\. (?:.*\n)*?(ok|FAIL|ERROR|skipped)\b", text, re.M)]
    if status != 0 or not tests:
        print(text[-6000:])
        tests.append({"name": f"(the tests of the Python package end well, status {status})", "verdict": "failed", "seconds": None})
    return {**counts(tests), "tests": tests}


# ---- compute-sanitizer -------------------------------------------------------------------------------------------------

def find_sanitizer():
    for candidate in ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"):
        if shutil.which(candidate):
            return candidate
    return None


def kernels_of(text):
    return {match.group(1) for match in re.finditer(r"^kernel (.+) \d+$", text, re.M)}


def run_tool(sanitizer, tool, program, group, gpu):
    command = [sanitizer, "--tool", tool, "--error-exitcode", "99", "--print-limit", "10", program, "--only", group]
    started = time.monotonic()
    text, status = run(command, 300, {**TESTS_ENVIRONMENT, "GGM_TEST_POISON": "0", **gpu})
    summary = re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", text)
    return {"tool": tool, "group": group, "status": status, "seconds": time.monotonic() - started, "text": text,
            "errors": int(summary[-1]) if summary else None, "kernels": kernels_of(text)}


def sanitizer_stage(build, jobs, gpu):
    program = build / "tests" / "sanitizer" / "ggm_launch_all"
    sanitizer = find_sanitizer()
    if sanitizer is None:
        return {tool: {"verdict": "not run", "reason": "there is no compute-sanitizer here"} for tool in TOOLS}
    plain, _ = run([program], 300, {**TESTS_ENVIRONMENT, **gpu})
    expected = kernels_of(plain)
    result = {"program": "ggm_launch_all", "kernels_launched": len(expected), "kernels_not_launched": plain.count("NOT LAUNCHED")}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(lambda work: run_tool(sanitizer, *work), [(tool, program, group, gpu) for tool in TOOLS for group in GROUPS]))
    for tool in TOOLS:
        of_tool = [one for one in runs if one["tool"] == tool]
        seen = set().union(*(one["kernels"] for one in of_tool))
        missing = sorted(expected - seen)
        unknown = [one["group"] for one in of_tool if one["errors"] is None]
        errors = sum(one["errors"] or 0 for one in of_tool)
        clean = not missing and not unknown and errors == 0 and all(one["status"] == 0 for one in of_tool) and expected
        result[tool] = {"verdict": "clean" if clean else "failed", "errors": errors, "kernels_seen": sorted(seen),
                        "kernels_missing": missing, "groups_without_summary": unknown,
                        "seconds": round(sum(one["seconds"] for one in of_tool), 1)}
        for one in of_tool:
            if one["status"] != 0 or one["errors"] is None:
                say(f"{tool} {one['group']}: status {one['status']}, errors {one['errors']}")
                lines = [line for line in one["text"].splitlines() if not line.startswith("kernel ")]
                print("\n".join(lines[:60]))
        if not clean:
            reasons = [line for one in of_tool for line in one["text"].splitlines() if "not supported" in line]
            if reasons:
                result[tool]["reason"] = reasons[0]
    return result


# ---- main --------------------------------------------------------------------------------------------------------------

STAGES = {"tests": "tests", "jit": "ptx_jit", "python": "python", "sanitizers": "sanitizers"}  # the key that each has in a record
SAME = ("source_id", "tests_id", "device", "driver", "compute_capability", "library")  # in all parts of a record


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, help="GPUs that the stages are dealt out to; without it the environment says which are seen")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1), help="of each stage")
    parser.add_argument("--limit", type=int, default=600, help="seconds for the tests, and for those from PTX; what is not done then has failed")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(STAGES), help="stages to run; a record wants all")
    parser.add_argument("--add", action="store_true", help="add these stages to the record of the same sources and device in --output")
    parser.add_argument("--join", nargs="+", type=pathlib.Path, metavar="FILE",
                        help="runs nothing: records of the same sources and device, which have each stage once together, become one")
    parser.add_argument("--one", metavar="TEST", help="run the test of this name alone, with --only jit from PTX, and write nothing")
    parser.add_argument("--manifest", type=pathlib.Path)
    parser.add_argument("--write-manifest", type=pathlib.Path)
    arguments = parser.parse_args(words)
    if arguments.build is None and arguments.write_manifest is None and arguments.join is None:
        parser.error("name the build folder")
    arguments.only = arguments.only.split(",")
    unknown = set(arguments.only) - set(STAGES)
    if unknown or (arguments.gpus is not None and arguments.gpus < 1):
        parser.error(f"--only = {','.join(arguments.only)}, --gpus = {arguments.gpus}: stages are {' '.join(STAGES)}, at least one GPU")
    if arguments.add and not arguments.output:
        parser.error("--add wants the record in --output")
    if arguments.one is not None:
        arguments.only = ["tests"] if arguments.only == list(STAGES) else arguments.only
        if arguments.only not in (["tests"], ["jit"]):
            parser.error("--one runs a test of the stage tests, or with --only jit one from PTX")
        if arguments.output or arguments.add or arguments.join or (arguments.gpus or 1) > 1:
            parser.error("--one writes no record, and takes one GPU: neither --output, --add, --join nor more of --gpus")
    return arguments


def of_the_same(path, record, expected):
    for key in SAME:
        if record.get(key) != expected.get(key):
            raise Refused(f"{path} is of {key} {record.get(key)}, not {expected.get(key)}")
    return record


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def join(paths):
    """One record out of those in `paths`, which are of the same sources, tests and device, have every stage, and none twice."""
    result, where, seconds, dates = {}, {}, 0, []
    for path in paths:
        part = read(path)
        absent = [key for key in (*SAME, "date", "seconds") if key not in part]
        if absent:
            raise Refused(f"{path} does not say its {', '.join(absent)}")
        of_the_same(path, part, result or part)
        for stage, key in STAGES.items():
            if key not in part:
                continue
            if stage in where:
                raise Refused(f"the stage {stage} is in {where[stage]} and in {path}")
            where[stage] = path
        seconds += part["seconds"]
        dates.append(part["date"])
        result.update(part)
    missing = [stage for stage in STAGES if stage not in where]
    if missing:
        raise Refused(f"no file has the stage {', '.join(missing)}")
    return {**result, "date": max(dates), "seconds": seconds}


def run_stages(runners, gpus):
    """{stage: what it returned}, each called with what the environment says of its GPU: as many at a time as there are GPUs, None for what is seen anyway."""
    free = queue.SimpleQueue()
    for gpu in gpus:
        free.put(gpu)

    def run_on_one(runner):
        gpu = free.get()
        try:
            return runner({} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu})
        finally:
            free.put(gpu)

    with concurrent.futures.ThreadPoolExecutor(len(gpus)) as pool:
        return dict(zip(runners, pool.map(run_on_one, runners.values())))


def test_stages(arguments):
    """The part of a record that the stages of --only are."""
    build, jobs, limit = arguments.build.resolve(), arguments.jobs, arguments.limit

    def told(stage, tests):
        say(f"{stage}: {counts(tests['tests'])}")
        return tests

    def tell_tools(found):
        for tool in TOOLS:
            say(f"{tool}: {found[tool]['verdict']}, {len(found[tool].get('kernels_seen', []))} kernels seen")
        return found

    # What takes longest begins first, which matters with several GPUs.
    runners = {"tests": lambda gpu: told("GPU tests", tests_stage(build, jobs, limit, gpu)),
               "sanitizers": lambda gpu: tell_tools(sanitizer_stage(build, jobs, gpu)),
               "jit": lambda gpu: told("from PTX", jit_stage(build, jobs, limit, gpu)),
               "python": lambda gpu: told("Python", python_stage(build, gpu))}
    runners = {stage: runner for stage, runner in runners.items() if stage in arguments.only}
    found = run_stages(runners, visible_gpus(arguments.gpus) if arguments.gpus else [None])
    result = found.pop("tests", {})
    result.update((key, found[stage]) for stage, key in STAGES.items() if stage in found)
    return result


def record(arguments):
    if arguments.join:
        result = join(arguments.join)
    else:
        manifest = check_manifest(arguments.manifest.read_text(encoding="utf-8")) if arguments.manifest else git_manifest()
        result = {**ids(manifest), **device(arguments.gpus or 1), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "library": library(arguments.build.resolve())}
        if arguments.add:
            result = of_the_same(arguments.output, read(arguments.output), result)
    say(f"{result['device']}, source {result['source_id']}, tests {result['tests_id']}, {result['library']}")
    if not arguments.join:
        result.update(test_stages(arguments))
        result["seconds"] = result.get("seconds", 0) + round(time.monotonic() - START)
    short = re.sub(r"[^a-z0-9]+", "-", result["device"].lower().replace("nvidia", "")).strip("-")
    path = arguments.output or ROOT / "bench" / "results" / f"tests-{short}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    good = all(stage.get("failed", 0) + stage.get("skipped", 0) == 0 for stage in (result, result.get("ptx_jit", {}), result.get("python", {})))
    good = good and all(result["sanitizers"][tool]["verdict"] == "clean" for tool in TOOLS if "sanitizers" in result)
    say(f"{'all passed' if good else 'FAILED'}; written to {path}")
    return 0 if good else 1


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        if arguments.write_manifest:
            arguments.write_manifest.write_text(git_manifest(), encoding="utf-8")
            return 0
        if arguments.one is not None:
            gpu = {"CUDA_VISIBLE_DEVICES": visible_gpus(1)[0]} if arguments.gpus else {}
            return one_test(arguments.build.resolve(), arguments.one, arguments.only[0], arguments.limit, gpu)
        return record(arguments)
    except Refused as refusal:
        print(f"refused: {refusal}")
        return 2


START = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())
