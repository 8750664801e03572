"""Handles, the log, errors, and the raw layer: create and destroy with an allocator, status strings, both forms of the last error."""
import copy
import ctypes
import gc
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import weakref

import numpy as np
from support import new_routing

import ggm
from ggm import raw

PACKAGE = pathlib.Path(ggm.__file__).resolve().parent


class Handles(unittest.TestCase):
    def test_info_of_the_host(self):
        with ggm.Handle("host", host_threads=2) as handle:
            self.assertEqual(handle.info.backend, ggm.Backend.HOST)
            self.assertTrue(handle.on_host)
            self.assertEqual((handle.info.device, handle.info.multiprocessors, handle.info.workspace_alignment), (0, 2, 256))
            self.assertIsInstance(handle.info.kernel_family, ggm.Kernels)
            self.assertIn("HOST", repr(handle))

    def test_backends_by_member_name_and_number(self):
        for backend in (ggm.Backend.HOST, "HOST", 2):
            with ggm.Handle(backend, kernel_family="host_plain") as handle:
                self.assertEqual(handle.info.kernel_family, ggm.Kernels.HOST_PLAIN)

    def test_the_current_device_is_ignored_by_the_host(self):
        with ggm.Handle("host", "current") as handle:
            self.assertEqual(handle.info.device, 0)

    def test_refusals_of_create_come_with_status_and_text(self):
        with self.assertRaisesRegex(ggm.ArgumentError, "host_threads = 5000.*1024") as caught:
            ggm.Handle("host", host_threads=5000)
        self.assertEqual(caught.exception.status, ggm.Status.INVALID_VALUE)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIn("host_threads", caught.exception.text)
        self.assertEqual(caught.exception.text, ggm.last_error())
        with self.assertRaisesRegex(ggm.ArgumentError, "GGM_STATUS_INVALID_ENUM: params.backend = 77"):
            ggm.Handle(77)
        with ggm.Handle("host") as handle, self.assertRaisesRegex(ggm.UnsupportedError, "GGM_STATUS_UNSUPPORTED: .*compute_type") as caught:
            ggm.grouped_gemm_workspace_size(handle, ggm.GroupedGemmProblem(a_type="float32", b_type="float32", b_order="NK", compute_type="tf32"))
        self.assertEqual(caught.exception.status, ggm.Status.UNSUPPORTED)
        with self.assertRaisesRegex(ValueError, "backend = 'gpu'; known are 'auto', 'cuda', 'host'"):
            ggm.Handle("gpu")

    def test_errors_can_be_pickled(self):
        with self.assertRaises(ggm.Error) as caught:
            ggm.Handle(77)
        for twin in (pickle.loads(pickle.dumps(caught.exception)), copy.copy(caught.exception)):
            self.assertEqual((type(twin), str(twin), twin.status), (ggm.ArgumentError, str(caught.exception), caught.exception.status))

    def test_a_closed_handle_is_refused_and_closing_twice_does_no_harm(self):
        handle = ggm.Handle("host")
        handle.close()
        handle.close()
        self.assertIn("closed", repr(handle))
        with self.assertRaises(ggm.Error) as caught:
            ggm.route(handle, np.zeros((1, 1), np.int32), new_routing(1, 1, 1))
        self.assertEqual(caught.exception.status, ggm.Status.INVALID_HANDLE)

    def test_close_is_refused_while_a_call_is_inside(self):
        handle = ggm.Handle("host")
        with handle.in_use():
            with self.assertRaisesRegex(RuntimeError, "in use: 1 calls"):
                handle.close()
        handle.close()

    def test_the_collector_frees_a_handle_and_its_log(self):
        class Log:
            def __call__(self, level, line):
                pass

        log = Log()
        gone = weakref.ref(log)
        handle = ggm.Handle("host", log=log, log_level="trace")
        del log
        gc.collect()
        self.assertIsNotNone(gone(), "the handle keeps its log")
        del handle
        gc.collect()
        self.assertIsNone(gone())

    def test_close_frees_at_once(self):
        log = unittest.mock.Mock()
        gone = weakref.ref(log)
        handle = ggm.Handle("host", log=log)
        del log
        handle.close()
        gc.collect()
        self.assertIsNone(gone(), "the library has given the log back")

    def test_a_child_and_the_end_of_a_process_do_without_the_other_threads(self):
        code = """
import os, threading, numpy as np, ggm
handle = ggm.Handle("host", host_threads=8)
ids, routing = np.zeros((1000, 2), np.int32), ggm.Routing(np.zeros(2, np.int32), np.zeros(2000, np.int32), np.zeros((1000, 2), np.int32))
child = os.fork()
if child == 0:
    ggm.route(handle, ids, routing)  # a child has no workers, and its handle may be used and freed
    handle.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
def work():
    while True:
        ggm.route(handle, ids, routing)
threading.Thread(target=work, daemon=True).start()
ggm.route(handle, ids, routing)
"""
        # Newer Pythons warn of a fork beside threads, of which the library has some.
        result = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], capture_output=True, text=True, timeout=60,
                                env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
        self.assertEqual((result.returncode, result.stdout.strip(), result.stderr), (0, "0", ""))

    def test_the_log_gets_levels_and_lines(self):
        lines = []
        with ggm.Handle("host", log_level="plan", log=lambda level, line: lines.append((level, line))) as handle:
            ggm.route(handle, np.zeros((2, 1), np.int32), new_routing(2, 1, 1))
            self.assertTrue(any(level == ggm.LogLevel.PLAN and "route" in line for level, line in lines), lines)
            with self.assertRaises(ggm.Error):
                ggm.route(handle, np.zeros((2, 1), np.int32), new_routing(2, 1, 1), workspace=np.asarray(ggm.Workspace(9)))
            self.assertTrue(any(level == ggm.LogLevel.ERROR and "workspace_bytes = 9" in line for level, line in lines), lines)

    def test_what_a_log_raises_goes_no_further(self):
        def log(level, line):
            raise KeyError("of the log")

        seen, before = [], sys.unraisablehook
        sys.unraisablehook = lambda info: seen.append(info.exc_type)
        try:
            with ggm.Handle("host", log_level="plan", log=log) as handle:
                routing = ggm.route(handle, np.zeros((2, 1), np.int32), new_routing(2, 1, 1))
        finally:
            sys.unraisablehook = before
        self.assertIn(KeyError, seen)
        self.assertEqual(list(routing.group_offsets), [0, 2])

    def test_threads_share_a_handle_and_have_errors_of_their_own(self):
        faults = []

        def work(number):
            ids = np.full((64, 2), number % 4, np.int32)
            for _ in range(50):
                routing = ggm.route(handle, ids, new_routing(64, 2, 4))
                if list(np.diff(routing.group_offsets)) != [128 if e == number % 4 else 0 for e in range(4)]:
                    faults.append(f"thread {number}: {routing.group_offsets}")
                try:
                    ggm.route_workspace_size(handle, ggm.RouteProblem(tokens=-1 - number, top_k=1, experts=1, id_type="int32"))
                except ggm.Error as error:
                    if f"tokens = {-1 - number};" not in str(error):
                        faults.append(f"thread {number}: {error}")

        with ggm.Handle("host", host_threads=2) as handle:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(faults, [])


