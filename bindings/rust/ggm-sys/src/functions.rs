// Made by bindings/rust/generate.py from include/ggm/ggm.h; not to be edited.

functions! {
    /// The version of the loaded library, as GGM_VERSION. Thread-safe; since 0.1.
    fn ggm_version() -> i32;
    /// One line about the build: version, commit, CUDA version and architectures, host kernels. Static storage, never NULL.
    /// Thread-safe; since 0.1.
    fn ggm_build_info() -> *const c_char;
    /// The name of a status, such as "GGM_STATUS_NULL_POINTER"; "unknown status" for any other number. Static storage, never
    /// NULL. Thread-safe; since 0.1.
    fn ggm_status_string(status: ggm_status_t) -> *const c_char;
    /// The text of the last failed call of this thread: argument, value, limit. "" when none failed yet; a success leaves it.
    /// The pointer belongs to the thread and its content lasts until the thread's next failing call. Since 0.1.
    fn ggm_last_error() -> *const c_char;
    /// Copies that text, cut to fit and always terminated, into `buffer` [capacity bytes, host]; returns the length of the whole
    /// text without its terminator. buffer may be NULL when capacity is 0. Since 0.1.
    fn ggm_copy_last_error(buffer: *mut c_char, capacity: usize) -> usize;
    /// Makes a handle. On CUDA this loads every kernel, so that even the first call may be captured.
    /// params   in, host; NULL means all defaults.
    /// handle   out, host; receives the handle, NULL on failure.
    /// May allocate and synchronise (create is not a call path); must not run inside a stream capture of the same thread.
    /// Thread-safe. Errors: GGM_STATUS_BACKEND_UNAVAILABLE (CUDA asked of a host-only build), GGM_STATUS_UNSUPPORTED_DEVICE (no
    /// driver, no such device, capability below 8.0, no code for it), GGM_STATUS_UNSUPPORTED (the family cannot run there),
    /// GGM_STATUS_OUT_OF_MEMORY, GGM_STATUS_CUDA_ERROR (driver or GPU failed). Since 0.1.
    fn ggm_create(params: *const ggm_create_params_t, handle: *mut ggm_handle_t) -> ggm_status_t;
    /// Frees a handle. NULL does nothing. Makes no CUDA call and does not wait: work already on a stream completes. The order of
    /// destruction never matters. No other thread may be inside a call with this handle. In a child of fork() a handle of the host
    /// backend can be used, without its worker threads, and freed; CUDA cannot be used there. Since 0.1.
    fn ggm_destroy(handle: ggm_handle_t) -> ggm_status_t;
    /// Describes a handle. info: in/out, host; struct_size set by the caller. Thread-safe; since 0.1.
    fn ggm_get_info(handle: ggm_handle_t, info: *mut ggm_info_t) -> ggm_status_t;
    /// Sorts expert ids into rows. Outputs may not overlap inputs, each other or the workspace. Method: stable radix sort of
    /// (expert, assignment); on CUDA by counts of the experts' digits, ranks from votes of a warp (Ashkiani, Davidson, Meyer and
    /// Owens, "GPU Multisplit", 2016) and scans of CUB's block primitives. Since 0.1.
    fn ggm_route_workspace_size(handle: ggm_handle_t, problem: *const ggm_route_problem_t, bytes: *mut usize) -> ggm_status_t;
    /// The call whose workspace [`ggm_route_workspace_size`] asks for.
    fn ggm_route(
        handle: ggm_handle_t,
        problem: *const ggm_route_problem_t,
        tensors: *const ggm_route_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// Outputs may not overlap inputs, each other or the workspace. Since 0.1.
    fn ggm_permute_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_permute_workspace_size`] asks for.
    fn ggm_permute(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        tensors: *const ggm_permute_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// The bytes of workspace of one problem; validates it as well.
    fn ggm_unpermute_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_unpermute_workspace_size`] asks for.
    fn ggm_unpermute(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        tensors: *const ggm_permute_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// The bytes of workspace of one problem; validates it as well.
    fn ggm_unpermute_backward_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_unpermute_backward_workspace_size`] asks for.
    fn ggm_unpermute_backward(
        handle: ggm_handle_t,
        problem: *const ggm_permute_problem_t,
        tensors: *const ggm_unpermute_backward_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// Since 0.1.
    fn ggm_grouped_gemm_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_grouped_gemm_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_grouped_gemm_workspace_size`] asks for.
    fn ggm_grouped_gemm(
        handle: ggm_handle_t,
        problem: *const ggm_grouped_gemm_problem_t,
        tensors: *const ggm_grouped_gemm_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// Since 0.1.
    fn ggm_grouped_gemm_array_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_grouped_gemm_array_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_grouped_gemm_array_workspace_size`] asks for.
    fn ggm_grouped_gemm_array(
        handle: ggm_handle_t,
        problem: *const ggm_grouped_gemm_array_problem_t,
        tensors: *const ggm_grouped_gemm_array_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// One problem struct serves both: fill it once. Outputs may not overlap inputs, each other or the workspace. Since 0.1.
    fn ggm_moe_forward_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_moe_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_moe_forward_workspace_size`] asks for.
    fn ggm_moe_forward(
        handle: ggm_handle_t,
        problem: *const ggm_moe_problem_t,
        tensors: *const ggm_moe_forward_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
    /// The bytes of workspace of one problem; validates it as well.
    fn ggm_moe_backward_workspace_size(
        handle: ggm_handle_t,
        problem: *const ggm_moe_problem_t,
        bytes: *mut usize,
    ) -> ggm_status_t;
    /// The call whose workspace [`ggm_moe_backward_workspace_size`] asks for.
    fn ggm_moe_backward(
        handle: ggm_handle_t,
        problem: *const ggm_moe_problem_t,
        tensors: *const ggm_moe_backward_tensors_t,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: ggm_stream_t,
    ) -> ggm_status_t;
}
