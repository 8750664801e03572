"""Every call of tests/golden/golden.txt through ggm.raw on the host backend; tests/golden/README.md has the format of the file."""
import ctypes
import pathlib
import unittest

import numpy as np
from support import POISON, decode, encode

import ggm
from ggm import raw

FILE = pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" / "golden.txt"


def array_of(kind, numbers):
    return np.array(numbers, np.int64).astype(kind) if "int" in kind else encode(np.array(numbers, np.float64), kind)


def cases():
    """(title, operation, {field: number}, [(direction, field, type, numbers)])"""
    title = operation = None
    for line in FILE.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        words = rest.split()
        if word == "case":
            title, problem, arrays = rest, {}, []
        elif word == "operation":
            operation = "ggm_" + rest
        elif word == "set":
            problem[words[0]] = int(words[1])
        elif word in ("in", "out"):
            numbers = list(map(int, words[3:]))
            assert len(numbers) == np.prod(list(map(int, words[2].split("x")))), line
            arrays.append((word, words[0], words[1], numbers))
        elif word == "end":
            yield title, operation, problem, arrays


class Golden(unittest.TestCase):
    def test_every_call(self):
        seen = set()
        with ggm.Handle("host", host_threads=2) as handle:
            for title, operation, problem, arrays in cases():
                seen.add(operation)
                with self.subTest(title):
                    self.run_case(handle, operation, problem, arrays)
        self.assertEqual(seen, set(raw.OPERATIONS), "each operation has a case")

    def run_case(self, handle, operation, fields, arrays):
        problem, tensors = (kind() for kind in raw.OPERATIONS[operation])
        for field, number in fields.items():
            self.assertTrue(hasattr(problem, field), field)
            setattr(problem, field, number)
        memory, groups = {}, {}
        for direction, field, kind, numbers in arrays:
            if direction == "in" or field not in memory:
                memory[field] = array_of(kind, numbers if direction == "in" else [99 if kind[0] == "u" else int(POISON)] * len(numbers))
        for field, array in memory.items():
            name, _, group = field.partition(".")
            self.assertTrue(hasattr(tensors, name), field)
            if group:
                groups.setdefault(name, []).append(array.ctypes.data)
            else:
                setattr(tensors, name, array.ctypes.data)
        addresses = {name: np.array(list_, np.uint64) for name, list_ in groups.items()}
        for name, array in addresses.items():
            setattr(tensors, name, array.ctypes.data)
        size = ctypes.c_size_t()
        with handle.in_use() as pointer:
            query, call = getattr(raw, operation + "_workspace_size"), getattr(raw, operation)
            self.assertEqual(query(pointer, ctypes.byref(problem), ctypes.byref(size)), 0, ggm.last_error())
            scratch = ggm.Workspace(size.value)
            status = call(pointer, ctypes.byref(problem), ctypes.byref(tensors), scratch.address, scratch.size, None)
            self.assertEqual(status, 0, ggm.last_error())
        for direction, field, kind, numbers in arrays:
            if direction == "out":
                got = memory[field] if "int" in kind else decode(memory[field], kind)
                self.assertEqual(got.tolist(), numbers, field)


if __name__ == "__main__":
    unittest.main()
