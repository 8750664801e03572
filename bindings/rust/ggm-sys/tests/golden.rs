//! Every call of tests/golden/golden.txt on the host backend, through the C functions; tests/golden/README.md has the format of
//! the file. Structs are filled by the names of their fields, so a call needs no code here.
use ggm_sys::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_void;
use std::path::PathBuf;
use std::ptr;

/// What outputs hold before a call: no result is this, in any type.
const POISON: i64 = 99;

// ---- the file ------------------------------------------------------------------------------------------------------------

#[derive(Clone)]
struct Array {
    wanted: bool,
    field: String,
    kind: String,
    numbers: Vec<i64>,
}

#[derive(Clone, Default)]
struct Case {
    title: String,
    operation: String,
    problem: Vec<(String, i64)>,
    arrays: Vec<Array>,
}

/// The text of the file; `None` where these tests are not in the source tree, which has it.
fn text() -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let path = root.join("tests/golden/golden.txt");
    if !path.exists() && !root.join("include/ggm/ggm.h").exists() {
        println!("skipped: there is no {}; the golden file is in the source tree of libggm alone", path.display());
        return None;
    }
    Some(fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn parse(text: &str) -> Vec<Case> {
    let number = |word: &str| word.parse::<i64>().unwrap_or_else(|error| panic!("{word}: {error}"));
    let mut cases = Vec::new();
    let mut case = Case::default();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[0] {
            "case" => case = Case { title: line["case ".len()..].to_string(), ..Case::default() },
            "operation" => case.operation = format!("ggm_{}", words[1]),
            "set" => case.problem.push((words[1].to_string(), number(words[2]))),
            "in" | "out" => {
                let numbers: Vec<_> = words[4..].iter().map(|word| number(word)).collect();
                assert_eq!(numbers.len() as i64, words[3].split('x').map(number).product::<i64>(), "{line}");
                let (field, kind) = (words[1].to_string(), words[2].to_string());
                case.arrays.push(Array { wanted: words[0] == "out", field, kind, numbers });
            }
            "end" => cases.push(std::mem::take(&mut case)),
            word => assert!(word.is_empty() || word.starts_with('#'), "{line}"),
        }
    }
    assert!(case.title.is_empty(), "the file ends inside of {}", case.title);
    cases
}

// ---- numbers -------------------------------------------------------------------------------------------------------------

/// The bits of an integer as float16; those above 2048 may have no such bits.
fn half(number: i64) -> u16 {
    let size = number.unsigned_abs() as u16;
    assert!(size <= 2048, "{number} as float16");
    if size == 0 {
        return 0;
    }
    let exponent = 15 - size.leading_zeros() as u16;
    let fraction = ((u32::from(size) << 10) >> exponent) as u16 & 0x3ff;
    (u16::from(number < 0) << 15) | ((exponent + 15) << 10) | fraction
}

fn half_value(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 {
        size
    } else {
        -size
    }
}

fn encode(kind: &str, number: i64) -> Vec<u8> {
    let bytes = match kind {
        "float32" => (number as f32).to_ne_bytes().to_vec(),
        "float64" => (number as f64).to_ne_bytes().to_vec(),
        "bfloat16" => (((number as f32).to_bits() >> 16) as u16).to_ne_bytes().to_vec(),
        "float16" => half(number).to_ne_bytes().to_vec(),
        "int32" => (number as i32).to_ne_bytes().to_vec(),
        "uint32" => (number as u32).to_ne_bytes().to_vec(),
        "int64" => number.to_ne_bytes().to_vec(),
        _ => panic!("{kind} is no type of the file"),
    };
    assert_eq!(decode(kind, &bytes), number as f64, "{number} is not exact in {kind}");
    bytes
}

fn decode(kind: &str, bytes: &[u8]) -> f64 {
    match kind {
        "float32" => f32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        "float64" => f64::from_ne_bytes(bytes.try_into().unwrap()),
        "bfloat16" => f32::from_bits(u32::from(u16::from_ne_bytes(bytes.try_into().unwrap())) << 16).into(),
        "float16" => half_value(u16::from_ne_bytes(bytes.try_into().unwrap())),
        "int32" => i32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        "uint32" => u32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        "int64" => i64::from_ne_bytes(bytes.try_into().unwrap()) as f64,
        _ => panic!("{kind} is no type of the file"),
    }
}

/// Memory that is aligned for every element and every struct.
struct Memory(Vec<u64>);

