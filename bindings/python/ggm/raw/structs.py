"""The structs of ggm.h as ctypes structures, field by field under the header's names. A test compares size, offset and type of
every field with what a C compiler says. What a field means is said in ggm.h alone."""
import ctypes
import functools
import operator

__all__ = []  # filled below: the structs and the types of the callbacks

# void log(void* user, int32_t level, const char* message);   the others are the pair of host allocators
log_fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
allocate_fn = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
deallocate_fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

RANGES = {
    ctypes.c_uint32: (0, 2**32 - 1),
    ctypes.c_int32: (-(2**31), 2**31 - 1),
    ctypes.c_int64: (-(2**63), 2**63 - 1),
    ctypes.c_void_p: (0, 2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1),
}


class Struct(ctypes.Structure):
    """Starts as the GGM_..._INIT macro does: zeros and the struct's size. Fields are set by keyword or by attribute.

    ctypes alone would cut an integer that does not fit, and take a misspelt field for a new attribute; both raise here.
    A pointer is an address; the memory behind it is not kept alive by the struct."""

    __slots__ = ()

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)

    def __setattr__(self, name, value):
        kind = self.kinds().get(name)
        if kind is None:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        low, high = RANGES.get(kind, (None, None))
        if low is not None and value is not None:
            value = operator.index(value)  # takes the integers of numpy too
            if not low <= value <= high:
                raise OverflowError(f"{name} = {value}; it must be in {low} .. {high}")
        super().__setattr__(name, value)

    @classmethod
    @functools.lru_cache(maxsize=None)
    def kinds(cls):
        """{field: ctypes type}"""
        return dict(cls._fields_)

    def __repr__(self):
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self._fields_[1:] if getattr(self, name))
        return f"{type(self).__name__}({given})"


def fields_of(kind):
    return lambda names: [(name, kind) for name in names.split()]


uint32, int32, int64 = fields_of(ctypes.c_uint32), fields_of(ctypes.c_int32), fields_of(ctypes.c_int64)
float64, pointers = fields_of(ctypes.c_double), fields_of(ctypes.c_void_p)


class ggm_create_params_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int32("backend device kernel_family log_level host_threads reserved")
        + [("log", log_fn)]
        + pointers("log_user")
        + [("allocate", allocate_fn), ("deallocate", deallocate_fn)]
        + pointers("allocator_user")
    )


class ggm_info_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size")
        + int32("backend device kernel_family compute_capability multiprocessors shared_memory_bytes workspace_alignment")
    )


class ggm_route_problem_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int64("tokens top_k experts experts_total first_expert max_rows ids_ld")
        + int32("id_type sm_limit")
    )


class ggm_route_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers("ids expert_map num_tokens faults group_offsets row_assignment assignment_row")
    )


class ggm_permute_problem_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int64("tokens top_k experts max_rows features token_ld row_ld routing_weights_ld")
        + int32("token_type row_type routing_weight_type sm_limit")
    )


class ggm_permute_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers("group_offsets row_assignment assignment_row routing_weights input output num_tokens faults")
    )


class ggm_unpermute_backward_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers(
            "group_offsets row_assignment assignment_row routing_weights rows dy d_rows d_routing_weights "
            "num_tokens faults")
    )


class ggm_grouped_gemm_problem_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int64("groups m n k lda ldb ldc ldd stride_a stride_b stride_c stride_d")
        + float64("alpha beta")
        + int32("layout group_form index_type b_order a_type b_type c_type d_type compute_type sm_limit")
    )


class ggm_grouped_gemm_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers("group_sizes group_offsets row_group a b c d faults")
    )


class ggm_grouped_gemm_array_problem_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int64("groups max_m max_n max_k")
        + float64("alpha beta")
        + int32("index_type a_order b_order a_type b_type c_type d_type compute_type min_alignment sm_limit")
    )


class ggm_grouped_gemm_array_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers("m n k lda ldb ldc ldd a b c d faults")
    )


class ggm_moe_problem_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size flags")
        + int64(
            "tokens top_k experts experts_total first_expert max_rows ids_ld routing_weights_ld in_features "
            "out_features x_ld y_ld weight_ld weight_stride bias_stride dy_ld dx_ld d_weight_ld d_weight_stride "
            "d_bias_stride")
        + int32(
            "id_type routing_weight_type x_type weight_type bias_type y_type product_type compute_type "
            "weight_order input_rows output_rows combine sm_limit gradients dy_type dx_type d_weight_type "
            "d_bias_type")
    )


class ggm_moe_forward_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers(
            "ids expert_map group_offsets row_assignment assignment_row routing_weights x weight bias y "
            "num_tokens faults")
    )


class ggm_moe_backward_tensors_t(Struct):
    __slots__ = ()
    _fields_ = (
        uint32("struct_size reserved")
        + pointers(
            "ids expert_map group_offsets row_assignment assignment_row routing_weights x weight bias dy dx "
            "d_weight d_bias d_routing_weights num_tokens faults")
    )


__all__ += [name for name in dir() if name.startswith("ggm_")] + ["log_fn", "allocate_fn", "deallocate_fn", "Struct"]
