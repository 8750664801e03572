"""Arrays of every kind become the same description; streams and workspaces of CUDA calls, on fakes of torch and of the library."""
import array
import ctypes
import sys
import unittest
from unittest import mock

import numpy as np
from support import CudaArray, FakeCudaHandle, FakeTorch, new_routing

import ggm
from ggm import dlpack, streams
from ggm.arrays import CUDA, HOST, describe


class OnlyDLPack:
    """A DLPack producer that is nothing else, over an array of numpy. It records the streams that consumers name."""

    def __init__(self, base, device=(1, 0), version=True):
        self.base, self.device, self.version, self.streams = base, device, version, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **arguments):
        self.streams.append(arguments.pop("stream", None))
        if not self.version and "max_version" in arguments:
            raise TypeError("an old producer")
        return self.base.__dlpack__(**arguments)


def brief(described):
    return described.address, described.shape, described.strides, described.dtype, described.memory, described.readonly


class HandMade:
    """A DLPack producer whose tensor is written field by field: strides absent, the data some bytes behind its base."""

    def __init__(self, base, byte_offset, **fields):
        self.base, self.shape = base, (ctypes.c_int64 * 1)(2)
        self.tensor = dlpack.DLTensor(data=base.ctypes.data, device_type=1, ndim=1, code=2, bits=32, lanes=1, byte_offset=byte_offset,
                                      shape=ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)))
        for field, value in fields.items():
            setattr(self.tensor, field, value)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self):
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Describing(unittest.TestCase):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    part = base[1:3, 1:4]

    def test_numpy(self):
        self.assertEqual(brief(describe("x", self.part)), (self.base.ctypes.data + 28, (2, 3), (6, 1), "float32", HOST, False))
        for name in ("float16", "float64", "int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"):
            self.assertEqual(describe("x", np.zeros(3, name)).dtype, name)

    def test_a_buffer(self):
        numbers = array.array("i", [1, 2, 3])
        self.assertEqual(brief(describe("x", numbers)), (numbers.buffer_info()[0], (3,), (1,), "int32", HOST, False))
        view = memoryview(self.part)
        self.assertEqual(brief(describe("x", view)), brief(describe("x", self.part)))
        frozen = b"\1\2\3\4"
        described = describe("x", frozen)
        self.assertEqual((described.readonly, described.dtype, ctypes.string_at(described.address, 4)), (True, "uint8", frozen))
        self.assertEqual(describe("x", memoryview(frozen).cast("f")).dtype, "float32")

    def test_dlpack_of_both_versions(self):
        for version in (True, False):
            self.assertEqual(brief(describe("x", OnlyDLPack(self.part, version=version))), brief(describe("x", self.part)))

    def test_a_dlpack_capsule_is_given_back(self):
        base = np.zeros(3, np.float32)
        before = sys.getrefcount(base)
        described = describe("x", OnlyDLPack(base))
        self.assertGreater(sys.getrefcount(base), before)
        del described
        self.assertEqual(sys.getrefcount(base), before)

    def test_a_dlpack_tensor_by_its_fields(self):
        base = np.zeros(8, np.float32)
        self.assertEqual(brief(describe("x", HandMade(base, 12))), (base.ctypes.data + 12, (2,), (1,), "float32", HOST, False))
        self.assertEqual(describe("x", HandMade(base, 0, code=4, bits=16)).dtype, "bfloat16")
        self.assertEqual(describe("x", HandMade(base, 0, code=6, bits=8)).dtype, "bool")
        for fields in ({"lanes": 2}, {"code": 5}, {"bits": 128}):
            with self.assertRaisesRegex(TypeError, "^x"):
                describe("x", HandMade(base, 0, **fields))

    def test_dlpack_read_only(self):
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            self.skipTest("numpy before 2.1 exports no read-only arrays by DLPack")
        frozen = np.zeros(3, np.float32)
        frozen.flags.writeable = False
        self.assertTrue(describe("x", OnlyDLPack(frozen)).readonly)

    def test_torch_by_its_members(self):
        torch = FakeTorch()
        tensor = torch.Tensor(self.part)
        self.assertEqual(brief(describe("x", tensor)), (self.part.ctypes.data, (2, 3), (6, 1), "float32", CUDA, False))
        self.assertEqual(describe("x", tensor).device, 0)
        bits = torch.Tensor(np.zeros((2, 3), np.uint16), "cpu", "torch.bfloat16")
        self.assertEqual((describe("x", bits).dtype, describe("x", bits).memory), ("bfloat16", HOST))
        with self.assertRaisesRegex(ValueError, "x lies on the device meta"):
            describe("x", torch.Tensor(self.part, "meta"))
        negative = torch.Tensor(self.part)
        negative.is_neg = lambda: True
        with self.assertRaisesRegex(ValueError, r"x has torch's negative bit, .* give x.resolve_neg\(\)"):
            describe("x", negative)

    def test_cuda_array_interface(self):
        self.assertEqual(brief(describe("x", CudaArray(self.part))), (self.part.ctypes.data, (2, 3), (6, 1), "float32", CUDA, False))

    def test_the_bfloat16_of_ml_dtypes_by_its_name(self):
        class Named:
            dtype = mock.Mock()
            __array_interface__ = dict(np.zeros((2, 2), "V2").__array_interface__)

        Named.dtype.name = "bfloat16"
        self.assertEqual(describe("x", Named()).dtype, "bfloat16")

    def test_refusals_name_the_argument(self):
        for obj, kind, text in (
            (3, TypeError, "x is a int, which is no array"),
            ([1.0], TypeError, "x is a list, which is no array"),
            (np.zeros(2, ">f4"), ValueError, "x has elements of the other byte order"),
            (np.zeros(2, complex), TypeError, "x holds"),
            (np.zeros(2, "f4,i2")["f0"], ValueError, "x has strides of .* no multiples of its elements of 4 bytes"),
            (memoryview(b"12").cast("c").toreadonly()[:0].cast("B"), None, None),
            (OnlyDLPack(self.base, device=(10, 0)), TypeError, "x: the DLPack device type 10 is not served"),
            (OnlyDLPack(np.zeros(2, complex)), TypeError, "x: the DLPack element type"),
        ):
            if kind is None:
                self.assertEqual(describe("x", obj).shape, (0,))
                continue
            with self.assertRaisesRegex(kind, text):
                describe("x", obj)

    def test_a_mask_is_refused(self):
        masked = CudaArray(self.base)
        masked.__cuda_array_interface__["mask"] = masked
        with self.assertRaisesRegex(ValueError, "x has a mask"):
            describe("x", masked)

    def test_packed(self):
        self.assertTrue(describe("x", self.base).packed)
        self.assertFalse(describe("x", self.part).packed)
        self.assertTrue(describe("x", self.base[2:3]).packed)
        self.assertTrue(describe("x", self.base[:0, 1:3]).packed)


