//! What is refused, by the library or by this layer: the status, and a text with the argument and its value.
use crate::support::*;
use ggm::*;
use std::mem::MaybeUninit;

fn route_problem() -> RouteProblem {
    RouteProblem { tokens: 2, top_k: 2, experts: 3, id_type: IndexType::Int32, ..Default::default() }
}

fn moe_problem() -> MoeProblem {
    MoeProblem {
        tokens: 2,
        top_k: 1,
        experts: 2,
        in_features: 2,
        out_features: 2,
        id_type: IndexType::Int32,
        x_type: DataType::Float32,
        weight_type: DataType::Float32,
        weight_order: Order::Nk,
        ..Default::default()
    }
}

#[test]
fn a_wrong_problem_is_refused_when_the_operation_is_made() {
    let handle = host();
    let route = |change: fn(&mut RouteProblem), status, words: &[&str]| {
        let mut problem = route_problem();
        change(&mut problem);
        refused(handle.route(&problem), status, words);
    };
    route(|p| p.top_k = 0, Status::INVALID_VALUE, &["top_k = 0", "at least 1"]);
    route(|p| p.id_type = IndexType::Default, Status::INVALID_ENUM, &["id_type = 0"]);
    route(|p| p.experts = 70_000, Status::LIMIT_EXCEEDED, &["experts = 70000", "65536"]);
    route(|p| p.ids_ld = 1, Status::INVALID_VALUE, &["ids_ld = 1", "at least 2"]);
    route(|p| p.tokens = usize::MAX, Status::INVALID_VALUE, &["tokens = 18446744073709551615", "9223372036854775807"]);
    route(|p| p.tokens = 1 << 62, Status::OVERFLOW, &["tokens * top_k"]);
    route(|p| p.sm_limit = 1 << 40, Status::INVALID_VALUE, &["sm_limit = 1099511627776", "2147483647"]);

    let moe = |change: fn(&mut MoeProblem), status, words: &[&str]| {
        let mut problem = MoeProblem { gradients: Gradients { x: true, ..Default::default() }, ..moe_problem() };
        change(&mut problem);
        refused(handle.moe_backward(&problem), status, words);
        problem.gradients = Gradients::default();
        refused(handle.moe_forward(&problem), status, words);
    };
    moe(|p| p.weight_order = Order::Unset, Status::INVALID_ENUM, &["weight_order = 0", "required"]);
    moe(|p| p.x_type = DataType::Default, Status::INVALID_ENUM, &["x_type = 0", "required"]);
    moe(|p| p.weight_type = DataType::Float16, Status::UNSUPPORTED, &["weight_type = 3", "x_type"]);
    moe(|p| p.weight_stride = Stride::Elements(1), Status::INVALID_VALUE, &["weight_stride = 1"]);
    moe(|p| p.bias_stride = Stride::Shared, Status::RESERVED_NOT_ZERO, &["bias_stride = -1", "no bias"]);
    refused(handle.moe_backward(&moe_problem()), Status::INVALID_VALUE, &["gradients = 0"]);

    let gemm = GroupedGemmProblem { a_type: DataType::Float32, b_type: DataType::Float32, ..Default::default() };
    refused(handle.grouped_gemm(&gemm), Status::INVALID_ENUM, &["b_order = 0"]);
    let tf32 = GroupedGemmProblem { b_order: Order::Nk, compute_type: ComputeType::Tf32, ..gemm.clone() };
    refused(handle.grouped_gemm(&tf32), Status::UNSUPPORTED, &["compute_type = 1", "TF32"]);
    let beta = GroupedGemmProblem { b_order: Order::Nk, beta: 1.0, ..gemm };
    refused(handle.grouped_gemm(&beta), Status::TYPE_MISMATCH, &["beta = 1", "c_type"]);
    let array = GroupedGemmArrayProblem { min_alignment: 3, a_order: AOrder::Mk, b_order: Order::Nk, ..Default::default() };
    let array = GroupedGemmArrayProblem { a_type: DataType::Float32, b_type: DataType::Float32, ..array };
    refused(handle.grouped_gemm_array(&array), Status::INVALID_VALUE, &["min_alignment = 3"]);
    let weights = PermuteProblem {
        tokens: 1,
        top_k: 1,
        experts: 1,
        token_type: DataType::Float32,
        routing_weight_type: DataType::Float32,
        ..Default::default()
    };
    refused(handle.permute(&weights), Status::RESERVED_NOT_ZERO, &["routing_weight_type = 1"]);
    handle.unpermute(&weights).unwrap();
    handle.unpermute_backward(&weights).unwrap();
    let add = PermuteProblem { add_to_y: true, ..weights };
    refused(handle.unpermute_backward(&add), Status::INVALID_FLAGS, &["flags = 0x4"]);
}

