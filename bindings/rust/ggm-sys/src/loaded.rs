//! The functions of libggm out of a library that is opened when the program runs.
use super::*;
use std::ffi::{CStr, CString, OsStr};
use std::os::raw::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}
const RTLD_NOW: c_int = 2; // and RTLD_LOCAL, which is 0 on Linux

macro_rules! functions {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        struct Table { $($name: unsafe extern "C" fn($($type),*) -> $result,)* }

        impl Table {
            unsafe fn read(library: *mut c_void) -> Result<Table, String> {
                // SAFETY: a function of this name has this signature in every library of the version that is checked
                // afterwards.
                Ok(Table { $($name: std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(
                    symbol(library, stringify!($name))?),)* })
            }
        }

        $(
            $(#[$meta])*
            ///
            /// # Safety
            /// As the header says. Panics when no library is loaded.
            pub unsafe fn $name($($argument: $type),*) -> $result {
                (table(stringify!($name)).$name)($($argument),*)
            }
        )*
    };
}
include!("functions.rs");

/// The table of the one library of this process; never freed, so that a reference to it always holds.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

fn table(caller: &str) -> &'static Table {
    // SAFETY: what is stored came from Box::into_raw and is never freed.
    match unsafe { TABLE.load(Ordering::Acquire).as_ref() } {
        Some(table) => table,
        None => panic!("{caller} was called before libggm was loaded"),
    }
}

/// Whether a library is loaded, so that the functions may be called.
pub fn is_loaded() -> bool {
    !TABLE.load(Ordering::Acquire).is_null()
}

/// Opens libggm for this process: `path` is a file, or a bare name that the dynamic linker looks for; `None` is the SONAME of
/// the version that these declarations are from, such as `libggm.so.0.1`.
///
/// Once a library is loaded further calls succeed and change nothing. The library stays open until the process ends. The
/// error says what is wrong: no such file, a function that is missing, another version.
pub fn load(path: Option<&Path>) -> Result<(), String> {
    if is_loaded() {
        return Ok(());
    }
    let soname = format!("libggm.so.{GGM_VERSION_MAJOR}.{GGM_VERSION_MINOR}");
    let name = path.map_or(OsStr::new(&soname), Path::as_os_str);
    let file = CString::new(name.as_bytes()).map_err(|_| format!("{}: a zero byte in the name", name.to_string_lossy()))?;
    // SAFETY: plain calls of the dynamic linker. The initialisers of a library run at opening: that of libggm has none with
    // effects.
    unsafe {
        let library = dlopen(file.as_ptr(), RTLD_NOW);
        if library.is_null() {
            return Err(linker_error());
        }
        let table = match Table::read(library).and_then(|table| check_version(&table, &name.to_string_lossy()).map(|()| table))
        {
            Ok(table) => Box::into_raw(Box::new(table)),
            Err(text) => {
                dlclose(library);
                return Err(text);
            }
        };
        if TABLE.compare_exchange(ptr::null_mut(), table, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Another thread was faster, and its library stays.
            drop(Box::from_raw(table));
            dlclose(library);
        }
    }
    Ok(())
}

unsafe fn check_version(table: &Table, name: &str) -> Result<(), String> {
    let version = (table.ggm_version)();
    // While the version is 0.x the interface may change with the minor version.
    if version / 100 == GGM_VERSION / 100 {
        return Ok(());
    }
    Err(format!(
        "{name} has version {version}; these declarations are from {GGM_VERSION} (10000 * major + 100 * minor + patch)"
    ))
}

unsafe fn symbol(library: *mut c_void, name: &str) -> Result<*mut c_void, String> {
    let name = CString::new(name).expect("names of functions hold no zero byte");
    let found = dlsym(library, name.as_ptr());
    if found.is_null() {
        return Err(linker_error());
    }
    Ok(found)
}

unsafe fn linker_error() -> String {
    let text = dlerror();
    if text.is_null() {
        return "the dynamic linker gave no reason".to_string();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}
