//! Errors with the library's own text.
use crate::sys;
use std::ffi::CStr;
use std::fmt;

/// What a call of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// A call that failed: its status and the text that names the argument, its value and the limit.
///
/// Most texts are the library's. What only this layer can see, such as a slice that is shorter than its tensor, it reports
/// itself in the same words and with the status that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    text: String,
}

impl Error {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Error { status, text: text.into() }
    }

    /// Its kind. Never [`Status::SUCCESS`].
    pub fn status(&self) -> Status {
        self.status
    }

    /// The argument, its value and the limit.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.text)
    }
}

impl std::error::Error for Error {}

/// A status of the library. Later versions may have more than the constants here: an unknown one is an error of its [`class`].
///
/// [`class`]: Status::class
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(i32);

/// Whose fault a [`Status`] is: the thousand of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusClass {
    /// No error.
    Success,
    /// The handle, or the current device.
    State,
    /// An argument, a field or a pointer.
    Argument,
    /// What this library, build or device does not serve.
    Unsupported,
    /// The library, or host memory in [`Handle::new`](crate::Handle::new).
    Internal,
    /// A CUDA call or launch.
    Cuda,
    /// A thousand that this crate does not know.
    Unknown,
}

macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident = $value:ident;)*) => {
        impl Status {
            $($(#[$meta])* pub const $name: Status = Status(sys::$value);)*

            /// All statuses that this crate knows.
            pub const KNOWN: &'static [Status] = &[$(Status::$name),*];
        }
    };
}
statuses! {
    /// No error.
    SUCCESS = GGM_STATUS_SUCCESS;
    /// The handle is not a live one.
    INVALID_HANDLE = GGM_STATUS_INVALID_HANDLE;
    /// The current CUDA device is not the handle's.
    WRONG_DEVICE = GGM_STATUS_WRONG_DEVICE;
    /// A required tensor is absent.
    NULL_POINTER = GGM_STATUS_NULL_POINTER;
    /// A size, stride, number or length is outside its range.
    INVALID_VALUE = GGM_STATUS_INVALID_VALUE;
    /// Sizes multiply to more than 64 bits hold.
    OVERFLOW = GGM_STATUS_OVERFLOW;
    /// A required choice was not made, or is not known.
    INVALID_ENUM = GGM_STATUS_INVALID_ENUM;
    /// A flag that this operation does not know.
    INVALID_FLAGS = GGM_STATUS_INVALID_FLAGS;
    /// A struct of another version.
    INVALID_STRUCT_SIZE = GGM_STATUS_INVALID_STRUCT_SIZE;
    /// The workspace is smaller than the query says.
    WORKSPACE_TOO_SMALL = GGM_STATUS_WORKSPACE_TOO_SMALL;
    /// A pointer is not aligned to its element, or the workspace not to 256 bytes.
    MISALIGNED = GGM_STATUS_MISALIGNED;
    /// An output or the workspace overlaps memory that it must not.
    ALIASING = GGM_STATUS_ALIASING;
    /// A tensor without its type, a type without its tensor, or elements of another type.
    TYPE_MISMATCH = GGM_STATUS_TYPE_MISMATCH;
    /// A stream was given to the host backend.
    INVALID_STREAM = GGM_STATUS_INVALID_STREAM;
    /// A field that this mode does not use is set.
    RESERVED_NOT_ZERO = GGM_STATUS_RESERVED_NOT_ZERO;
    /// A valid combination that no kernel serves; the text says why.
    UNSUPPORTED = GGM_STATUS_UNSUPPORTED;
    /// No driver, no such GPU, or one that this build has no code for.
    UNSUPPORTED_DEVICE = GGM_STATUS_UNSUPPORTED_DEVICE;
    /// The library was built without this backend.
    BACKEND_UNAVAILABLE = GGM_STATUS_BACKEND_UNAVAILABLE;
    /// Sizes above the library's limits.
    LIMIT_EXCEEDED = GGM_STATUS_LIMIT_EXCEEDED;
    /// A fault of the library; please report it with the text.
    INTERNAL_ERROR = GGM_STATUS_INTERNAL_ERROR;
    /// Host memory ran out.
    OUT_OF_MEMORY = GGM_STATUS_OUT_OF_MEMORY;
    /// A CUDA call or launch failed; the text has its name.
    CUDA_ERROR = GGM_STATUS_CUDA_ERROR;
}

impl Status {
    /// The status of this number.
    pub const fn from_code(code: i32) -> Self {
        Status(code)
    }

    /// Its number, `GGM_STATUS_*`.
    pub const fn code(self) -> i32 {
        self.0
    }

    /// Its name in C, such as `GGM_STATUS_NULL_POINTER`; "unknown status" for a number that the library does not know.
    pub fn name(self) -> &'static str {
        if !sys::is_loaded() {
            return "status of a library that is not loaded";
        }
        // SAFETY: the library returns a static text, never NULL.
        unsafe { static_text(sys::ggm_status_string(self.0)) }
    }

    /// Whose fault it is. Right for statuses of later versions, too.
    pub const fn class(self) -> StatusClass {
        match (self.0, self.0 / 1000) {
            (0, _) => StatusClass::Success,
            (_, 1) => StatusClass::State,
            (_, 2) => StatusClass::Argument,
            (_, 3) => StatusClass::Unsupported,
            (_, 4) => StatusClass::Internal,
            (_, 5) => StatusClass::Cuda,
            _ => StatusClass::Unknown,
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text of static storage that the library returned. The names of statuses and the build line are ASCII.
pub(crate) unsafe fn static_text(text: *const std::os::raw::c_char) -> &'static str {
    // SAFETY: a text of static storage, by the caller's word.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("a text that is not UTF-8")
}

/// The text of this thread's last failed call into the library, "" when none failed yet. [`Error`] carries it already; this
/// is for calls made through [`sys`].
pub fn last_error() -> String {
    if !sys::is_loaded() {
        return String::new();
    }
    // SAFETY: never NULL, and valid until this thread's next failing call.
    unsafe { CStr::from_ptr(sys::ggm_last_error()) }.to_string_lossy().into_owned()
}

/// The same into `buffer` without allocating: cut to fit and always ended by a zero byte. Returns the length of the whole text.
pub fn copy_last_error(buffer: &mut [u8]) -> usize {
    if !sys::is_loaded() {
        if let Some(first) = buffer.first_mut() {
            *first = 0;
        }
        return 0;
    }
    // SAFETY: the library writes at most buffer.len() bytes.
    unsafe { sys::ggm_copy_last_error(buffer.as_mut_ptr().cast(), buffer.len()) }
}

/// `Err` with this thread's last-error text unless `status` is `GGM_STATUS_SUCCESS`. For calls made through [`sys`], too.
pub fn check(status: sys::ggm_status_t) -> Result<()> {
    if status == sys::GGM_STATUS_SUCCESS {
        return Ok(());
    }
    Err(Error::new(Status(status), last_error()))
}
