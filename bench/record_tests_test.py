#!/usr/bin/env python3
"""Tests of record_tests.py on made-up records: what --join takes and refuses; of how it runs and stops commands; of what it makes of a sanitizer's words. Needs Python and flock (util-linux)."""
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
import time
import unittest
import unittest.mock

import record_tests

MACHINE = {"source_id": "0123456789ab", "tests_id": "ba9876543210", "device": "made up", "driver": "1.2", "library": "libggm 0.1.0"}
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
            record_tests.join(paths, MACHINE)

    def test_stages_once_each_become_one_record(self):
        paths = [self.write("a", TESTS, seconds=1), self.write("b", SANITIZERS, PYTHON, seconds=20), self.write("c", JIT, seconds=300)]
        self.assertEqual(record_tests.join(paths, MACHINE), {**MACHINE, **TESTS, **JIT, **PYTHON, **SANITIZERS, "seconds": 321})
        paths = [self.write("a", TESTS, JIT), self.write("b", SANITIZERS, PYTHON)]
        self.assertEqual(record_tests.join(paths, MACHINE), {**MACHINE, **TESTS, **JIT, **PYTHON, **SANITIZERS, "seconds": 20})

    def test_a_missing_stage_is_refused(self):
        self.refused("no file has the stage python, sanitizers", self.write("a", TESTS), self.write("b", JIT))
        self.refused("no file has the stage tests, jit", self.write("b", SANITIZERS, PYTHON))

    def test_a_stage_in_two_files_is_refused(self):
        a, b = self.write("a", TESTS, JIT), self.write("b", JIT, SANITIZERS)
        self.refused(f"the stage jit is in {a} and in {b}", a, b)

    def test_other_sources_are_refused(self):
        other = self.write("b", JIT, SANITIZERS, source_id="another")
        self.refused("is of source_id another", self.write("a", TESTS), other)


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
            return record_tests.sanitizer_stage(self.build, 4)

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