#[test]
fn wrong_parameters_of_a_handle() {
    let new = |params: CreateParams| Handle::new(&params);
    let host = || CreateParams { backend: Backend::Host, ..Default::default() };
    refused(new(CreateParams { host_threads: 2000, ..host() }), Status::INVALID_VALUE, &["host_threads = 2000", "1024"]);
    refused(new(CreateParams { host_threads: 1 << 40, ..host() }), Status::INVALID_VALUE, &["host_threads = 1099511627776"]);
    refused(new(CreateParams { device: Device::Ordinal(1), ..host() }), Status::RESERVED_NOT_ZERO, &["device = 1"]);
    let family = KernelFamily::CudaHopper;
    refused(new(CreateParams { kernel_family: family, ..host() }), Status::INVALID_VALUE, &["kernel_family = 2"]);
    new(CreateParams { device: Device::Current, ..host() }).expect("the host ignores it");
}

/// Tensors of `moe_problem`, with one thing changed.
fn run_moe(change: impl FnOnce(&mut MoeForwardTensors<'_>)) -> Result<()> {
    let handle = host();
    let forward = handle.moe_forward(&moe_problem()).unwrap();
    let mut y = [7.0f32; 4];
    let weight = [1.0f32; 8];
    let mut tensors = MoeForwardTensors {
        ids: (&[0, 1]).into(),
        x: (&[1.0f32; 4]).into(),
        weight: (&weight).into(),
        y: (&mut y).into(),
        ..Default::default()
    };
    change(&mut tensors);
    let result = forward.run(tensors, &mut forward.workspace().unwrap(), Stream::DEFAULT);
    // A refused call writes nothing.
    assert_eq!(y, if result.is_ok() { [2.0; 4] } else { [7.0; 4] });
    result
}

#[test]
fn a_slice_that_is_too_short_of_another_type_or_missing() {
    run_moe(|_| ()).unwrap();
    let value = Status::INVALID_VALUE;
    refused(run_moe(|t| t.x = (&[1.0f32; 3]).into()), value, &["x holds 3 elements", "needs 4"]);
    refused(run_moe(|t| t.weight = (&[1.0f32; 7]).into()), value, &["weight holds 7 elements", "needs 8"]);
    refused(run_moe(|t| t.ids = (&[0]).into()), value, &["ids holds 1 elements", "needs 2"]);
    refused(run_moe(|t| t.num_tokens = (&[0i32; 0]).into()), value, &["num_tokens holds 0", "needs 1"]);
    refused(run_moe(|t| t.expert_map = (&[0]).into()), value, &["expert_map holds 1", "needs 2"]);
    let kind = Status::TYPE_MISMATCH;
    refused(run_moe(|t| t.x = (&[1.0f64; 4]).into()), kind, &["x holds float64", "float32"]);
    refused(run_moe(|t| t.ids = (&[0i64, 1]).into()), kind, &["ids holds int64", "int32"]);
    refused(run_moe(|t| t.weight = (&[Bf16(0); 8]).into()), kind, &["weight holds bfloat16", "float32"]);
    refused(run_moe(|t| t.bias = (&[0.0f32; 4]).into()), kind, &["bias", "bias_type = 0"]);
    refused(run_moe(|t| t.routing_weights = (&[0.0f32; 2]).into()), kind, &["routing_weight_type = 0"]);
    refused(run_moe(|t| t.group_offsets = (&[0, 1, 2]).into()), kind, &["group_offsets", "id_type is set"]);
    refused(run_moe(|t| t.ids = Input::ABSENT), kind, &["ids is NULL"]);
    refused(run_moe(|t| t.x = Input::ABSENT), Status::NULL_POINTER, &["x is NULL", "16 bytes"]);
    refused(run_moe(|t| t.y = Output::ABSENT), Status::NULL_POINTER, &["y is NULL"]);
}

#[test]
fn device_memory_is_refused_by_a_host_handle() {
    // SAFETY: never followed, as the handle is of the host.
    let floats = unsafe { DeviceSlice::new(0x1000 as *mut f32, 64) };
    let words = unsafe { DeviceSlice::new(0x2000 as *mut u32, 8) };
    refused(run_moe(|t| t.x = floats.into()), Status::INVALID_VALUE, &["x is device memory", "slices"]);
    refused(run_moe(|t| t.y = floats.into()), Status::INVALID_VALUE, &["y is device memory"]);
    refused(run_moe(|t| t.faults = words.into()), Status::INVALID_VALUE, &["faults is device memory"]);
    let handle = host();
    let route = handle.route(&route_problem()).unwrap();
    assert!(route.workspace_bytes() > 0);
    let bytes = unsafe { DeviceSlice::new(0x1000 as *mut u8, 1 << 20) };
    refused(run_route(&route, bytes, Stream::DEFAULT), Status::INVALID_VALUE, &["workspace is device memory"]);
}

#[test]
fn parts_of_device_memory() {
    // SAFETY: only addresses are looked at.
    let all = unsafe { DeviceSlice::new(0x1000 as *mut f64, 10) };
    let part = all.slice(2..7);
    assert_eq!((part.address() as usize, part.len(), part.is_empty()), (0x1010, 5, false));
    assert!(all.slice(10..10).is_empty());
    assert!(std::panic::catch_unwind(|| all.slice(3..11)).is_err());
}

fn run_route<'w>(route: &Route<'_>, workspace: impl Into<WorkspaceRef<'w>>, stream: Stream) -> Result<()> {
    let (mut offsets, mut rows, mut assignments) = ([0i32; 4], [0i32; 4], [0i32; 4]);
    let tensors = RouteTensors {
        ids: (&[0, 1, 2, 0]).into(),
        group_offsets: (&mut offsets).into(),
        row_assignment: (&mut rows).into(),
        assignment_row: (&mut assignments).into(),
        ..Default::default()
    };
    route.run(tensors, workspace, stream)
}

