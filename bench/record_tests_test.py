#!/usr/bin/env python3
"""Tests of record_tests.py on made-up records: what --join takes and refuses; of how it runs and stops commands, deals stages out to GPUs and
runs one test; of what it makes of a sanitizer's words. Needs Python, CTest and flock (util-linux)."""
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import record_tests

MACHINE = {"source_id": "0123456789ab", "tests_id": "ba9876543210", "device": "made up", "driver": "1.2", "compute_capability": "9.0",
           "library": "libggm 0.1.0", "date": "2026-01-02T03:04:05Z"}
TESTS = {"passed": 2, "failed": 0, "skipped": 0, "tests": [{"name": "a", "verdict": "passed"}]}
JIT = {"ptx_jit": {"passed": 1, "failed": 0, "skipped": 0, "tests": []}}
PYTHON = {"python": {"passed": 3, "failed": 0, "skipped": 0, "tests": []}}
SANITIZERS = {"sanitizers": {"memcheck": {"verdict": "clean"}}}


class Join(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, *stages, seconds=10, **other):
        path = self.folder / name
        record = {**MACHINE, "seconds": seconds, **other}
        for stage in stages:
            record.update(stage)
        path.write_text(json.dumps(record), encoding="utf-8")
        return path

    def refused(self, text, *paths):
        with self.assertRaisesRegex(record_tests.Refused, text):
            record_tests.join(paths)

    def test_stages_once_each_become_one_record(self):
        paths = [self.write("a", TESTS, seconds=1), self.write("b", SANITIZERS, PYTHON, seconds=20), self.write("c", JIT, seconds=300)]
        self.assertEqual(record_tests.join(paths), {**MACHINE, **TESTS, **JIT, **PYTHON, **SANITIZERS, "seconds": 321})
        paths = [self.write("a", TESTS, JIT), self.write("b", SANITIZERS, PYTHON)]
        self.assertEqual(record_tests.join(paths), {**MACHINE, **TESTS, **JIT, **PYTHON, **SANITIZERS, "seconds": 20})

    def test_a_missing_stage_is_refused(self):
        self.refused("no file has the stage python, sanitizers", self.write("a", TESTS), self.write("b", JIT))
        self.refused("no file has the stage tests, jit", self.write("b", SANITIZERS, PYTHON))

    def test_a_stage_in_two_files_is_refused(self):
        a, b = self.write("a", TESTS, JIT), self.write("b", JIT, SANITIZERS)
        self.refused(f"the stage jit is in {a} and in {b}", a, b)

    def test_parts_of_different_origin_are_refused(self):
        for key in ("source_id", "tests_id", "device", "driver", "compute_capability", "library"):
            with self.subTest(key):
                other = self.write("b", JIT, SANITIZERS, PYTHON, **{key: "another"})
                self.refused(f"{other} is of {key} another, not {MACHINE[key]}", self.write("a", TESTS), other)

    def test_a_file_that_does_not_say_its_origin_is_refused(self):
        nameless = self.folder / "c"
        nameless.write_text(json.dumps({key: value for key, value in {**MACHINE, **JIT, "seconds": 1}.items() if key != "driver"}), encoding="utf-8")
        self.refused("does not say its driver", nameless, self.write("a", TESTS, PYTHON, SANITIZERS))

    def test_the_date_is_that_of_the_last_part(self):
        paths = [self.write("a", TESTS, JIT, date="2026-05-06T07:08:09Z"), self.write("b", SANITIZERS, PYTHON)]
        self.assertEqual(record_tests.join(paths)["date"], "2026-05-06T07:08:09Z")

    def test_it_needs_neither_build_nor_gpu(self):
        self.write("a", TESTS, JIT)
        self.write("b", {"sanitizers": {tool: {"verdict": "clean"} for tool in record_tests.TOOLS}}, PYTHON)
        script = pathlib.Path(record_tests.__file__)
        (self.folder / "bin").mkdir()  # no nvidia-smi, and no git
        done = subprocess.run([sys.executable, script, "--join", "a", "b", "--output", "joined"], cwd=self.folder, capture_output=True, text=True,
                              check=False, env={**os.environ, "PATH": str(self.folder / "bin")})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        joined = json.loads((self.folder / "joined").read_text(encoding="utf-8"))
        self.assertEqual({key: joined[key] for key in MACHINE}, MACHINE)
        self.assertEqual([joined[key]["passed"] for key in ("ptx_jit", "python")], [1, 3])


