"""What an array of any library is: its address, shape, strides, element type, and the memory that it lies in.

Asked in this order, and nothing is copied: torch tensors (data_ptr), __cuda_array_interface__, __array_interface__ (numpy),
__dlpack__, the buffer protocol. No array library is imported here.
"""
import ctypes
import sys
import typing

from . import dlpack

ITEM_BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1,
    "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
}
HOST, CUDA = "host", "CUDA"


class Array(typing.NamedTuple):
    """A described array. Strides count elements; owner keeps the memory alive while the description lives."""

    address: int
    shape: typing.Tuple[int, ...]
    strides: typing.Tuple[int, ...]
    dtype: str
    memory: str  # HOST or CUDA
    device: typing.Optional[int]  # CUDA ordinal where the array tells it
    readonly: bool
    owner: object

    @property
    def size(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def packed(self):
        """Whether the elements follow each other in the order of C. An axis of length 1 has no stride that matters."""
        return self.size == 0 or all(length == 1 or stride == step
                                     for length, stride, step in zip(self.shape, self.strides, packed_strides(self.shape)))

    @property
    def bytes(self):
        return self.size * ITEM_BYTES[self.dtype]


def packed_strides(shape):
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_torch(obj):
    """By its members, so that torch is not needed to find out."""
    return callable(getattr(obj, "data_ptr", None)) and callable(getattr(obj, "stride", None)) and hasattr(obj, "device")


def describe(name, obj, stream=None):
    """An Array. name: of the argument, for errors. stream: the CUDA stream that the work goes to, which a DLPack producer
    makes wait for its own. Raises TypeError for what is no array or has a foreign element type, ValueError for a byte order or
    stride that cannot be told to the library."""
    if is_torch(obj):
        return from_torch(name, obj)
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is not None:
        return from_interface(name, obj, interface, CUDA)
    interface = getattr(obj, "__array_interface__", None)
    if interface is not None and interface.get("data") is not None:
        return from_interface(name, obj, interface, HOST)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(name, obj, stream)
    try:
        view = memoryview(obj)
    except TypeError:
        raise TypeError(
            f"{name} is a {type(obj).__name__}, which is no array: it has neither data_ptr, __cuda_array_interface__, "
            "__array_interface__, __dlpack__ nor a buffer"
        ) from None
    return from_buffer(name, view)


def checked_dtype(name, dtype):
    if dtype not in ITEM_BYTES:
        raise TypeError(f"{name} holds {dtype}, which the library does not know")
    return dtype


def from_torch(name, obj):
    kind = obj.device.type
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"{name} lies on the device {kind}; only cpu and cuda are served")
    dtype = checked_dtype(name, str(obj.dtype).rpartition(".")[2])
    if getattr(obj, "is_neg", None) and obj.is_neg():
        raise ValueError(f"{name} has torch's negative bit, so its memory holds other values; give {name}.resolve_neg()")
    device = obj.device.index if kind == "cuda" else None
    return Array(obj.data_ptr(), tuple(obj.shape), tuple(obj.stride()), dtype, CUDA if kind == "cuda" else HOST, device, False, obj)


def from_interface(name, obj, interface, memory):
    """The dictionary of __array_interface__ and of __cuda_array_interface__."""
    if interface.get("mask") is not None:
        raise ValueError(f"{name} has a mask, which the library cannot honour")
    dtype = interface_dtype(name, obj, interface["typestr"])
    address, readonly = interface["data"]
    shape = tuple(interface["shape"])
    strides = element_strides(name, shape, interface.get("strides"), ITEM_BYTES[dtype])
    return Array(address or 0, shape, strides, dtype, memory, None, bool(readonly), (obj, interface))


def interface_dtype(name, obj, typestr):
    order, kind, size = typestr[0], typestr[1], typestr[2:]
    if order == (">" if sys.byteorder == "little" else "<"):
        raise ValueError(f"{name} has elements of the other byte order ({typestr})")
    # The bfloat16 of ml_dtypes is of the kind V for numpy; only its name tells.
    if kind == "V" and getattr(getattr(obj, "dtype", None), "name", "") == "bfloat16":
        return "bfloat16"
    if kind == "b" and size == "1":
        return "bool"
    word = {"f": "float", "i": "int", "u": "uint"}.get(kind)
    return checked_dtype(name, f"{word}{8 * int(size)}" if word else typestr)


def element_strides(name, shape, strides, item_bytes):
    if strides is None:
        return packed_strides(shape)
    if any(stride % item_bytes for stride, length in zip(strides, shape) if length > 1):
        raise ValueError(f"{name} has strides of {tuple(strides)} bytes, which are no multiples of its elements of {item_bytes} bytes")
    return tuple(stride // item_bytes for stride in strides)


def from_dlpack(name, obj, stream):
    try:
        tensor = dlpack.export(obj, stream)
    except dlpack.Unserved as error:
        raise TypeError(f"{name}: {error}") from None
    strides = tensor.strides if tensor.strides is not None else packed_strides(tensor.shape)
    device = tensor.device if tensor.on_cuda else None
    return Array(tensor.address, tensor.shape, strides, checked_dtype(name, tensor.dtype), CUDA if tensor.on_cuda else HOST, device,
                 tensor.readonly, (obj, tensor.capsule))


BUFFER_WORDS = {**dict.fromkeys("efd", "float"), **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint")}


class PyBuffer(ctypes.Structure):
    """Py_buffer of Python.h: the only way to the address of memory that is read-only."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]


STRIDED_BUFFER = 0x18  # PyBUF_STRIDES of Python.h


def from_buffer(name, view):
    letters = view.format.lstrip("@=" + ("<" if sys.byteorder == "little" else ">"))
    if letters == "?":
        dtype = "bool"
    elif letters == "c":
        dtype = "uint8"
    else:
        word = BUFFER_WORDS.get(letters)
        dtype = checked_dtype(name, f"{word}{8 * view.itemsize}" if word else view.format)
    buffer = PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), STRIDED_BUFFER)
    address = buffer.buf or 0
    # The memoryview itself holds the memory in place from here on.
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    strides = element_strides(name, view.shape, view.strides, view.itemsize)
    return Array(address, tuple(view.shape), strides, dtype, HOST, None, view.readonly, view)
