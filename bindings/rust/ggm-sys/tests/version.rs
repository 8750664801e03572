//! The functions are there and the library is of the version that the declarations are from, linked or loaded.
use ggm_sys::*;
use std::ffi::CStr;

#[cfg(feature = "load")]
#[test]
fn loading_says_what_is_wrong_and_then_works() {
    use std::path::Path;
    assert!(!is_loaded());
    let text = load(Some(Path::new("libggm-that-is-not-there.so"))).unwrap_err();
    assert!(text.contains("libggm-that-is-not-there.so"), "{text}");
    // A library without our functions; every Linux program has this one.
    let text = load(Some(Path::new("libc.so.6"))).unwrap_err();
    assert!(text.contains("ggm_version"), "{text}");
    assert!(!is_loaded());
    load(None).unwrap();
    assert!(is_loaded());
    load(Some(Path::new("libggm-that-is-not-there.so"))).expect("a second call changes nothing");
    is_the_version_of_the_declarations();
}

#[cfg(not(feature = "load"))]
#[test]
fn linked_library_is_of_this_version() {
    assert!(is_loaded());
    is_the_version_of_the_declarations();
}

#[test]
fn package_has_the_version_of_the_header() {
    let header = format!("{GGM_VERSION_MAJOR}.{GGM_VERSION_MINOR}.{GGM_VERSION_PATCH}");
    assert_eq!(env!("CARGO_PKG_VERSION"), header);
}

fn is_the_version_of_the_declarations() {
    unsafe {
        assert_eq!(ggm_version(), GGM_VERSION);
        let name = CStr::from_ptr(ggm_status_string(GGM_STATUS_NULL_POINTER));
        assert_eq!(name.to_str().unwrap(), "GGM_STATUS_NULL_POINTER");
        assert_eq!(ggm_create(std::ptr::null(), std::ptr::null_mut()), GGM_STATUS_NULL_POINTER);
        assert_eq!(CStr::from_ptr(ggm_last_error()).to_str().unwrap(), "handle is NULL");
    }
}
