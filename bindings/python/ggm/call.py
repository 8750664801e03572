"""One call being made: arrays are checked against each other and become the fields of the problem and of the tensors.

The library sees bare pointers, so that a wrong shape would read or write other memory. Here every size of a problem comes from
the shapes of the arrays, and arrays that disagree are refused before the library is called.
"""
import ctypes

from . import streams, workspace
from .arrays import CUDA, HOST, describe, packed_strides
from .errors import check
from .names import FAULT_WORDS, STRIDE_SHARED
from .problems import workspace_size

FLOATS = ("float32", "bfloat16", "float16", "float64")
INDICES = ("int32", "int64")
INT32 = ("int32",)


class Call:
    """arrays: {argument: array or None}; all that the call touches. dtype: what arrays of uint16 hold, or None."""

    def __init__(self, handle, arrays, dtype, stream):
        if dtype not in (None, "bfloat16"):
            raise ValueError(f"dtype = {dtype!r}; it says what arrays of uint16 hold, and can be 'bfloat16' alone")
        self.handle, self.dtype = handle, dtype
        self.given = {name: obj for name, obj in arrays.items() if obj is not None}
        if stream is None:
            self.stream = 0 if handle.on_host else streams.current(self.given)
        else:
            self.stream = streams.number_of(stream)
        self.sizes = {}  # {size or stride: (value, the argument that told it)}
        self.axes = {}  # {size: an array that has such an axis}
        self.arrays = {}  # {argument: Array} of those checked, kept until the call is made
        self._described = {}

    # ---- sizes ---------------------------------------------------------------------------------------------------------

    def tell(self, size, value, source):
        """Sets a size, or compares it with what another argument told."""
        old, first = self.sizes.setdefault(size, (value, source))
        if old != value:
            raise ValueError(f"{source} tells {size} = {value}, but {first} tells {old}")

    def option(self, size, value):
        """A size given by keyword; None: not given."""
        if value is not None:
            self.tell(size, value, f"the argument {size}")

    def get(self, size, default=0):
        return self.sizes.get(size, (default, None))[0]

    # ---- arrays --------------------------------------------------------------------------------------------------------

    def require(self, *names, needed_by=""):
        """Refuses a call without those arguments. needed_by: the argument that wants them, where they are not always needed."""
        for name in names:
            if name not in self.given:
                raise TypeError(f"{name} is missing" + (f"; {needed_by} needs it" if needed_by else ""))

    def describe(self, name):
        if name not in self._described:
            self._described[name] = describe(name, self.given[name], self.stream)
        return self._described[name]

    def array(self, name, dims, dtypes, *, strides=(), shared=False, out=False):
        """Checks the argument `name`, and returns its element type; None when it is not given.

        dims      for each axis the name of a size, (name, n) for that size + n, or a number
        strides   names of the strides of the axes but the last, None where the array must be packed
        shared    whether a stride of 0 of the first axis may be told to the library: one matrix for all groups
        """
        if name not in self.given:
            return None
        array = self.describe(name)
        self.check_place(name, array, out)
        dtype = self.element_type(name, array.dtype, dtypes)
        if len(array.shape) != len(dims):
            raise ValueError(f"{name} has the shape {array.shape}; it must be [{', '.join(map(self.dim_text, dims))}]")
        for dim, length in zip(dims, array.shape):
            if isinstance(dim, int):
                if length != dim:
                    raise ValueError(f"{name} has the shape {array.shape}; it must be [{', '.join(map(self.dim_text, dims))}]")
            elif isinstance(dim, tuple):
                if length < dim[1]:
                    raise ValueError(f"{name} has the shape {array.shape}; it must be [{', '.join(map(self.dim_text, dims))}]")
                self.tell(dim[0], length - dim[1], name)
            else:
                self.tell(dim, length, name)
                self.axes.setdefault(dim, name)
        self.check_strides(name, array, strides or (None,) * (len(dims) - 1), shared)
        self.arrays[name] = array
        return dtype

    @staticmethod
    def dim_text(dim):
        return f"{dim[0]}+{dim[1]}" if isinstance(dim, tuple) else str(dim)

    def check_place(self, name, array, out):
        memory = HOST if self.handle.on_host else CUDA
        if array.memory != memory:
            raise ValueError(f"{name} lies in {array.memory} memory; this handle works on {memory} memory")
        if array.device is not None and array.device != self.handle.info.device:
            raise ValueError(f"{name} lies on the CUDA device {array.device}; the handle is of device {self.handle.info.device}")
        if out and array.readonly:
            raise ValueError(f"{name} is written, but the array is read-only")

    def element_type(self, name, dtype, dtypes):
        if dtype == "uint16" and "bfloat16" in dtypes:
            if self.dtype is None:
                raise TypeError(f"{name} holds uint16; if those are the bits of bfloat16 say dtype='bfloat16'")
            return self.dtype
        if dtype not in dtypes:
            raise TypeError(f"{name} holds {dtype}; it must hold {' or '.join(dtypes)}")
        return dtype

    def check_strides(self, name, array, strides, shared):
        """Axes of one element, and arrays of none, have no stride that matters; 0 is told for them, which means packed."""
        if array.size == 0:
            return
        if array.shape and array.shape[-1] > 1 and array.strides[-1] != 1:
            raise ValueError(f"{name} has the strides {array.strides}; the elements of a row must follow each other")
        for axis, (stride, length, packed, field) in enumerate(zip(array.strides, array.shape, packed_strides(array.shape), strides)):
            if length == 1:
                continue
            if field is None:
                if stride != packed:
                    raise ValueError(f"{name} has the strides {array.strides}; it must be packed")
            elif stride == 0 and shared and axis == 0:
                self.tell(field, STRIDE_SHARED, name)
            elif stride <= 0:
                raise ValueError(f"{name} has the stride {stride} on axis {axis}, which cannot be told to the library")
            else:
                self.tell(field, stride, name)

    def vector(self, name, dim, dtypes, out=False):
        """An array of one axis without gaps."""
        return self.array(name, (dim,), dtypes, out=out)

    def extras(self):
        """num_tokens [1] (or a scalar array) and faults."""
        if "num_tokens" in self.given:
            self.array("num_tokens", () if self.describe("num_tokens").shape == () else (1,), INT32)
        self.array("faults", (FAULT_WORDS,), ("uint32", "int32"), out=True)

    # ---- the call ------------------------------------------------------------------------------------------------------

    def fill(self, problem):
        """Sets the sizes and strides that were told; the others stay 0, the default."""
        for size, (value, _) in self.sizes.items():
            if size != "assignments":  # tokens*top_k, of a flat assignment_row
                setattr(problem, size, value)

    def run(self, operation, problem, tensors, given_workspace):
        """tensors: the struct, empty; it gets the address of each array under the name of its argument."""
        for name, array in self.arrays.items():
            setattr(tensors, name, array.address)
        needed = workspace_size(self.handle, operation, problem)
        address, bytes_, owner = workspace.take(given_workspace, needed, self.handle, self.given, self.stream)
        call = getattr(self.handle.loaded, operation)
        with self.handle.in_use() as pointer:
            check(self.handle.loaded, call(pointer, ctypes.byref(problem), ctypes.byref(tensors), address, bytes_, self.stream))
        del owner  # alive until here
