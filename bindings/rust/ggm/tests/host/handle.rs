use crate::support::*;
use ggm::*;
use std::alloc::{alloc, dealloc, Layout as MemoryLayout};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[test]
fn version_and_build() {
    assert_eq!(version(), sys::GGM_VERSION);
    let number = format!("libggm {}.{}.{}", sys::GGM_VERSION_MAJOR, sys::GGM_VERSION_MINOR, sys::GGM_VERSION_PATCH);
    assert!(build_info().starts_with(&number), "{}", build_info());
}

#[test]
fn info_tells_what_was_taken() {
    let params =
        CreateParams { backend: Backend::Host, kernel_family: KernelFamily::HostPlain, host_threads: 2, ..Default::default() };
    let info = Handle::new(&params).unwrap().info().unwrap();
    assert_eq!(info.backend, Backend::Host);
    assert_eq!(info.kernel_family, KernelFamily::HostPlain.code());
    assert_eq!((info.device, info.compute_capability, info.multiprocessors), (0, 0, 2));
    assert_eq!(info.workspace_alignment as usize, WORKSPACE_ALIGNMENT);
}

#[test]
fn handles_and_operations_go_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Handle>();
    is_shared::<Route<'_>>();
    is_shared::<MoeBackward<'_>>();
    is_shared::<Workspace>();
    is_shared::<Input<'_>>();
    is_shared::<Output<'_>>();
    is_shared::<Faults>();
    is_shared::<Error>();
}

#[test]
fn many_threads_share_one_handle_and_one_array_of_faults() {
    let handle = host();
    let problem = RouteProblem { tokens: 4, top_k: 1, experts: 2, id_type: IndexType::Int32, ..Default::default() };
    let route = handle.route(&problem).unwrap();
    let faults = Faults::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut workspace = route.workspace().unwrap();
                for _ in 0..50 {
                    let (mut offsets, mut rows, mut assignments) = ([0i32; 3], [0i32; 4], [0i32; 4]);
                    let tensors = RouteTensors {
                        ids: (&[1, 0, 7, 1]).into(),
                        faults: (&faults).into(),
                        group_offsets: (&mut offsets).into(),
                        row_assignment: (&mut rows).into(),
                        assignment_row: (&mut assignments).into(),
                        ..Default::default()
                    };
                    route.run(tensors, &mut workspace, Stream::DEFAULT).unwrap();
                    assert_eq!((offsets, rows, assignments), ([0, 1, 3], [1, 0, 3, -1], [1, 0, -1, 2]));
                }
            });
        }
    });
    assert_eq!(faults.count(Fault::BadId), 200);
}

#[test]
fn log_goes_to_the_callback_and_a_panic_there_is_dropped() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let params = CreateParams {
        backend: Backend::Host,
        log_level: LogLevel::Plan,
        log: Some(Arc::new(move |level, line: &str| {
            seen.lock().unwrap().push((level, line.to_string()));
            if line.contains("tokens=0") {
                std::panic::resume_unwind(Box::new("a panic without a message on stderr"));
            }
        })),
        ..Default::default()
    };
    let handle = Handle::new(&params).unwrap();
    drop(params);
    for tokens in [0, 1] {
        let problem = RouteProblem { tokens, top_k: 1, experts: 1, id_type: IndexType::Int32, ..Default::default() };
        let route = handle.route(&problem).unwrap();
        let (mut offsets, mut rows, mut assignments) = ([0i32; 2], [0i32; 1], [0i32; 1]);
        let mut run = |ids: &[i32]| {
            let tensors = RouteTensors {
                ids: ids.into(),
                group_offsets: (&mut offsets).into(),
                row_assignment: (&mut rows).into(),
                assignment_row: (&mut assignments).into(),
                ..Default::default()
            };
            route.run(tensors, &mut route.workspace().unwrap(), Stream::DEFAULT)
        };
        run(&[0]).unwrap();
    }
    // A failing call is logged as one.
    let route = handle
        .route(&RouteProblem { tokens: 1, top_k: 1, experts: 1, id_type: IndexType::Int32, ..Default::default() })
        .unwrap();
    refused(
        route.run(RouteTensors::default(), &mut route.workspace().unwrap(), Stream::DEFAULT),
        Status::NULL_POINTER,
        &["ids is NULL"],
    );
    let lines = lines.lock().unwrap();
    assert!(lines.iter().any(|(level, line)| *level == LogLevel::Plan && line.contains("tokens=0")), "{lines:?}");
    assert!(lines.iter().any(|(level, line)| *level == LogLevel::Plan && line.contains("tokens=1")), "{lines:?}");
    assert!(lines.iter().any(|(level, line)| *level == LogLevel::Error && line.contains("ids is NULL")), "{lines:?}");
}

