//! Nothing of `ggm.h` is left out: every function is declared in ggm-sys and called by this crate, and every operation by
//! these tests.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// All Rust files of a folder as one text, but for this one.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().map_or(false, |extension| extension == "rs") && path.file_stem().unwrap() != "complete" {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// Names in front of a bracket, wherever a prototype begins.
fn prototypes(header: &str) -> BTreeSet<String> {
    let begins = header.split("\nGGM_API ").skip(1);
    begins
        .map(|prototype| {
            let head = prototype.split('(').next().unwrap();
            head.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap().to_string()
        })
        .collect()
}

#[test]
fn every_function_of_the_header() {
    let header = fs::read_to_string(root().join("include/ggm/ggm.h")).unwrap();
    let functions = prototypes(&header);
    assert!(functions.contains("ggm_create") && functions.contains("ggm_moe_backward"), "{functions:?}");
    assert_eq!(functions.len(), header.matches("\nGGM_API ").count());
    let declarations = fs::read_to_string(root().join("bindings/rust/ggm-sys/src/functions.rs")).unwrap();
    let (source, tests) = (sources("src"), sources("tests/host"));
    for function in &functions {
        assert!(declarations.contains(&format!("fn {function}(")), "{function} is not declared in ggm-sys");
        let called = source.contains(&format!("sys::{function}("));
        // An operation names its two functions to the macro that makes it: "route: ggm_route_workspace_size, ggm_route".
        let operation = function.strip_suffix("_workspace_size").unwrap_or(function);
        let method = &operation["ggm_".len()..];
        let defined = source.contains(&format!("    {method}: {operation}_workspace_size, {operation}\n"));
        assert!(called || defined, "{function} is not called by the crate");
        assert!(called || tests.contains(&format!(".{method}(")), "the method {method} is not called by a test");
    }
}

/// Each status of the header is a constant here.
#[test]
fn every_status_of_the_header() {
    let header = fs::read_to_string(root().join("include/ggm/ggm.h")).unwrap();
    let names: BTreeSet<&str> = header
        .lines()
        .filter_map(|line| line.trim().split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("GGM_STATUS_"))
        .collect();
    let _library = crate::support::host(); // names come from the library, which the feature `load` opens here
    let known: BTreeSet<&str> = ggm::Status::KNOWN.iter().map(|status| status.name()).collect();
    assert_eq!(known, names);
}

#[test]
fn the_example_is_the_program_of_the_readme() {
    let readme = fs::read_to_string(root().join("bindings/rust/README.md")).unwrap();
    let program = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let example = fs::read_to_string(root().join("bindings/rust/ggm/examples/two_tokens.rs")).unwrap();
    assert!(example.ends_with(program), "ggm/examples/two_tokens.rs differs from the README");
}