impl Memory {
    fn of(bytes: &[u8]) -> Self {
        Memory(bytes.chunks(8).map(|part| u64::from_ne_bytes(std::array::from_fn(|i| *part.get(i).unwrap_or(&0)))).collect())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn address(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

fn memory_of(kind: &str, numbers: &[i64]) -> Memory {
    Memory::of(&numbers.iter().flat_map(|&number| encode(kind, number)).collect::<Vec<_>>())
}

// ---- structs by the names of their fields ----------------------------------------------------------------------------------

struct Layout {
    size: usize,
    fields: BTreeMap<&'static str, (usize, &'static str)>, // offset and Rust type
}

fn type_behind<T>(_: *const T) -> &'static str {
    std::any::type_name::<T>()
}

fn layouts() -> BTreeMap<&'static str, Layout> {
    let mut layouts = BTreeMap::new();
    macro_rules! constants {
        ($name:ident) => {};
    }
    macro_rules! structs {
        ($name:ident: $($field:ident),*) => {{
            let value = MaybeUninit::<$name>::uninit();
            let base = value.as_ptr();
            let mut fields = BTreeMap::new();
            $(
                // SAFETY: an address inside of the struct is computed; nothing is read.
                let field = unsafe { ptr::addr_of!((*base).$field) };
                fields.insert(stringify!($field), (field as usize - base as usize, type_behind(field)));
            )*
            layouts.insert(stringify!($name), Layout { size: size_of::<$name>(), fields });
        }};
    }
    every_declaration!(structs, constants);
    layouts
}

struct Struct<'a> {
    name: &'a str,
    layout: &'a Layout,
    bytes: Vec<u8>,
}

impl<'a> Struct<'a> {
    fn new(layouts: &'a BTreeMap<&'static str, Layout>, name: &'a str) -> Self {
        let layout = &layouts[name];
        let mut made = Struct { name, layout, bytes: vec![0; layout.size] };
        made.set("struct_size", layout.size as i64);
        made
    }

