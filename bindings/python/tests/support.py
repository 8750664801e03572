"""What the tests share: exact small numbers in every element type, a host handle, and fakes of what only a GPU has."""
import contextlib
import types

import numpy as np

import ggm

TYPES = ("float32", "bfloat16", "float16", "float64")
NUMPY = {"float32": np.float32, "bfloat16": np.uint16, "float16": np.float16, "float64": np.float64}
POISON = -77.0  # no result of a test is this


def small(shape, seed):
    """Integers of -2 .. 2, so that every sum in these tests is exact in every type."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.array([(seed + i * i * 7 + i * 13) % 5 - 2 for i in range(count)], np.float64).reshape(shape)


def encode(values, kind):
    """float64 values as an array of the type; refuses what would be rounded."""
    values = np.asarray(values, np.float64)
    if kind == "bfloat16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        made = (bits >> np.uint32(16)).astype(np.uint16)
    else:
        made = values.astype(NUMPY[kind])
    assert np.array_equal(decode(made, kind), values), f"the test's own numbers are not exact in {kind}"
    return made


def decode(array, kind):
    if kind == "bfloat16":
        return (np.ascontiguousarray(array).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.asarray(array, np.float64)


def poisoned(shape, kind):
    return encode(np.full(shape, POISON), kind)


def dtype_of(kind):
    """The argument dtype that arrays of this type need."""
    return "bfloat16" if kind == "bfloat16" else None


def expect(case, got, want, kind="float64"):
    """Every element the same number."""
    np.testing.assert_array_equal(decode(got, kind), np.asarray(want, np.float64), err_msg=str(case))


def new_routing(tokens, top_k, experts, max_rows=None, flat=False):
    """Poisoned arrays for ggm.route."""
    rows = tokens * top_k if max_rows is None else max_rows
    shape = (tokens * top_k,) if flat else (tokens, top_k)
    return ggm.Routing(*(np.full(s, -77, np.int32) for s in ((experts + 1,), (rows,), shape)))


def sorted_rows(ids, experts, first_expert=0):
    """[(expert, token, slot)] in the order of rows: the reference of routing."""
    found = []
    for t, slots in enumerate(ids):
        for j, expert in enumerate(slots):
            if 0 <= expert - first_expert < experts:
                found.append((int(expert) - first_expert, t, j))
    return sorted(found)


# ---- what only a GPU has -------------------------------------------------------------------------------------------------

class FakeLibrary:
    """Stands for the library on a machine with a GPU: records each call of an operation, and runs nothing."""

    def __init__(self, workspace_bytes):
        self.workspace_bytes, self.calls = workspace_bytes, []

    def __getattr__(self, name):
        def size(_, problem, bytes_):
            bytes_._obj.value = self.workspace_bytes
            return 0

        def operation(_, problem, tensors, workspace, workspace_bytes, stream):
            self.calls.append(types.SimpleNamespace(name=name, problem=problem._obj, tensors=tensors._obj, workspace=workspace,
                                                    workspace_bytes=workspace_bytes, stream=stream))
            return 0

        return size if name.endswith("_workspace_size") else operation


class FakeCudaHandle:
    """A handle on device 0 over a FakeLibrary."""

    on_host = False
    info = types.SimpleNamespace(device=0)

    def __init__(self, workspace_bytes=0):
        self.loaded = FakeLibrary(workspace_bytes)

    @contextlib.contextmanager
    def in_use(self):
        yield 1


class CudaArray:
    """An object with __cuda_array_interface__ and nothing else. Its memory is the host's; nothing here reads it."""

    def __init__(self, array, stream=None):
        self.array = array
        self.__cuda_array_interface__ = dict(array.__array_interface__, version=3, stream=stream)


class FakeTorch(types.ModuleType):
    """The few members of torch that the package touches."""

    uint8 = "torch.uint8"

    class Stream:
        def __init__(self, cuda_stream):
            self.cuda_stream = cuda_stream

    def __init__(self, current=0):
        super().__init__("torch")
        torch = self

        class Tensor:
            def __init__(self, array, device="cuda", dtype=None):
                self.array, self.shape, self.dtype = array, array.shape, dtype or f"torch.{array.dtype}"
                self.device = types.SimpleNamespace(type=device, index=0 if device == "cuda" else None)

            def data_ptr(self):
                return self.array.ctypes.data

            def stride(self):
                return tuple(s // self.array.itemsize for s in self.array.strides)

        self.Tensor, self.current, self.made = Tensor, self.Stream(current), []

        def empty(size, dtype, device):
            assert (dtype, device.type) == (torch.uint8, "cuda")
            tensor = Tensor(np.zeros(size, np.uint8))
            torch.made.append((torch.current.cuda_stream, tensor))
            return tensor

        @contextlib.contextmanager
        def use(stream):
            before, torch.current = torch.current, stream
            try:
                yield
            finally:
                torch.current = before

        self.empty = empty
        self.cuda = types.SimpleNamespace(
            current_stream=lambda device: torch.current, default_stream=lambda device: self.Stream(0),
            ExternalStream=lambda number, device: self.Stream(number), stream=use,
        )
