//! Making a handle.
use crate::error::check;
use crate::memory::Space;
use crate::tensor_check::{small_size, TensorCheck};
use crate::{sys, Backend, Error, KernelFamily, LogLevel, Result, Status, WorkspaceRef};
use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// Takes one complete line of the log, from the thread that makes the call, so by several at once. A panic in it is dropped.
pub type LogFunction = dyn Fn(LogLevel, &str) + Send + Sync;

/// Host memory for what a handle itself needs. Used by creation and destruction alone, never by a call.
///
/// # Safety
/// `allocate` returns NULL or `bytes` of memory that nobody else has until `deallocate` gets it back, aligned to `alignment`,
/// a power of two. A panic in it counts as NULL.
pub unsafe trait HostAllocator: Send + Sync {
    /// `bytes` of memory, or NULL.
    fn allocate(&self, bytes: usize, alignment: usize) -> *mut u8;

    /// Takes them back.
    ///
    /// # Safety
    /// `pointer` came from `allocate` with the same number of bytes, and is not used afterwards.
    unsafe fn deallocate(&self, pointer: *mut u8, bytes: usize);
}

/// Which GPU a handle is for. The host backend knows only the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The CUDA device of this number; the default is 0.
    Ordinal(i32),
    /// The CUDA device that is current in the calling thread.
    Current,
}

impl Default for Device {
    fn default() -> Self {
        Device::Ordinal(0)
    }
}

/// How a handle is made. Start from the default and set what differs.
#[derive(Clone, Default)]
pub struct CreateParams {
    /// The default takes CUDA when the library has it and a usable GPU is there, else the host.
    pub backend: Backend,
    /// On CUDA.
    pub device: Device,
    /// Pins a family, for tests and for finding faults. The environment variable `GGM_FORCE_KERNEL` overrides the default.
    pub kernel_family: KernelFamily,
    /// The environment variable `GGM_LOG` (off, error, plan, trace) overrides `Off`.
    pub log_level: LogLevel,
    /// Worker threads of the host backend; 0: one a core; at most 1024.
    pub host_threads: usize,
    /// Where the log goes; `None`: to stderr.
    pub log: Option<Arc<LogFunction>>,
    /// `None`: malloc and free.
    pub allocator: Option<Arc<dyn HostAllocator>>,
}

impl fmt::Debug for CreateParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateParams")
            .field("backend", &self.backend)
            .field("device", &self.device)
            .field("kernel_family", &self.kernel_family)
            .field("log_level", &self.log_level)
            .field("host_threads", &self.host_threads)
            .field("log", &self.log.is_some())
            .field("allocator", &self.allocator.is_some())
            .finish()
    }
}

/// What a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// `Cuda` or `Host`, never `Auto`.
    pub backend: Backend,
    /// CUDA ordinal; 0 on the host.
    pub device: i32,
    /// The family in use by default: the number of a [`KernelFamily`], possibly of one that this crate does not know.
    pub kernel_family: i32,
    /// 10 * major + minor, 90 for an H200; 0 on the host.
    pub compute_capability: i32,
    /// Multiprocessors, or worker threads on the host.
    pub multiprocessors: i32,
    /// A block's largest dynamic shared memory; 0 on the host.
    pub shared_memory_bytes: i32,
    /// [`WORKSPACE_ALIGNMENT`](crate::WORKSPACE_ALIGNMENT).
    pub workspace_alignment: i32,
}