class RawLayer(unittest.TestCase):
    def test_create_with_an_allocator_and_destroy(self):
        taken = {}

        @raw.allocate_fn
        def allocate(user, size, alignment):
            memory = ctypes.create_string_buffer(size + alignment)
            address = -(-ctypes.addressof(memory) // alignment) * alignment
            taken[address] = (memory, size)
            return address

        @raw.deallocate_fn
        def deallocate(user, pointer, size):
            self.assertEqual(taken.pop(pointer)[1], size)

        params = raw.ggm_create_params_t(backend=raw.GGM_BACKEND_HOST, host_threads=1, allocate=allocate, deallocate=deallocate)
        handle = ctypes.c_void_p()
        self.assertEqual(raw.ggm_create(ctypes.byref(params), ctypes.byref(handle)), raw.GGM_STATUS_SUCCESS)
        self.assertTrue(taken)
        self.assertEqual(raw.ggm_destroy(handle), raw.GGM_STATUS_SUCCESS)
        self.assertEqual(taken, {})
        self.assertEqual(raw.ggm_destroy(None), raw.GGM_STATUS_SUCCESS)

    def test_the_last_error_as_a_pointer_and_as_a_copy(self):
        params = raw.ggm_create_params_t(backend=99)
        handle = ctypes.c_void_p(1)
        self.assertEqual(raw.ggm_create(ctypes.byref(params), ctypes.byref(handle)), raw.GGM_STATUS_INVALID_ENUM)
        self.assertIsNone(handle.value)
        text = raw.ggm_last_error()
        self.assertIn(b"backend = 99", text)
        self.assertEqual(raw.ggm_copy_last_error(None, 0), len(text))
        buffer = ctypes.create_string_buffer(8)
        self.assertEqual(raw.ggm_copy_last_error(buffer, 8), len(text))
        self.assertEqual(buffer.raw, text[:7] + b"\0")

    def test_strings(self):
        self.assertEqual(ggm.status_string(2001), "GGM_STATUS_NULL_POINTER")
        self.assertEqual(ggm.status_string(12345), "unknown status")
        self.assertIn(".".join(map(str, ggm.loaded_version())), ggm.build_info())

    def test_structs_refuse_what_ctypes_would_cut_or_lose(self):
        self.assertEqual(raw.ggm_moe_problem_t().struct_size, ctypes.sizeof(raw.ggm_moe_problem_t))
        with self.assertRaisesRegex(AttributeError, "ggm_moe_problem_t has no field tokns"):
            raw.ggm_moe_problem_t(tokns=3)
        with self.assertRaisesRegex(OverflowError, "sm_limit = 4294967296; it must be in -2147483648 .. 2147483647"):
            raw.ggm_moe_problem_t(sm_limit=2**32)
        with self.assertRaisesRegex(OverflowError, "tokens"):
            raw.ggm_moe_problem_t().tokens = 2**63
        with self.assertRaises(OverflowError):
            raw.ggm_route_tensors_t(ids=-1)
        with self.assertRaises(TypeError):
            raw.ggm_moe_problem_t(tokens=1.5)
        self.assertEqual(raw.ggm_moe_problem_t(tokens=np.int64(5)).tokens, 5)
        self.assertEqual(repr(raw.ggm_route_problem_t(tokens=5, top_k=2)), "ggm_route_problem_t(tokens=5, top_k=2)")


def in_a_process(code, **environment):
    """What `code` prints in an interpreter of its own; the environment is this one's with these changes (None: unset)."""
    changed = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    # From the root folder, because the current one is searched for modules first.
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/",
                            env={name: value for name, value in changed.items() if value is not None})
    return result.stdout.strip() + result.stderr.strip()


