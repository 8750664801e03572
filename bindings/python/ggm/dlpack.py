"""Reads a DLPack capsule without taking it over: the producer's memory is given back when the capsule is collected.

DLPack (dlpack.h, versions 0 and 1) is the exchange format of array libraries. A capsule that nobody renames stays its
producer's, whose destructor frees what it holds; so looking inside is enough here.
"""
import ctypes
import typing

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
WORDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
READ_ONLY = 1
LEGACY_DEFAULT_STREAM = 1  # how the protocol writes CUDA's default stream


class Unserved(Exception):
    pass


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]


class Exported(typing.NamedTuple):
    address: int
    shape: typing.Tuple[int, ...]
    strides: typing.Optional[typing.Tuple[int, ...]]  # elements; None: packed
    dtype: str
    on_cuda: bool
    device: int
    readonly: bool
    capsule: object


# Prototypes of our own: setting them on ctypes.pythonapi would change them for every module of the process.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def export(obj, stream):
    """An Exported of an object with __dlpack__. stream: number of the CUDA stream that will read it, None or 0: the default."""
    kind, device = map(int, obj.__dlpack_device__())
    if kind not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise Unserved(f"the DLPack device type {kind} is not served")
    on_cuda = kind in (CUDA, CUDA_MANAGED)
    arguments = {"stream": stream or LEGACY_DEFAULT_STREAM} if on_cuda else {}
    try:
        capsule = obj.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:  # a producer from before version 1
        capsule = obj.__dlpack__(**arguments)
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = DLManagedTensorVersioned.from_address(_get_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise Unserved(f"DLPack version {managed.major} is not served")
        tensor, readonly = managed.tensor, bool(managed.flags & READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        tensor, readonly = DLTensor.from_address(_get_pointer(capsule, b"dltensor")), False
    else:
        raise Unserved("its __dlpack__ gave no DLPack capsule")
    if tensor.lanes != 1 or tensor.code not in WORDS:
        raise Unserved(f"the DLPack element type of code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes is not served")
    dtype = "bool" if tensor.code == 6 else f"{WORDS[tensor.code]}{tensor.bits}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    return Exported((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, on_cuda, device, readonly, capsule)
