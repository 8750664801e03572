"""Scratch memory of a call: the caller's, or made for the call."""
import ctypes

from . import raw
from .arrays import CUDA, HOST, describe
from .streams import torch_of


class Workspace:
    """Host memory of at least `size` bytes, aligned as the library asks: one for many calls on the host backend.

    It has a buffer interface of its own (`__array_interface__`, bytes). Threads that call at the same time need one each."""

    def __init__(self, size):
        self._memory = bytearray(size + raw.GGM_WORKSPACE_ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-start // raw.GGM_WORKSPACE_ALIGNMENT) * raw.GGM_WORKSPACE_ALIGNMENT
        self.size = size

    @property
    def __array_interface__(self):
        return {"version": 3, "shape": (self.size,), "typestr": "|u1", "data": (self.address, False)}


def take(given, size, handle, arrays, stream):
    """(address, bytes, owner) of the workspace of one call. given: None, an array of bytes of any type, or a callable that makes
    one from a number of bytes."""
    if given is None and size == 0:
        return None, 0, None
    if given is None:
        given = make(size, handle, arrays, stream)
    elif callable(given):
        if size == 0:
            return None, 0, None
        given = given(size)
    memory = HOST if handle.on_host else CUDA
    array = describe("workspace", given, stream)
    if array.memory != memory:
        raise ValueError(f"workspace lies in {array.memory} memory; this handle needs it in {memory} memory")
    if array.device is not None and array.device != handle.info.device:
        raise ValueError(f"workspace lies on the CUDA device {array.device}; the handle is of device {handle.info.device}")
    if array.readonly or not array.packed:
        raise ValueError("workspace must be writable and without gaps")
    return array.address, array.bytes, array


def make(size, handle, arrays, stream):
    """A workspace for this call alone. On CUDA it comes from torch's caching allocator, on the stream of the call, so that
    giving it back while the work runs is safe."""
    if handle.on_host:
        return Workspace(size)
    for obj in arrays.values():
        torch = torch_of(obj)
        if torch is not None and obj.device.type == "cuda":
            current = torch.cuda.current_stream(obj.device)
            if current.cuda_stream == stream:
                return torch.empty(size, dtype=torch.uint8, device=obj.device)
            other = torch.cuda.ExternalStream(stream, obj.device) if stream else torch.cuda.default_stream(obj.device)
            with torch.cuda.stream(other):
                return torch.empty(size, dtype=torch.uint8, device=obj.device)
    raise ValueError(
        f"workspace: this call needs {size} bytes of device memory, and none of its arrays is a torch tensor that could make it; "
        "give an array, or a function that makes one from a number of bytes"
    )