#[test]
fn workspaces_and_streams() {
    let handle = host();
    let route = handle.route(&route_problem()).unwrap();
    let bytes = route.workspace_bytes();
    let mut small = Workspace::new(bytes - 1).unwrap();
    let needed = format!("needs {bytes}");
    refused(run_route(&route, &mut small, Stream::DEFAULT), Status::WORKSPACE_TOO_SMALL, &["workspace_bytes", &needed]);
    let mut none = Workspace::new(0).unwrap();
    refused(run_route(&route, &mut none, Stream::DEFAULT), Status::WORKSPACE_TOO_SMALL, &["workspace_bytes = 0", &needed]);
    small.reserve(bytes).unwrap();
    assert_eq!(small.bytes(), bytes);
    small.reserve(1).unwrap();
    assert_eq!(small.bytes(), bytes);
    run_route(&route, &mut small, Stream::DEFAULT).unwrap();

    // An arena of the caller's own, aligned by hand.
    let mut arena = vec![MaybeUninit::<u8>::uninit(); bytes + 2 * WORKSPACE_ALIGNMENT];
    let start = arena.as_ptr().align_offset(WORKSPACE_ALIGNMENT);
    run_route(&route, &mut arena[start..], Stream::DEFAULT).unwrap();
    refused(run_route(&route, &mut arena[start + 8..], Stream::DEFAULT), Status::MISALIGNED, &["workspace", "256"]);

    let stream = unsafe { Stream::from_raw(0x10 as *mut _) };
    refused(run_route(&route, &mut small, stream), Status::INVALID_STREAM, &["stream"]);
    refused(Workspace::new(usize::MAX), Status::OUT_OF_MEMORY, &["workspace_bytes = 18446744073709551615"]);
}

#[test]
fn outputs_whose_groups_have_elements_in_common() {
    let handle = host();
    let base = GroupedGemmProblem {
        groups: 3,
        m: 2,
        n: 4,
        k: 2,
        b_order: Order::Nk,
        a_type: DataType::Float32,
        b_type: DataType::Float32,
        ..Default::default()
    };
    let run = |problem: &GroupedGemmProblem, starts: Option<[i64; 3]>, sizes: [i64; 3]| {
        let product = handle.grouped_gemm(problem).unwrap();
        let (a, b, mut d) = ([1f32; 12], [1f32; 24], [0f32; 24]);
        let mut tensors = GroupedGemmTensors { a: (&a).into(), b: (&b).into(), d: (&mut d).into(), ..Default::default() };
        tensors.group_sizes = (&sizes).into();
        if let Some(starts) = &starts {
            tensors.group_offsets = starts.into();
        }
        product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT)
    };
    let index_type = IndexType::Int64;
    let masked = GroupedGemmProblem { layout: Layout::Masked, index_type, stride_d: 8, ..base };
    run(&masked, None, [2, 2, 2]).unwrap();
    refused(
        run(&GroupedGemmProblem { stride_d: 7, ..masked }, None, [2, 2, 2]),
        Status::INVALID_VALUE,
        &["d has groups 7 elements apart"],
    );
    run(&GroupedGemmProblem { ldd: 12, stride_d: 4, ..masked }, None, [2, 2, 2]).unwrap();

    let rows = GroupedGemmProblem { m: 6, group_form: GroupForm::StartsSizes, index_type, ..base };
    run(&rows, Some([4, 0, 2]), [2, 2, 2]).unwrap();
    run(&rows, Some([5, 0, 5]), [0, 5, 1]).unwrap();
    run(&rows, Some([5, -3, 6]), [900, 5, 1]).unwrap(); // clamped: 5..6, 0..5, none
    refused(run(&rows, Some([4, 0, 2]), [2, 3, 2]), Status::INVALID_VALUE, &["group 1 has rows 0..3, group 2 begins at 2"]);
    refused(run(&rows, Some([0, 0, 0]), [1, 1, 1]), Status::INVALID_VALUE, &["group_offsets"]);
}

