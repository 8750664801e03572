#!/usr/bin/env python3
"""Tests of record_tests.py on made-up records: what --join takes and refuses. Needs Python alone."""
import json
import pathlib
import tempfile
import unittest

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


class Library(unittest.TestCase):
    def test_the_commit_is_left_out(self):
        self.assertEqual(record_tests.without_commit("libggm 0.1.0, commit 3f09e5135a68, CUDA 13.0 (80;90a-real), host kernels plain"),
                         "libggm 0.1.0, CUDA 13.0 (80;90a-real), host kernels plain")


if __name__ == "__main__":
    unittest.main()
