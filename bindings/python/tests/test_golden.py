"""Every call of tests/golden/golden.txt through ggm.raw, on the host backend and, where torch has a CUDA device, on that;
tests/golden/README.md has the format of the file."""
import ctypes
import pathlib
import unittest

import numpy as np
from support import POISON, decode, encode

import ggm
from ggm import raw

try:
    import torch
except ImportError:
    torch = None

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


class HostMemory:
    """Arrays where they are."""
    handle = dict(backend="host", host_threads=2)

    def address(self, array):
        return array.ctypes.data

    def workspace(self, size):
        scratch = ggm.Workspace(size)
        return scratch, scratch.address

    def fetch(self):
        pass


class CudaMemory:
    """A copy of each array on the device; fetch() brings all of them back."""
    handle = dict(backend="cuda")

    def __init__(self):
        self.copies = []

    def address(self, array):
        copy = torch.empty(max(array.nbytes, 1), dtype=torch.uint8, device="cuda")
        copy[:array.nbytes] = torch.from_numpy(array.reshape(-1).view(np.uint8))
        self.copies.append((array, copy))
        return copy.data_ptr()

    def workspace(self, size):
        scratch = torch.full((max(size, 1),), 255, dtype=torch.uint8, device="cuda")
        return scratch, scratch.data_ptr()

    def fetch(self):
        torch.cuda.synchronize()
        for array, copy in self.copies:
            array.reshape(-1).view(np.uint8)[:] = copy[:array.nbytes].cpu().numpy()


class Golden(unittest.TestCase):
    memory = HostMemory

    def test_every_call(self):
        seen = set()
        with ggm.Handle(**self.memory.handle) as handle:
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
        memory, groups, place = {}, {}, self.memory()
        for direction, field, kind, numbers in arrays:
            if direction == "in" or field not in memory:
                memory[field] = array_of(kind, numbers if direction == "in" else [99 if kind[0] == "u" else int(POISON)] * len(numbers))
        for field, array in memory.items():
            name, _, group = field.partition(".")
            self.assertTrue(hasattr(tensors, name), field)
            if group:
                groups.setdefault(name, []).append(place.address(array))
            else:
                setattr(tensors, name, place.address(array))
        addresses = {name: np.array(list_, np.uint64) for name, list_ in groups.items()}
        for name, array in addresses.items():
            setattr(tensors, name, place.address(array))
        size = ctypes.c_size_t()
        with handle.in_use() as pointer:
            query, call = getattr(raw, operation + "_workspace_size"), getattr(raw, operation)
            self.assertEqual(query(pointer, ctypes.byref(problem), ctypes.byref(size)), 0, ggm.last_error())
            scratch, address = place.workspace(size.value)  # kept until the results are here
            status = call(pointer, ctypes.byref(problem), ctypes.byref(tensors), address, size.value, None)
            self.assertEqual(status, 0, ggm.last_error())
            place.fetch()
            del scratch
        for direction, field, kind, numbers in arrays:
            if direction == "out":
                got = memory[field] if "int" in kind else decode(memory[field], kind)
                self.assertEqual(got.tolist(), numbers, field)


@unittest.skipUnless(torch is not None and torch.cuda.is_available(), "torch with a CUDA device is not here")
class GoldenOnCuda(Golden):
    memory = CudaMemory


if __name__ == "__main__":
    unittest.main()