class FindingTheLibrary(unittest.TestCase):
    path = pathlib.Path(os.environ.get("GGM_LIBRARY") or ggm.raw.load()._name).resolve()
    code = "import ggm; print(ggm.Handle('host').loaded._name, ggm.loaded_version()[:2])"

    def test_by_the_environment(self):
        self.assertEqual(in_a_process(self.code, GGM_LIBRARY=str(self.path)), f"{self.path} (0, 1)")
        self.assertIn("no-such-file.so", in_a_process(self.code, GGM_LIBRARY="no-such-file.so"))

    def test_the_order_of_places(self):
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder) / "ggm"
            shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "*.so*"))
            (pathlib.Path(folder) / "libggm.so.0.1").symlink_to(self.path)
            known = {"GGM_LIBRARY": None, "GGM_LIB_DIR": None, "PYTHONPATH": folder, "LD_LIBRARY_PATH": None}
            self.assertIn("libggm was not found: GGM_LIBRARY and GGM_LIB_DIR are not set", in_a_process(self.code, **known))
            known["LD_LIBRARY_PATH"] = folder
            self.assertEqual(in_a_process(self.code, **known), "libggm.so.0.1 (0, 1)")
            carried = copied.resolve() / "lib" / "libggm.so"
            carried.parent.mkdir()
            carried.symlink_to(self.path)
            self.assertEqual(in_a_process(self.code, **known), f"{carried} (0, 1)")
            known["GGM_LIB_DIR"] = folder
            self.assertEqual(in_a_process(self.code, **known), f"{folder}/libggm.so.0.1 (0, 1)")
            known["GGM_LIBRARY"] = str(self.path)
            self.assertEqual(in_a_process(self.code, **known), f"{self.path} (0, 1)")

    def test_a_named_folder_without_the_library_is_an_error(self):
        printed = in_a_process(self.code, GGM_LIBRARY=None, GGM_LIB_DIR="/usr/include")
        self.assertIn("GGM_LIB_DIR = /usr/include; there is no libggm.so.0.1 or libggm.so in it", printed)

    def test_constants_and_structs_need_no_library(self):
        code = "from ggm import raw; print(raw.GGM_MAX_TOP_K, raw.ggm_info_t().struct_size)"
        self.assertEqual(in_a_process(code, GGM_LIBRARY="no-such-file.so"), "4096 32")

    def test_another_library_and_another_version_are_refused(self):
        self.assertIn("ImportError: libc.so.6 is not libggm", in_a_process(self.code, GGM_LIBRARY="libc.so.6"))
        code = "from ggm.raw import functions; functions.MINOR = 7; functions.load()"
        self.assertRegex(in_a_process(code), r"ImportError: .* is libggm 0\.1\.\d+; this package needs 0\.7\.x")

    def test_a_handle_on_a_named_library(self):
        with ggm.Handle("host", library=self.path) as handle:
            self.assertEqual(handle.loaded._name, str(self.path))


if __name__ == "__main__":
    unittest.main()