class Streams(unittest.TestCase):
    def test_numbers_of_stream_objects(self):
        class Protocol:
            def __cuda_stream__(self):
                return 0, 11

        self.assertEqual([streams.number_of(s) for s in (None, 0, 7, FakeTorch.Stream(9), mock.Mock(spec=["ptr"], ptr=8), Protocol())],
                         [0, 0, 7, 9, 8, 11])
        with self.assertRaisesRegex(TypeError, "stream is a str"):
            streams.number_of("one")

    def test_the_stream_that_arrays_name(self):
        base = np.zeros(3, np.float32)
        self.assertEqual(streams.current({"x": CudaArray(base), "y": base}), 0)
        self.assertEqual(streams.current({"x": CudaArray(base, 5), "y": CudaArray(base)}), 5)
        with self.assertRaisesRegex(ValueError, "x is of the stream 0x5, y of 0x6"):
            streams.current({"x": CudaArray(base, 5), "y": CudaArray(base, 6)})
        with self.assertRaisesRegex(ValueError, "of x names the stream 0"):
            streams.current({"x": CudaArray(base, 0)})

    def test_torch_s_current_stream(self):
        torch = FakeTorch(current=9)
        with mock.patch.dict(sys.modules, torch=torch):
            base = np.zeros(3, np.float32)
            tensor = torch.Tensor(base)
            self.assertEqual(streams.current({"x": tensor}), 9)
            self.assertEqual(streams.current({"x": torch.Tensor(base, "cpu")}), 0)
            with self.assertRaisesRegex(ValueError, "stream"):
                streams.current({"x": tensor, "y": CudaArray(base, 5)})
            torch.current = torch.Stream(0)
            self.assertIn(streams.current({"x": tensor, "y": CudaArray(base, 1)}), (0, 1))  # both are the default stream


def cuda_route(handle, wrap, **arguments):
    """ggm.route on a faked GPU with arrays made by `wrap`."""
    ids = wrap(np.zeros((4, 2), np.int32))
    routing = ggm.Routing(*map(wrap, new_routing(4, 2, 3)))
    ggm.route(handle, ids, routing, **arguments)
    return handle.loaded.calls[-1], ids