    fn set(&mut self, field: &str, number: i64) {
        let (offset, kind) = *self.layout.fields.get(field).unwrap_or_else(|| panic!("{} has no field {field}", self.name));
        let bytes = match kind {
            "i32" => i32::try_from(number).unwrap().to_ne_bytes().to_vec(),
            "u32" => u32::try_from(number).unwrap().to_ne_bytes().to_vec(),
            "f64" => (number as f64).to_ne_bytes().to_vec(),
            _ => number.to_ne_bytes().to_vec(),
        };
        self.bytes[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }

    fn point(&mut self, field: &str, memory: &mut Memory) {
        let kind = self.layout.fields.get(field).map_or("", |&(_, kind)| kind);
        assert!(kind.starts_with('*'), "{}.{field} is no pointer", self.name);
        self.set(field, memory.address() as i64);
    }
}

// ---- the calls -----------------------------------------------------------------------------------------------------------

struct Handle(ggm_handle_t);

impl Handle {
    fn new() -> Self {
        #[cfg(feature = "load")]
        load(None).unwrap();
        let mut handle = ptr::null_mut();
        let params = ggm_create_params_t { backend: GGM_BACKEND_HOST, host_threads: 2, ..ggm_create_params_t::INIT };
        // SAFETY: both pointers are of variables here.
        check(unsafe { ggm_create(&params, &mut handle) }).unwrap();
        Handle(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: ggm_create made it, and no call is inside.
        unsafe { ggm_destroy(self.0) };
    }
}

fn check(status: ggm_status_t) -> Result<(), String> {
    if status == GGM_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: the text is valid until the next failing call of this thread.
    Err(unsafe { CStr::from_ptr(ggm_last_error()) }.to_string_lossy().into_owned())
}

macro_rules! operations {
    ($($operation:ident, $query:ident, $problem:ident, $tensors:ident;)*) => {
        const OPERATIONS: &[(&str, &str, &str)] =
            &[$((stringify!($operation), stringify!($problem), stringify!($tensors)),)*];

        fn call(handle: &Handle, operation: &str, problem: *const c_void, tensors: *const c_void) -> Result<(), String> {
            match operation {
                $(stringify!($operation) => {
                    let mut size = 0;
                    // SAFETY: the structs are those of the operation; what they point to has the sizes that the file says.
                    unsafe {
                        check($query(handle.0, problem.cast(), &mut size))?;
                        let mut memory = vec![0u8; size + GGM_WORKSPACE_ALIGNMENT];
                        let start = memory.as_ptr().align_offset(GGM_WORKSPACE_ALIGNMENT);
                        let workspace = memory[start..].as_mut_ptr().cast();
                        check($operation(handle.0, problem.cast(), tensors.cast(), workspace, size, ptr::null_mut()))
                    }
                })*
                _ => panic!("{operation} is no operation"),
            }
        }
    };
}
operations! {
    ggm_route, ggm_route_workspace_size, ggm_route_problem_t, ggm_route_tensors_t;
    ggm_permute, ggm_permute_workspace_size, ggm_permute_problem_t, ggm_permute_tensors_t;
    ggm_unpermute, ggm_unpermute_workspace_size, ggm_permute_problem_t, ggm_permute_tensors_t;
    ggm_unpermute_backward, ggm_unpermute_backward_workspace_size, ggm_permute_problem_t, ggm_unpermute_backward_tensors_t;
    ggm_grouped_gemm, ggm_grouped_gemm_workspace_size, ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t;
    ggm_grouped_gemm_array, ggm_grouped_gemm_array_workspace_size, ggm_grouped_gemm_array_problem_t,
        ggm_grouped_gemm_array_tensors_t;
    ggm_moe_forward, ggm_moe_forward_workspace_size, ggm_moe_problem_t, ggm_moe_forward_tensors_t;
    ggm_moe_backward, ggm_moe_backward_workspace_size, ggm_moe_problem_t, ggm_moe_backward_tensors_t;
}

/// Makes the call of a case; the error says what is not as the file has it.
fn run(handle: &Handle, layouts: &BTreeMap<&'static str, Layout>, case: &Case) -> Result<(), String> {
    let &(_, problem, tensors) = OPERATIONS
        .iter()
        .find(|(name, ..)| *name == case.operation)
        .unwrap_or_else(|| panic!("{} is no operation", case.operation));
    let (mut problem, mut tensors) = (Struct::new(layouts, problem), Struct::new(layouts, tensors));
    for (field, number) in &case.problem {
        problem.set(field, *number);
    }
    let mut memory: BTreeMap<&str, Memory> = BTreeMap::new();
    let mut addresses: BTreeMap<&str, Vec<u8>> = BTreeMap::new(); // of the matrices a.0, a.1, ... under a
    for array in &case.arrays {
        let poison = vec![POISON; array.numbers.len()];
        let made = memory_of(&array.kind, if array.wanted { &poison } else { &array.numbers });
        if array.wanted && memory.contains_key(array.field.as_str()) {
            continue;
        }
        let made = memory.entry(&array.field).or_insert(made);
        match array.field.split_once('.') {
            None => tensors.point(&array.field, made),
            Some((list, group)) => {
                let list = addresses.entry(list).or_default();
                assert_eq!(group, (list.len() / 8).to_string(), "{}", case.title);
                list.extend((made.address() as u64).to_ne_bytes());
            }
        }
    }
    let mut lists: Vec<_> = addresses.into_iter().map(|(field, bytes)| (field, Memory::of(&bytes))).collect();
    for (field, list) in &mut lists {
        tensors.point(field, list);
    }
    let (mut problem, mut tensors) = (Memory::of(&problem.bytes), Memory::of(&tensors.bytes));
    call(handle, &case.operation, problem.address(), tensors.address())?;

    let wanted: Vec<_> = case.arrays.iter().filter(|array| array.wanted).collect();
    assert!(!wanted.is_empty(), "{} has no result", case.title);
    for array in wanted {
        let width = encode(&array.kind, 0).len();
        let bytes = memory[array.field.as_str()].bytes();
        for (i, (element, &number)) in bytes.chunks(width).zip(&array.numbers).enumerate() {
            let got = decode(&array.kind, element);
            if got != number as f64 {
                return Err(format!("{}[{i}] is {got}; it must be {number}", array.field));
            }
        }
    }
    Ok(())
}

#[test]
fn every_call_gives_what_the_file_says() {
    let text = match text() {
        Some(text) => text,
        None => return,
    };
    let (handle, layouts, cases) = (Handle::new(), layouts(), parse(&text));
    let seen: BTreeSet<_> = cases.iter().map(|case| case.operation.as_str()).collect();
    assert_eq!(seen, OPERATIONS.iter().map(|&(name, ..)| name).collect(), "each operation has a case");
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|case| run(&handle, &layouts, case).err().map(|error| format!("{}: {error}\n", case.title)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} calls:\n{}", wrong.len(), cases.len(), wrong.concat());
}

#[test]
fn a_changed_number_is_seen() {
    let text = match text() {
        Some(text) => text,
        None => return,
    };
    let (handle, layouts) = (Handle::new(), layouts());
    let mut tried = BTreeSet::new();
    for mut case in parse(&text) {
        // One result of each operation and type, its last number.
        let array = case.arrays.iter_mut().rev().find(|array| array.wanted).unwrap();
        if !tried.insert((case.operation.clone(), array.kind.clone())) {
            continue;
        }
        let (last, field) = (array.numbers.len() - 1, array.field.clone());
        array.numbers[last] += 1;
        let text = run(&handle, &layouts, &case).expect_err(&case.title);
        assert!(text.contains(&format!("{field}[{last}] is ")), "{}: {text}", case.title);
    }
    assert!(tried.len() >= OPERATIONS.len());
}