/// Remembers what is allocated, with its alignment.
#[derive(Default)]
struct Ledger(Mutex<(HashMap<usize, MemoryLayout>, usize)>);

// SAFETY: memory of the global allocator with the layout that is asked for.
unsafe impl HostAllocator for Ledger {
    fn allocate(&self, bytes: usize, alignment: usize) -> *mut u8 {
        let layout = MemoryLayout::from_size_align(bytes.max(1), alignment).unwrap();
        let pointer = unsafe { alloc(layout) };
        let mut ledger = self.0.lock().unwrap();
        ledger.0.insert(pointer as usize, layout);
        ledger.1 += 1;
        pointer
    }

    unsafe fn deallocate(&self, pointer: *mut u8, bytes: usize) {
        let layout = self.0.lock().unwrap().0.remove(&(pointer as usize)).expect("memory of this allocator");
        assert_eq!(layout.size(), bytes.max(1));
        unsafe { dealloc(pointer, layout) }
    }
}

#[test]
fn a_handle_lives_in_memory_of_the_given_allocator() {
    let ledger = Arc::new(Ledger::default());
    let params = CreateParams { backend: Backend::Host, allocator: Some(ledger.clone()), ..Default::default() };
    let handle = Handle::new(&params).unwrap();
    assert!(ledger.0.lock().unwrap().1 > 0);
    assert!(!ledger.0.lock().unwrap().0.is_empty());
    drop(handle);
    assert!(ledger.0.lock().unwrap().0.is_empty());
}

struct NoMemory;
// SAFETY: it never gives any.
unsafe impl HostAllocator for NoMemory {
    fn allocate(&self, _: usize, _: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
    unsafe fn deallocate(&self, _: *mut u8, _: usize) {
        unreachable!("nothing was given");
    }
}

#[test]
fn creation_without_memory_is_an_error() {
    let params = CreateParams { backend: Backend::Host, allocator: Some(Arc::new(NoMemory)), ..Default::default() };
    refused(Handle::new(&params), Status::OUT_OF_MEMORY, &["allocator gave no"]);
}

#[test]
fn a_c_handle_is_taken_over() {
    let mut raw = std::ptr::null_mut();
    let params = sys::ggm_create_params_t { backend: sys::GGM_BACKEND_HOST, ..Default::default() };
    check(unsafe { sys::ggm_create(&params, &mut raw) }).unwrap();
    let handle = unsafe { Handle::from_raw(raw) }.unwrap();
    assert_eq!(handle.as_raw(), raw);
    assert_eq!(handle.info().unwrap().backend, Backend::Host);
    refused(unsafe { Handle::from_raw(std::ptr::null_mut()) }, Status::INVALID_HANDLE, &["handle is NULL"]);
}

#[test]
fn cuda_is_there_or_refused_with_a_reason() {
    match Handle::on(Backend::Cuda) {
        // A machine with a GPU: slices of the host must never reach it.
        Ok(handle) => {
            assert_eq!(handle.info().unwrap().backend, Backend::Cuda);
            let problem = RouteProblem { tokens: 1, top_k: 1, experts: 1, id_type: IndexType::Int32, ..Default::default() };
            let route = handle.route(&problem).unwrap();
            let tensors = RouteTensors { ids: (&[0]).into(), ..Default::default() };
            let mut workspace = Workspace::new(route.workspace_bytes()).unwrap();
            refused(route.run(tensors, &mut workspace, Stream::DEFAULT), Status::INVALID_VALUE, &["ids is host memory"]);
            refused(route.workspace(), Status::INVALID_VALUE, &["workspace is host memory"]);
        }
        Err(error) => {
            let known = [Status::BACKEND_UNAVAILABLE, Status::UNSUPPORTED_DEVICE, Status::UNSUPPORTED, Status::CUDA_ERROR];
            assert!(known.contains(&error.status()), "{error}");
            assert!(!error.text().is_empty());
        }
    }
}