#[test]
fn c_in_place_must_be_laid_out_as_d() {
    let handle = host();
    let problem = GroupedGemmProblem {
        groups: 1,
        m: 2,
        n: 2,
        k: 1,
        ldc: 3,
        b_order: Order::Nk,
        a_type: DataType::Float32,
        b_type: DataType::Float32,
        c_type: DataType::Float32,
        beta: 1.0,
        ..Default::default()
    };
    let product = handle.grouped_gemm(&problem).unwrap();
    let mut d = [0.0f32; 5];
    let tensors = GroupedGemmTensors {
        group_sizes: (&[2]).into(),
        a: (&[1.0f32; 2]).into(),
        b: (&[1.0f32; 2]).into(),
        c: Addend::Output,
        d: (&mut d).into(),
        ..Default::default()
    };
    refused(product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT), Status::ALIASING, &["c [", "d ["]);
}

#[test]
fn arrays_that_the_group_form_does_not_use() {
    let handle = host();
    let problem = GroupedGemmProblem {
        groups: 1,
        m: 1,
        n: 1,
        k: 1,
        group_form: GroupForm::Offsets,
        b_order: Order::Nk,
        a_type: DataType::Float32,
        b_type: DataType::Float32,
        ..Default::default()
    };
    let product = handle.grouped_gemm(&problem).unwrap();
    let mut d = [0.0f32];
    let mut run = |offsets: &[i32], sizes: Option<&[i32]>| {
        let tensors = GroupedGemmTensors {
            group_offsets: offsets.into(),
            group_sizes: sizes.map(Input::from).unwrap_or_default(),
            a: (&[3.0f32]).into(),
            b: (&[4.0f32]).into(),
            d: (&mut d).into(),
            ..Default::default()
        };
        product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT)
    };
    refused(run(&[0], None), Status::INVALID_VALUE, &["group_offsets holds 1", "needs 2"]);
    refused(run(&[0, 1], Some(&[1])), Status::TYPE_MISMATCH, &["group_sizes", "group_form"]);
    run(&[0, 1], None).unwrap();
    assert_eq!(d, [12.0]);
}

#[test]
fn statuses_have_names_and_classes() {
    for &status in Status::KNOWN {
        assert!(status.name().starts_with("GGM_STATUS_"), "{status:?}");
        assert_ne!(status.class(), StatusClass::Unknown, "{status:?}");
        assert_eq!(Status::from_code(status.code()), status);
    }
    assert_eq!(Status::TYPE_MISMATCH.name(), "GGM_STATUS_TYPE_MISMATCH");
    assert_eq!(Status::LIMIT_EXCEEDED.class(), StatusClass::Unsupported);
    let later = Status::from_code(2999);
    assert_eq!((later.name(), later.class()), ("unknown status", StatusClass::Argument));
    let error = check(2999).unwrap_err();
    assert_eq!(error.status(), later);
}

#[test]
fn the_last_error_of_a_thread() {
    std::thread::spawn(|| {
        assert_eq!(last_error(), "");
        let error = host().route(&RouteProblem::default()).unwrap_err();
        assert_eq!(last_error(), error.text());
        assert_eq!(error.to_string(), format!("{}: {}", error.status().name(), error.text()));
        let mut buffer = [b'x'; 6];
        assert_eq!(copy_last_error(&mut buffer), error.text().len());
        assert_eq!(&buffer[..5], &error.text().as_bytes()[..5]);
        assert_eq!(buffer[5], 0);
        assert_eq!(copy_last_error(&mut []), error.text().len());
    })
    .join()
    .unwrap();
}
