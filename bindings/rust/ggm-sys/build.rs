//! Finds libggm: the folder in `GGM_LIB_DIR`, else what pkg-config says about `ggm`. With the feature `load` nothing is linked.
//!
//! Packages that depend on this one directly see the folder as `DEP_GGM_LIB_DIR` in their build scripts.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    for variable in ["GGM_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_LOAD").is_some() {
        return;
    }
    match env::var("GGM_LIB_DIR") {
        Ok(folder) => link_from(&folder),
        Err(_) => link_by_pkg_config(),
    }
}

fn link_from(folder: &str) {
    if !Path::new(folder).join("libggm.so").exists() {
        stop(&format!("GGM_LIB_DIR = {folder}; there is no libggm.so in it"));
    }
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib=ggm");
    println!("cargo:lib_dir={folder}");
}

fn link_by_pkg_config() {
    let tool = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    // This package has the version of the header. While that is 0.x, the interface may change with the minor version.
    let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap().parse::<u32>().unwrap();
    let (major, minor) = (part("MAJOR"), part("MINOR"));
    let output = Command::new(&tool)
        .args(["--libs", &format!("ggm >= {major}.{minor}"), &format!("ggm < {major}.{}", minor + 1)])
        // Without this the folder of a library in the system's prefix is left out, and `lib_dir` would be empty.
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output();
    let output = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => stop(&format!("{tool}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => stop(&format!("{tool} could not be run: {error}")),
    };
    for word in words(&output) {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
            println!("cargo:lib_dir={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}

/// The words of what pkg-config prints, in which a backslash stands before a blank that belongs to a path.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), text.chars());
    while let Some(c) = rest.next() {
        match c {
            '\\' => word.extend(rest.next()),
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn stop(reason: &str) -> ! {
    eprintln!("libggm was not found: {reason}");
    eprintln!("Set GGM_LIB_DIR to the folder of libggm.so, or PKG_CONFIG_PATH to the folder of ggm.pc.");
    std::process::exit(1);
}