# A command with a child of its own: both have the lock of the file in $1 until they end.
HOLDER = ["sh", "-c", 'exec 9>"$1" && flock 9 && echo held && { sleep 60 & wait; }', "holder"]


class Commands(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.locks = [pathlib.Path(scratch.name) / name for name in ("a", "b")]

    def held(self, lock):
        return lock.exists() and subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode != 0

    def wait_until(self, held):
        end = time.monotonic() + 30
        while any(self.held(lock) != held for lock in self.locks):
            self.assertLess(time.monotonic(), end, f"the locks never were {'taken' if held else 'free'}")
            time.sleep(0.02)

    def test_what_it_writes_and_its_status(self):
        command = ["sh", "-c", 'echo "$WORD"; echo wrong >&2; pwd; exit 7']
        self.assertEqual(record_tests.run(command, 30, {"WORD": "right"}, cwd="/"), ("right\nwrong\n/\n", 7))
        self.assertEqual(record_tests.RUNNING, set())

    def test_the_limit_ends_a_command_and_its_children(self):
        started = time.monotonic()
        text, status = record_tests.run([*HOLDER, self.locks[0]], 1, {})
        self.assertLess(time.monotonic() - started, 30)  # a child that lived on would keep the pipe open
        self.assertEqual((text, status), ("held\n\nstopped after 1 s\n", -1))
        self.wait_until(held=False)

    def test_a_signal_ends_all_that_runs(self):
        # As the recorder's stages do: commands from threads, while the main thread waits for them.
        program = ("import concurrent.futures, signal, sys, record_tests\n"
                   "signal.signal(signal.SIGTERM, record_tests.stop)\n"
                   "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n"
                   f"    list(pool.map(lambda lock: record_tests.run([*{HOLDER!r}, lock], 300, {{}}), sys.argv[1:]))\n")
        here = pathlib.Path(record_tests.__file__).parent
        recorder = subprocess.Popen([sys.executable, "-c", program, *self.locks], cwd=here, env={**os.environ, "PYTHONPATH": str(here)})
        self.addCleanup(recorder.kill)
        self.wait_until(held=True)
        recorder.send_signal(signal.SIGTERM)
        self.assertEqual(recorder.wait(timeout=30), 3)
        self.wait_until(held=False)


    def test_a_signal_between_a_start_and_its_entry_ends_the_command(self):
        # In the main thread, where Python calls the handler between any two steps.
        program = ("import os, signal, subprocess, sys, time, record_tests\n"
                   "signal.signal(signal.SIGTERM, record_tests.stop)\n"
                   "plain = subprocess.Popen\n"
                   "def interrupted(*arguments, **words):\n"
                   "    process = plain(*arguments, **words)\n"
                   "    while not os.path.exists(sys.argv[1] + '.held'): time.sleep(0.01)\n"
                   "    os.kill(os.getpid(), signal.SIGTERM)\n"
                   "    time.sleep(0.2)\n"
                   "    return process\n"
                   "subprocess.Popen = interrupted\n"
                   "record_tests.run(['sh', '-c', 'exec 9>\"$1\" && flock 9 && : >\"$1.held\" && sleep 60', 'holder', sys.argv[1]], 300, {})\n")
        here = pathlib.Path(record_tests.__file__).parent
        recorder = subprocess.run([sys.executable, "-c", program, self.locks[0]], cwd=here, env={**os.environ, "PYTHONPATH": str(here)}, check=False)
        self.assertEqual(recorder.returncode, 3)
        self.assertTrue(self.locks[0].with_suffix(".held").exists())
        self.wait_until(held=False)


class Gpus(unittest.TestCase):
    def visible(self, count, given):
        with unittest.mock.patch.dict(os.environ, {} if given is None else {"CUDA_VISIBLE_DEVICES": given}):
            if given is None:
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            return record_tests.visible_gpus(count)

    def test_a_list_that_is_set_is_taken_from(self):
        self.assertEqual(self.visible(2, None), ["0", "1"])
        self.assertEqual(self.visible(2, "3,5,7"), ["3", "5"])
        self.assertEqual(self.visible(1, "GPU-abc"), ["GPU-abc"])
        with self.assertRaisesRegex(record_tests.Refused, "--gpus = 2, but CUDA_VISIBLE_DEVICES = 3"):
            self.visible(2, "3")

    def test_stages_run_beside_each_other_and_never_two_on_one_gpu(self):
        both, seen = threading.Barrier(2, timeout=30), []

        def runner(gpu):
            gpu = gpu["CUDA_VISIBLE_DEVICES"]
            seen.append((gpu, "begins"))
            both.wait()  # breaks when they run one after the other
            seen.append((gpu, "ends"))
            return gpu

        found = record_tests.run_stages({name: runner for name in "abcd"}, ["3", "5"])
        self.assertEqual(sorted(found), list("abcd"))
        for gpu in ("3", "5"):
            self.assertEqual([word for which, word in seen if which == gpu], ["begins", "ends"] * 2)

    def test_without_a_choice_the_environment_stays_as_it_is(self):
        self.assertEqual(record_tests.run_stages({"a": lambda gpu: gpu, "b": lambda gpu: gpu}, [None]), {"a": {}, "b": {}})

    def device(self, gpus, *lines):
        with unittest.mock.patch.object(record_tests, "output", lambda command: "".join(line + "\n" for line in lines)):
            return record_tests.device(gpus)

    def test_gpus_of_several_kinds_are_refused(self):
        alike, other = "NVIDIA H200, 580.1, 9.0", "NVIDIA L4, 580.1, 8.9"
        self.assertEqual(self.device(2, alike, alike), {"device": "NVIDIA H200", "driver": "580.1", "compute_capability": "9.0"})
        self.assertEqual(self.device(1, alike, other)["device"], "NVIDIA H200")
        with self.assertRaisesRegex(record_tests.Refused, "not alike"):
            self.device(2, alike, other)
        with self.assertRaisesRegex(record_tests.Refused, "this machine has 1"):
            self.device(2, alike)


class One(unittest.TestCase):
    """A build folder with three tests: the first two differ in what a pattern takes for any letter."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        say = r'"sh" "-c" "echo REQUIRE=\$GGM_REQUIRE_GPU JIT=\$CUDA_FORCE_PTX_JIT GPU=\$CUDA_VISIBLE_DEVICES"'
        (self.build / "CTestTestfile.cmake").write_text(
            f'add_test([=[a (b): c+ x.y]=] {say})\nadd_test([=[a (b): c+ x_y]=] {say})\nadd_test(red "false")\n', encoding="utf-8")

    def run_one(self, *words):
        folder = pathlib.Path(record_tests.__file__).parent
        records = {path: path.stat().st_mtime_ns for path in (folder / "results").iterdir()}
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("GGM_", "CUDA_"))}
        done = subprocess.run([sys.executable, folder / "record_tests.py", self.build, *words], capture_output=True, text=True, check=False, env=environment)
        self.assertEqual({path: path.stat().st_mtime_ns for path in (folder / "results").iterdir()}, records)
        return done.returncode, done.stdout + done.stderr

    def test_it_runs_that_one_and_shows_what_it_prints(self):
        status, text = self.run_one("--one", "a (b): c+ x.y")
        self.assertEqual(status, 0, text)
        self.assertIn("REQUIRE=1 JIT= GPU=\n", text)
        self.assertIn("] passed: a (b): c+ x.y\n", text)
        self.assertNotIn("x_y", text)

    def test_from_ptx_and_on_a_gpu(self):
        status, text = self.run_one("--one", "a (b): c+ x_y", "--only", "jit", "--gpus", "1")
        self.assertEqual(status, 0, text)
        self.assertIn("REQUIRE=1 JIT=1 GPU=0\n", text)

    def test_a_failure_and_an_unknown_name_fail(self):
        self.assertEqual(self.run_one("--one", "red")[0], 1)
        self.assertEqual(self.run_one("--one", "blue")[0], 1)

    def test_it_goes_with_nothing_that_writes(self):
        for words in (["--output", "x"], ["--add", "--output", "x"], ["--join", "x"], ["--gpus", "2"], ["--only", "sanitizers"], ["--only", "test"]):
            with self.subTest(words):
                self.assertEqual(self.run_one("--one", "red", *words)[0], 2)


# What it is told to say: a line of MADE_UP for each tool and group, "tool group errors status", else no errors.
TOOL = """#!/bin/sh
tool=$2 group=$9
errors=0 status=0
while read -r a b c d; do [ "$a $b" = "$tool $group" ] && errors=$c status=$d; done < "$MADE_UP"
echo "kernel shared 3"
[ "$group" != route ] || echo "kernel of_route 1"
[ "$errors" = none ] || echo "========= ERROR SUMMARY: $errors errors"
exit "$status"
"""
PROGRAM = """#!/bin/sh
printf 'kernel shared 30\nkernel of_route 1\n'
"""


class Sanitizers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        self.script("tests/sanitizer/ggm_launch_all", PROGRAM)
        self.script("bin/compute-sanitizer", TOOL)
        changed = unittest.mock.patch.dict(os.environ, {"PATH": f"{self.build / 'bin'}:{os.environ['PATH']}", "MADE_UP": str(self.build / "made-up")})
        changed.start()
        self.addCleanup(changed.stop)

    def script(self, name, text):
        path = self.build / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def record(self, *made_up):
        (self.build / "made-up").write_text("".join(line + "\n" for line in made_up), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            return record_tests.sanitizer_stage(self.build, 4, {})

    def test_clean(self):
        record = self.record()
        self.assertEqual((record["kernels_launched"], record["kernels_not_launched"]), (2, 0))
        for tool in record_tests.TOOLS:
            self.assertEqual((record[tool]["verdict"], record[tool]["errors"], record[tool]["kernels_seen"]), ("clean", 0, ["of_route", "shared"]))

    def test_errors_of_the_groups_add_up_and_fail_their_tool_alone(self):
        record = self.record("racecheck moe 3 99", "racecheck hopper_k 4 99")
        self.assertEqual([record[tool]["verdict"] for tool in record_tests.TOOLS], ["clean", "failed", "clean", "clean"])
        self.assertEqual(record["racecheck"]["errors"], 7)

    def test_a_status_alone_and_a_missing_summary_fail(self):
        record = self.record("memcheck gemm 0 1", "initcheck array none 0")
        self.assertEqual([record[tool]["verdict"] for tool in record_tests.TOOLS], ["failed", "clean", "failed", "clean"])
        self.assertEqual(record["initcheck"]["groups_without_summary"], ["array"])

    def test_a_kernel_that_a_tool_has_not_seen_fails(self):
        self.script("tests/sanitizer/ggm_launch_all", PROGRAM + "echo kernel another 1\n")
        record = self.record()
        self.assertEqual((record["memcheck"]["verdict"], record["memcheck"]["kernels_missing"]), ("failed", ["another"]))

    def test_the_groups_are_those_of_the_program(self):
        sources = (record_tests.ROOT / "tests" / "sanitizer").glob("*.cpp")
        names = re.findall(r'selected\("(\w+)"\)', "".join(path.read_text(encoding="utf-8") for path in sources))
        self.assertEqual(sorted(names), sorted(record_tests.GROUPS))


class Library(unittest.TestCase):
    def test_the_commit_is_left_out(self):
        self.assertEqual(record_tests.without_commit("libggm 0.1.0, commit 3f09e5135a68, CUDA 13.0 (80;90a-real), host kernels plain"),
                         "libggm 0.1.0, CUDA 13.0 (80;90a-real), host kernels plain")


if __name__ == "__main__":
    unittest.main()
