//! Size of every struct, offset and size of every field, and the value of every constant: what Rust has is compared with what
//! the C compiler makes of `ggm.h`, and with the recorded layout of the library's own ABI check, which knows when a name is
//! missing here.
use ggm_sys::*;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::mem::{size_of, MaybeUninit};
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

/// One line for each struct, field and constant, in the words of tests/abi/layout.txt.
fn rust_layout() -> Vec<String> {
    let mut lines = Vec::new();
    macro_rules! structs {
        ($name:ident: $($field:ident),*) => {{
            let value = MaybeUninit::<$name>::uninit();
            let base = value.as_ptr();
            lines.push(format!("{} size {}", stringify!($name), size_of::<$name>()));
            $(
                // SAFETY: an address inside of the struct is computed; nothing is read.
                let field = unsafe { std::ptr::addr_of!((*base).$field) };
                lines.push(format!(
                    "{}.{} offset {} size {}",
                    stringify!($name), stringify!($field), field as usize - base as usize, size_behind(field)
                ));
            )*
        }};
    }
    macro_rules! constants {
        ($name:ident) => {
            lines.push(format!("{} = {}", stringify!($name), $name))
        };
    }
    every_declaration!(structs, constants);
    lines
}

/// The C program that prints the same lines about the same names.
fn c_program(lines: &[String]) -> String {
    let mut source = String::from("#include <stdio.h>\n#include \"ggm/ggm.h\"\nint main(void) {\n");
    for line in lines {
        let name = line.split(' ').next().unwrap();
        source += &match name.split_once('.') {
            Some((owner, field)) => format!(
                "  printf(\"{name} offset %u size %u\\n\", (unsigned)offsetof({owner}, {field}), (unsigned)sizeof((({owner}*)0)->{field}));\n"
            ),
            None if name.starts_with("ggm_") => format!("  printf(\"{name} size %u\\n\", (unsigned)sizeof({name}));\n"),
            None => format!("  printf(\"{name} = %lld\\n\", (long long)({name}));\n"),
        };
    }
    source + "  return 0;\n}\n"
}

#[test]
fn layout_is_that_of_the_c_compiler() {
    let lines = rust_layout();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&source, c_program(&lines)).unwrap();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let compiled = Command::new(&compiler)
        .args(["-std=c99", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap_or_else(|error| panic!("{compiler} could not be run: {error}"));
    assert!(compiled.success(), "{compiler} does not take {}", source.display());
    let output = Command::new(&program).output().unwrap();
    let c: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect();
    assert_eq!(lines.len(), c.len());
    for (rust, c) in lines.iter().zip(&c) {
        assert_eq!(rust, c);
    }
}

#[test]
fn every_recorded_name_is_declared() {
    let recorded = fs::read_to_string(root().join("tests/abi/layout.txt")).unwrap();
    let recorded: BTreeSet<_> = recorded.lines().map(str::to_string).collect();
    let declared: BTreeSet<_> = rust_layout().into_iter().collect();
    let missing: Vec<_> = recorded.difference(&declared).collect();
    let unknown: Vec<_> = declared.difference(&recorded).collect();
    assert!(recorded.len() > 200, "tests/abi/layout.txt has only {} lines", recorded.len());
    assert!(missing.is_empty() && unknown.is_empty(), "not declared: {missing:?}; not in the record: {unknown:?}");
}

#[test]
fn init_is_zeros_and_the_size() {
    macro_rules! constants {
        ($name:ident) => {};
    }
    macro_rules! structs {
        ($name:ident: $($field:ident),*) => {{
            let value = $name::INIT;
            assert_eq!(value.struct_size as usize, size_of::<$name>(), stringify!($name));
            // SAFETY: the header has no padding (the library's layout check), so every byte is initialised.
            let bytes = unsafe { std::slice::from_raw_parts(std::ptr::addr_of!(value).cast::<u8>(), size_of::<$name>()) };
            assert!(bytes[4..].iter().all(|&byte| byte == 0), "{}::INIT", stringify!($name));
        }};
    }
    every_declaration!(structs, constants);
}