/// A backend on a device, ready for calls.
///
/// Immutable: any number of threads may call with one handle at the same time. On CUDA its device must be current in each of
/// them, which every call checks (`WRONG_DEVICE`). Dropping it makes no CUDA call and does not wait: work already on a stream
/// completes.
///
/// Its methods [`route`](Handle::route), [`permute`](Handle::permute), [`unpermute`](Handle::unpermute),
/// [`unpermute_backward`](Handle::unpermute_backward), [`grouped_gemm`](Handle::grouped_gemm),
/// [`grouped_gemm_array`](Handle::grouped_gemm_array), [`moe_forward`](Handle::moe_forward) and
/// [`moe_backward`](Handle::moe_backward) validate a problem and return its operation.
///
/// An operation borrows its handle, so it cannot outlive it:
///
/// ```compile_fail,E0505
/// # use ggm::*;
/// let handle = Handle::on(Backend::Host).unwrap();
/// let route = handle.route(&RouteProblem::default()).unwrap();
/// drop(handle);
/// route.workspace_bytes();
/// ```
pub struct Handle {
    raw: sys::ggm_handle_t,
    space: Space,
    // What the library's callbacks reach through their user pointers; they live as long as the handle.
    _log: Option<Box<Arc<LogFunction>>>,
    _allocator: Option<Box<Arc<dyn HostAllocator>>>,
}
// SAFETY: the library promises that a handle is immutable after its creation, and may be destroyed by any thread. The
// callbacks are Send and Sync.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Handle {
    /// Makes a handle. On CUDA this loads every kernel, so that even the first call may be captured in a graph; it may allocate
    /// and synchronise.
    pub fn new(params: &CreateParams) -> Result<Self> {
        loaded()?;
        let log = params.log.clone().map(Box::new);
        let allocator = params.allocator.clone().map(Box::new);
        let mut raw_params = sys::ggm_create_params_t {
            backend: params.backend.code(),
            kernel_family: params.kernel_family.code(),
            log_level: params.log_level.code(),
            host_threads: small_size("host_threads", params.host_threads)?,
            ..Default::default()
        };
        match params.device {
            Device::Ordinal(ordinal) => raw_params.device = ordinal,
            Device::Current => raw_params.flags |= sys::GGM_CREATE_CURRENT_DEVICE as u32,
        }
        if let Some(log) = &log {
            raw_params.log = Some(write_log);
            raw_params.log_user = user_pointer(log);
        }
        if let Some(allocator) = &allocator {
            raw_params.allocate = Some(allocate);
            raw_params.deallocate = Some(deallocate);
            raw_params.allocator_user = user_pointer(allocator);
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: both structs live through the call, and what the user pointers name lives in the handle.
        check(unsafe { sys::ggm_create(&raw_params, &mut raw) })?;
        let mut handle = Handle { raw, space: Space::Host, _log: log, _allocator: allocator };
        handle.space = space_of(handle.info()?.backend);
        Ok(handle)
    }

    /// On one backend, all else by default.
    pub fn on(backend: Backend) -> Result<Self> {
        Self::new(&CreateParams { backend, ..Default::default() })
    }

    /// Takes over a handle made by `ggm_create`.
    ///
    /// # Safety
    /// It is a live handle, and nobody else destroys it. What its callbacks use lives as long as the result.
    pub unsafe fn from_raw(raw: sys::ggm_handle_t) -> Result<Self> {
        let mut handle = Handle { raw, space: Space::Host, _log: None, _allocator: None };
        match handle.info() {
            Ok(info) => handle.space = space_of(info.backend),
            Err(error) => {
                std::mem::forget(handle); // not a handle: not ours to destroy
                return Err(error);
            }
        }
        Ok(handle)
    }

    /// The C handle, still owned here, for calls through [`sys`].
    pub fn as_raw(&self) -> sys::ggm_handle_t {
        self.raw
    }

    /// Backend, device, kernel family and sizes.
    pub fn info(&self) -> Result<Info> {
        let mut info = sys::ggm_info_t::INIT;
        // SAFETY: a live handle and a struct of this size.
        check(unsafe { sys::ggm_get_info(self.raw, &mut info) })?;
        Ok(Info {
            backend: if info.backend == sys::GGM_BACKEND_CUDA { Backend::Cuda } else { Backend::Host },
            device: info.device,
            kernel_family: info.kernel_family,
            compute_capability: info.compute_capability,
            multiprocessors: info.multiprocessors,
            shared_memory_bytes: info.shared_memory_bytes,
            workspace_alignment: info.workspace_alignment,
        })
    }

    pub(crate) fn tensor_check(&self) -> TensorCheck {
        TensorCheck { space: self.space }
    }

    pub(crate) fn is_host(&self) -> bool {
        self.space == Space::Host
    }

    pub(crate) fn workspace(&self, workspace: &WorkspaceRef<'_>) -> Result<*mut c_void> {
        // None is right for an operation that needs none, wherever its memory would be.
        if workspace.bytes > 0 {
            self.tensor_check().space("workspace", workspace.space)?;
        }
        Ok(workspace.pointer.cast())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: a live handle, which nothing borrows any more. There is no one to tell of an error.
        unsafe { sys::ggm_destroy(self.raw) };
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("raw", &self.raw).field("space", &self.space).finish()
    }
}

fn space_of(backend: Backend) -> Space {
    if backend == Backend::Cuda {
        Space::Device
    } else {
        Space::Host
    }
}

/// The address of the inner pair, which does not move with the box.
#[allow(clippy::borrowed_box)]
fn user_pointer<T>(user: &Box<T>) -> *mut c_void {
    let inner: *const T = &**user;
    inner as *mut c_void
}

unsafe extern "C" fn write_log(user: *mut c_void, level: i32, message: *const c_char) {
    // SAFETY: the handle, which makes this call, owns what its user pointer names; the library gives a line that ends.
    let (log, message) = unsafe { (&*user.cast::<Arc<LogFunction>>(), CStr::from_ptr(message)) };
    let level = match level {
        sys::GGM_LOG_ERROR => LogLevel::Error,
        sys::GGM_LOG_PLAN => LogLevel::Plan,
        _ => LogLevel::Trace,
    };
    let message = message.to_string_lossy();
    // A panic must not pass through C.
    let _ = catch_unwind(AssertUnwindSafe(|| log(level, &message)));
}

unsafe extern "C" fn allocate(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void {
    // SAFETY: the handle, which makes this call, owns what its user pointer names.
    let allocator = unsafe { &*user.cast::<Arc<dyn HostAllocator>>() };
    catch_unwind(AssertUnwindSafe(|| allocator.allocate(bytes, alignment))).map_or(std::ptr::null_mut(), |p| p.cast())
}

unsafe extern "C" fn deallocate(user: *mut c_void, pointer: *mut c_void, bytes: usize) {
    // SAFETY: the handle, which makes this call, owns what its user pointer names.
    let allocator = unsafe { &*user.cast::<Arc<dyn HostAllocator>>() };
    // SAFETY: the library gives back what it got.
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { allocator.deallocate(pointer.cast(), bytes) }));
}

/// That the library is loaded, where it is not linked.
fn loaded() -> Result<()> {
    #[cfg(feature = "load")]
    crate::load(None)?;
    Ok(())
}

/// Opens libggm for this process: a file, or a name that the dynamic linker looks for; `None` is the SONAME of this version.
/// Optional where `None` would do: [`Handle::new`] does it then. Once a library is loaded further calls change nothing.
#[cfg(feature = "load")]
pub fn load(path: Option<&std::path::Path>) -> Result<()> {
    sys::load(path).map_err(|text| Error::new(Status::BACKEND_UNAVAILABLE, text))
}

/// A workspace of its own for an operation of this handle.
pub(crate) fn host_workspace(handle: &Handle, bytes: usize) -> Result<crate::Workspace> {
    if !handle.is_host() {
        let text = "workspace is host memory; a handle of the CUDA backend takes device memory, a DeviceSlice";
        return Err(Error::new(Status::INVALID_VALUE, text));
    }
    crate::Workspace::new(bytes)
}