class CudaCalls(unittest.TestCase):
    """A call on CUDA up to the library's door."""

    def test_problem_and_pointers(self):
        call, ids = cuda_route(FakeCudaHandle(), CudaArray)
        self.assertEqual(call.name, "ggm_route")
        self.assertEqual((call.problem.tokens, call.problem.top_k, call.problem.experts), (4, 2, 3))
        self.assertEqual((call.tensors.ids, call.workspace, call.workspace_bytes, call.stream), (ids.array.ctypes.data, None, 0, 0))

    def test_a_stream_given_goes_before_that_of_the_arrays(self):
        call, _ = cuda_route(FakeCudaHandle(), lambda a: CudaArray(a, 5), stream=6)
        self.assertEqual(call.stream, 6)
        call, _ = cuda_route(FakeCudaHandle(), lambda a: CudaArray(a, 5))
        self.assertEqual(call.stream, 5)

    def test_dlpack_producers_are_told_the_stream(self):
        for stream, told in ((7, 7), (None, dlpack.LEGACY_DEFAULT_STREAM)):
            call, ids = cuda_route(FakeCudaHandle(), lambda a: OnlyDLPack(a, (2, 0)), stream=stream)
            self.assertEqual((call.stream, ids.streams[-1]), (stream or 0, told))

    def test_a_workspace_for_the_call_comes_from_torch_on_its_stream(self):
        for current, given, expected in ((9, None, 9), (9, 4, 4), (9, 0, 0), (0, None, 0)):
            torch, handle = FakeTorch(current), FakeCudaHandle(512)
            with mock.patch.dict(sys.modules, torch=torch):
                call, _ = cuda_route(handle, torch.Tensor, stream=given)
            (stream, tensor), = torch.made
            self.assertEqual((stream, call.stream), (expected, expected))
            self.assertEqual((call.workspace, call.workspace_bytes), (tensor.data_ptr(), 512))
            self.assertEqual(torch.current.cuda_stream, current)

    def test_without_torch_the_caller_gives_the_workspace(self):
        with self.assertRaisesRegex(ValueError, "workspace: this call needs 512 bytes of device memory"):
            cuda_route(FakeCudaHandle(512), CudaArray)
        scratch = CudaArray(np.zeros(600, np.uint8))
        asked = []
        for given in (scratch, lambda size: asked.append(size) or scratch):
            call, _ = cuda_route(FakeCudaHandle(512), CudaArray, workspace=given)
            self.assertEqual((call.workspace, call.workspace_bytes), (scratch.array.ctypes.data, 600))
        self.assertEqual(asked, [512])
        cuda_route(FakeCudaHandle(0), CudaArray, workspace=lambda size: self.fail("nothing is needed"))

    def test_memory_and_device_are_checked(self):
        with self.assertRaisesRegex(ValueError, "ids lies in host memory; this handle works on CUDA memory"):
            cuda_route(FakeCudaHandle(), lambda a: a)
        with self.assertRaisesRegex(ValueError, "ids lies on the CUDA device 3; the handle is of device 0"):
            cuda_route(FakeCudaHandle(), lambda a: OnlyDLPack(a, (2, 3)))
        with self.assertRaisesRegex(ValueError, "workspace lies in host memory"):
            cuda_route(FakeCudaHandle(512), CudaArray, workspace=np.zeros(512, np.uint8))
        with self.assertRaisesRegex(ValueError, "workspace lies on the CUDA device 3; the handle is of device 0"):
            cuda_route(FakeCudaHandle(512), CudaArray, workspace=OnlyDLPack(np.zeros(512, np.uint8), (2, 3)))
        with ggm.Handle("host") as handle, self.assertRaisesRegex(ValueError, "ids lies in CUDA memory; this handle works on host memory"):
            ggm.route(handle, CudaArray(np.zeros((4, 2), np.int32)), new_routing(4, 2, 3))


class Workspaces(unittest.TestCase):
    problem = ggm.RouteProblem(tokens=4, top_k=2, experts=3, id_type="int32")

    def setUp(self):
        self.handle = ggm.Handle("host")
        self.addCleanup(self.handle.close)
        self.ids = np.array([[0, 1], [2, -1], [1, 1], [0, 2]], np.int32)
        self.size = ggm.route_workspace_size(self.handle, self.problem)

    def route(self, workspace):
        return ggm.route(self.handle, self.ids, new_routing(4, 2, 3), workspace=workspace).row_assignment.tolist()

    def test_of_the_caller(self):
        self.assertGreater(self.size, 0)
        space = ggm.Workspace(self.size)
        self.assertEqual(space.address % ggm.WORKSPACE_ALIGNMENT, 0)
        rows = [0, 6, 1, 4, 5, 2, 7, -1]
        for workspace in (None, space, space, np.asarray(ggm.Workspace(self.size + 100)), ggm.Workspace):
            self.assertEqual(self.route(workspace), rows)

    def test_refusals(self):
        with self.assertRaisesRegex(ggm.ArgumentError, "workspace_bytes") as caught:
            self.route(ggm.Workspace(self.size - 1))
        self.assertEqual(caught.exception.status, ggm.Status.WORKSPACE_TOO_SMALL)
        with self.assertRaises(ggm.ArgumentError) as caught:
            self.route(np.asarray(ggm.Workspace(self.size + 1))[1:])
        self.assertEqual(caught.exception.status, ggm.Status.MISALIGNED)
        frozen = np.asarray(ggm.Workspace(self.size))
        frozen.flags.writeable = False
        for workspace in (frozen, np.asarray(ggm.Workspace(2 * self.size))[::2]):
            with self.assertRaisesRegex(ValueError, "workspace must be writable and without gaps"):
                self.route(workspace)
        with self.assertRaisesRegex(TypeError, "workspace is a int, which is no array"):
            self.route(4096)


if __name__ == "__main__":
    unittest.main()
