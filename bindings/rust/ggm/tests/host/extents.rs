//! How long each slice must be, with every stride wider than packed: exactly so long is accepted, one element less is refused
//! and names the tensor. The lengths are written out here, element by element, not taken from the crate.
use crate::support::*;
use ggm::*;

/// Runs `call` with all lengths right, then once for each tensor with that one an element short.
#[track_caller]
fn pin(lengths: &[(&str, usize)], call: impl Fn(&dyn Fn(&str) -> usize) -> Result<()>) {
    let find = |name: &str| lengths.iter().find(|(other, _)| *other == name).expect("a tensor of the table").1;
    call(&find).unwrap();
    for &(short, needed) in lengths {
        let length = |name: &str| find(name) - usize::from(name == short);
        let text = format!("{short} holds {} elements; this problem needs {needed}", needed - 1);
        refused(call(&length), Status::INVALID_VALUE, &[&text]);
    }
}

fn ones(count: usize) -> Vec<f32> {
    vec![1.0; count]
}

/// What makes the library read as far as it may: every expert has rows, every token is real.
fn indices(name: &str, count: usize) -> Vec<i32> {
    let numbers = 0..count as i32;
    match name {
        "ids" | "expert_map" => numbers.map(|index| index % 4).collect(),
        "row_assignment" | "assignment_row" => numbers.collect(),
        "num_tokens" => vec![5; count],
        "group_offsets" => [0, 1, 2, 3, 6][..count].to_vec(),
        "group_sizes" | "row_group" => vec![1; count],
        _ => vec![0; count],
    }
}

#[test]
fn route() {
    let handle = host();
    // 5 tokens of 2 slots, ids 3 apart; 6 rows at most; 7 experts, of which 4 are here.
    let problem = RouteProblem {
        tokens: 5,
        top_k: 2,
        experts: 4,
        experts_total: 7,
        max_rows: 6,
        ids_ld: 3,
        id_type: IndexType::Int32,
        ..Default::default()
    };
    let route = handle.route(&problem).unwrap();
    let lengths = [
        ("ids", 4 * 3 + 2),
        ("expert_map", 7),
        ("num_tokens", 1),
        ("group_offsets", 5),
        ("row_assignment", 6),
        ("assignment_row", 10),
    ];
    pin(&lengths, |length| {
        route.run(
            RouteTensors {
                ids: (&indices("ids", length("ids"))).into(),
                expert_map: (&indices("expert_map", length("expert_map"))).into(),
                num_tokens: (&indices("num_tokens", length("num_tokens"))).into(),
                group_offsets: (&mut indices("group_offsets", length("group_offsets"))).into(),
                row_assignment: (&mut indices("row_assignment", length("row_assignment"))).into(),
                assignment_row: (&mut indices("assignment_row", length("assignment_row"))).into(),
                ..Default::default()
            },
            &mut route.workspace()?,
            Stream::DEFAULT,
        )
    });
    // Without experts_total the map covers the local experts; a bound above all rows is no bound.
    let problem = RouteProblem { experts_total: 0, max_rows: 99, ids_ld: 0, ..problem };
    let route = handle.route(&problem).unwrap();
    let lengths = [("ids", 10), ("expert_map", 4), ("group_offsets", 5), ("row_assignment", 10), ("assignment_row", 10)];
    pin(&lengths, |length| {
        route.run(
            RouteTensors {
                ids: (&indices("ids", length("ids"))).into(),
                expert_map: (&indices("expert_map", length("expert_map"))).into(),
                group_offsets: (&mut indices("group_offsets", length("group_offsets"))).into(),
                row_assignment: (&mut indices("row_assignment", length("row_assignment"))).into(),
                assignment_row: (&mut indices("assignment_row", length("assignment_row"))).into(),
                ..Default::default()
            },
            &mut route.workspace()?,
            Stream::DEFAULT,
        )
    });
}

/// 5 tokens of 2 slots and 3 features, 6 rows at most, 4 experts; rows of tokens 7 apart, sorted rows 8, routing weights 9.
fn permute_problem(weights: bool) -> PermuteProblem {
    PermuteProblem {
        tokens: 5,
        top_k: 2,
        experts: 4,
        max_rows: 6,
        features: 3,
        token_ld: 7,
        row_ld: 8,
        routing_weights_ld: if weights { 9 } else { 0 },
        token_type: DataType::Float32,
        routing_weight_type: if weights { DataType::Float32 } else { DataType::Default },
        ..Default::default()
    }
}
const ARRAYS: [(&str, usize); 4] = [("group_offsets", 5), ("row_assignment", 6), ("assignment_row", 10), ("num_tokens", 1)];
const TOKEN_ROWS: usize = 4 * 7 + 3;
const SORTED_ROWS: usize = 5 * 8 + 3;
const WEIGHTS: usize = 4 * 9 + 2;

#[test]
fn permute_and_unpermute() {
    let handle = host();
    let permute = handle.permute(&permute_problem(false)).unwrap();
    let unpermute = handle.unpermute(&permute_problem(true)).unwrap();
    for forward in [true, false] {
        let (input, output) = if forward { (TOKEN_ROWS, SORTED_ROWS) } else { (SORTED_ROWS, TOKEN_ROWS) };
        let mut lengths = ARRAYS.to_vec();
        lengths.extend([("input", input), ("output", output)]);
        if !forward {
            lengths.push(("routing_weights", WEIGHTS));
        }
        pin(&lengths, |length| {
            let (offsets, rows) =
                (indices("group_offsets", length("group_offsets")), indices("row_assignment", length("row_assignment")));
            let (assignments, num_tokens) =
                (indices("assignment_row", length("assignment_row")), indices("num_tokens", length("num_tokens")));
            let weights = ones(if forward { 0 } else { length("routing_weights") });
            let (input, mut output) = (ones(length("input")), ones(length("output")));
            let tensors = PermuteTensors {
                group_offsets: (&offsets).into(),
                row_assignment: (&rows).into(),
                assignment_row: (&assignments).into(),
                routing_weights: if forward { Input::ABSENT } else { (&weights).into() },
                input: (&input).into(),
                output: (&mut output).into(),
                num_tokens: (&num_tokens).into(),
                ..Default::default()
            };
            if forward {
                permute.run(tensors, &mut permute.workspace()?, Stream::DEFAULT)
            } else {
                unpermute.run(tensors, &mut unpermute.workspace()?, Stream::DEFAULT)
            }
        });
    }
}

#[test]
fn unpermute_backward() {
    let handle = host();
    let backward = handle.unpermute_backward(&permute_problem(true)).unwrap();
    let mut lengths = ARRAYS.to_vec();
    lengths.extend([("routing_weights", WEIGHTS), ("rows", SORTED_ROWS), ("dy", TOKEN_ROWS)]);
    lengths.extend([("d_rows", SORTED_ROWS), ("d_routing_weights", 10)]);
    pin(&lengths, |length| {
        backward.run(
            UnpermuteBackwardTensors {
                group_offsets: (&indices("group_offsets", length("group_offsets"))).into(),
                row_assignment: (&indices("row_assignment", length("row_assignment"))).into(),
                assignment_row: (&indices("assignment_row", length("assignment_row"))).into(),
                routing_weights: (&ones(length("routing_weights"))).into(),
                rows: (&ones(length("rows"))).into(),
                dy: (&ones(length("dy"))).into(),
                d_rows: (&mut ones(length("d_rows"))).into(),
                d_routing_weights: (&mut ones(length("d_routing_weights"))).into(),
                num_tokens: (&indices("num_tokens", length("num_tokens"))).into(),
                ..Default::default()
            },
            &mut backward.workspace()?,
            Stream::DEFAULT,
        )
    });
}

/// 3 groups, m 4, n 5, k 6; rows of A 11 apart, of B 12, of C 13, of D 14.
fn gemm_problem(layout: Layout, b_order: Order, group_form: GroupForm) -> GroupedGemmProblem {
    GroupedGemmProblem {
        groups: 3,
        m: 4,
        n: 5,
        k: 6,
        lda: 11,
        ldb: 12,
        ldc: 13,
        ldd: 14,
        layout,
        group_form,
        b_order,
        a_type: DataType::Float32,
        b_type: DataType::Float32,
        c_type: DataType::Float32,
        beta: 1.0,
        ..Default::default()
    }
}

fn pin_gemm(problem: &GroupedGemmProblem, index: &[(&str, usize)], lengths: [usize; 4]) {
    let handle = host();
    let product = handle.grouped_gemm(problem).unwrap();
    let mut table = index.to_vec();
    table.extend(["a", "b", "c", "d"].into_iter().zip(lengths));
    let given = |name: &str| index.iter().any(|(other, _)| *other == name);
    pin(&table, |length| {
        let array = |name: &str| indices(name, if given(name) { length(name) } else { 0 });
        let (sizes, offsets, rows) = (array("group_sizes"), array("group_offsets"), array("row_group"));
        let input = |name: &str, array| if given(name) { Input::from(array) } else { Input::ABSENT };
        product.run(
            GroupedGemmTensors {
                group_sizes: input("group_sizes", &sizes),
                group_offsets: input("group_offsets", &offsets),
                row_group: input("row_group", &rows),
                a: (&ones(length("a"))).into(),
                b: (&ones(length("b"))).into(),
                c: (&ones(length("c"))).into(),
                d: (&mut ones(length("d"))).into(),
                ..Default::default()
            },
            &mut product.workspace()?,
            Stream::DEFAULT,
        )
    });
}

#[test]
fn grouped_gemm() {
    use GroupForm::*;
    let (a, c, d) = (3 * 11 + 6, 3 * 13 + 5, 3 * 14 + 5);
    // B of one group: [5,6] or [6,5], rows 12 apart; groups follow each other, 100 apart, or are one.
    let b_nk = 2 * (5 * 12) + 4 * 12 + 6;
    let b_kn = 2 * 100 + 5 * 12 + 5;
    let contiguous = |order, form| gemm_problem(Layout::Contiguous, order, form);
    pin_gemm(&contiguous(Order::Nk, Sizes), &[("group_sizes", 3)], [a, b_nk, c, d]);
    pin_gemm(&contiguous(Order::Nk, Offsets), &[("group_offsets", 4)], [a, b_nk, c, d]);
    pin_gemm(&contiguous(Order::Nk, Ends), &[("group_offsets", 3)], [a, b_nk, c, d]);
    pin_gemm(&contiguous(Order::Nk, StartsSizes), &[("group_offsets", 3), ("group_sizes", 3)], [a, b_nk, c, d]);
    pin_gemm(&contiguous(Order::Nk, RowGroup), &[("row_group", 4)], [a, b_nk, c, d]);
    let apart = GroupedGemmProblem { stride_b: Stride::Elements(100), ..contiguous(Order::Kn, Sizes) };
    pin_gemm(&apart, &[("group_sizes", 3)], [a, b_kn, c, d]);

    let masked = GroupedGemmProblem {
        stride_a: Stride::Elements(50),
        stride_b: Stride::Shared,
        stride_c: Stride::Elements(60),
        stride_d: 70,
        ..gemm_problem(Layout::Masked, Order::Nk, Sizes)
    };
    pin_gemm(&masked, &[("group_sizes", 3)], [2 * 50 + a, 4 * 12 + 6, 2 * 60 + c, 2 * 70 + d]);

    // A [6,4] and B [6,5]; groups of C are one matrix, those of D follow each other.
    let variable_k = GroupedGemmProblem { stride_c: Stride::Shared, ..gemm_problem(Layout::VariableK, Order::Unset, RowGroup) };
    pin_gemm(&variable_k, &[("row_group", 6)], [5 * 11 + 4, 5 * 12 + 5, c, 2 * (4 * 14) + d]);
}

#[test]
fn arrays_of_grouped_gemm_array() {
    let handle = host();
    // Bounds of 0: every group is empty, whatever the arrays say.
    let problem = GroupedGemmArrayProblem {
        groups: 3,
        a_order: AOrder::Mk,
        b_order: Order::Nk,
        a_type: DataType::Float32,
        b_type: DataType::Float32,
        ..Default::default()
    };
    let product = handle.grouped_gemm_array(&problem).unwrap();
    let names = ["m", "n", "k", "lda", "ldb", "ldc", "ldd"];
    pin(&names.map(|name| (name, 3)), |length| {
        // SAFETY: no group has elements.
        unsafe {
            product.run(
                GroupedGemmArrayTensors {
                    m: (&indices("m", length("m"))).into(),
                    n: (&indices("n", length("n"))).into(),
                    k: (&indices("k", length("k"))).into(),
                    lda: (&indices("lda", length("lda"))).into(),
                    ldb: (&indices("ldb", length("ldb"))).into(),
                    ldc: (&indices("ldc", length("ldc"))).into(),
                    ldd: (&indices("ldd", length("ldd"))).into(),
                    ..Default::default()
                },
                &mut product.workspace()?,
                Stream::DEFAULT,
            )
        }
    });
}

/// 5 tokens of 2 slots, 6 rows at most, 4 experts, K 3, N 2.
fn moe_problem() -> MoeProblem {
    MoeProblem {
        tokens: 5,
        top_k: 2,
        experts: 4,
        max_rows: 6,
        routing_weights_ld: 9,
        in_features: 3,
        out_features: 2,
        x_ld: 10,
        y_ld: 11,
        weight_ld: 12,
        weight_stride: Stride::Elements(40),
        bias_stride: Stride::Elements(5),
        dy_ld: 13,
        dx_ld: 14,
        d_weight_ld: 15,
        d_weight_stride: 50,
        d_bias_stride: 6,
        routing_weight_type: DataType::Float32,
        x_type: DataType::Float32,
        weight_type: DataType::Float32,
        bias_type: DataType::Float32,
        gradients: Gradients { x: true, weight: true, routing_weights: true, bias: true },
        ..Default::default()
    }
}

fn pin_moe_forward(problem: &MoeProblem, lengths: &[(&str, usize)]) {
    let handle = host();
    let forward = handle.moe_forward(problem).unwrap();
    let given = |name: &str| lengths.iter().any(|(other, _)| *other == name);
    pin(lengths, |length| {
        let array = |name: &str| indices(name, if given(name) { length(name) } else { 0 });
        let input = |name: &str, array| if given(name) { Input::from(array) } else { Input::ABSENT };
        let (ids, map, offsets) = (array("ids"), array("expert_map"), array("group_offsets"));
        let (rows, assignments) = (array("row_assignment"), array("assignment_row"));
        forward.run(
            MoeForwardTensors {
                ids: input("ids", &ids),
                expert_map: input("expert_map", &map),
                group_offsets: input("group_offsets", &offsets),
                row_assignment: input("row_assignment", &rows),
                assignment_row: input("assignment_row", &assignments),
                routing_weights: (&ones(length("routing_weights"))).into(),
                x: (&ones(length("x"))).into(),
                weight: (&ones(length("weight"))).into(),
                bias: (&ones(length("bias"))).into(),
                y: (&mut ones(length("y"))).into(),
                num_tokens: (&indices("num_tokens", length("num_tokens"))).into(),
                ..Default::default()
            },
            &mut forward.workspace()?,
            Stream::DEFAULT,
        )
    });
}

fn pin_moe_backward(problem: &MoeProblem, lengths: &[(&str, usize)]) {
    let handle = host();
    let backward = handle.moe_backward(problem).unwrap();
    let given = |name: &str| lengths.iter().any(|(other, _)| *other == name);
    pin(lengths, |length| {
        let array = |name: &str| indices(name, if given(name) { length(name) } else { 0 });
        let input = |name: &str, array| if given(name) { Input::from(array) } else { Input::ABSENT };
        let (ids, map, offsets) = (array("ids"), array("expert_map"), array("group_offsets"));
        let (rows, assignments) = (array("row_assignment"), array("assignment_row"));
        backward.run(
            MoeBackwardTensors {
                ids: input("ids", &ids),
                expert_map: input("expert_map", &map),
                group_offsets: input("group_offsets", &offsets),
                row_assignment: input("row_assignment", &rows),
                assignment_row: input("assignment_row", &assignments),
                routing_weights: (&ones(length("routing_weights"))).into(),
                x: (&ones(length("x"))).into(),
                weight: (&ones(length("weight"))).into(),
                bias: (&ones(length("bias"))).into(),
                dy: (&ones(length("dy"))).into(),
                dx: (&mut ones(length("dx"))).into(),
                d_weight: (&mut ones(length("d_weight"))).into(),
                d_bias: (&mut ones(length("d_bias"))).into(),
                d_routing_weights: (&mut ones(length("d_routing_weights"))).into(),
                num_tokens: (&indices("num_tokens", length("num_tokens"))).into(),
                ..Default::default()
            },
            &mut backward.workspace()?,
            Stream::DEFAULT,
        )
    });
}

#[test]
fn moe_from_ids_by_tokens() {
    let problem =
        MoeProblem { id_type: IndexType::Int32, ids_ld: 8, experts_total: 7, weight_order: Order::Nk, ..moe_problem() };
    let inputs = [("ids", 4 * 8 + 2), ("expert_map", 7), ("routing_weights", 4 * 9 + 2), ("num_tokens", 1)];
    // A weight matrix is [2,3] as stored.
    let parameters = [("x", 4 * 10 + 3), ("weight", 3 * 40 + 12 + 3), ("bias", 3 * 5 + 2)];
    let results = [("dx", 4 * 14 + 3), ("d_weight", 3 * 50 + 15 + 3), ("d_bias", 3 * 6 + 2), ("d_routing_weights", 10)];
    pin_moe_forward(&problem, &[&inputs[..], &parameters, &[("y", 4 * 11 + 2)]].concat());
    pin_moe_backward(&problem, &[&inputs[..], &parameters, &[("dy", 4 * 13 + 2)], &results].concat());
}

#[test]
fn moe_from_routing_arrays_by_sorted_rows() {
    let problem = MoeProblem {
        weight_order: Order::Kn,
        weight_stride: Stride::Shared,
        d_weight_stride: 0,
        bias_stride: Stride::Shared,
        d_bias_stride: 0,
        input_rows: Rows::Grouped,
        output_rows: Rows::Grouped,
        ..moe_problem()
    };
    let inputs = [&ARRAYS[..], &[("routing_weights", 4 * 9 + 2)]].concat();
    // A weight matrix is [3,2] as stored.
    let parameters = [("x", 5 * 10 + 3), ("weight", 2 * 12 + 2), ("bias", 2)];
    let results = [("dx", 5 * 14 + 3), ("d_weight", 3 * (3 * 15) + 2 * 15 + 2), ("d_bias", 8), ("d_routing_weights", 10)];
    pin_moe_forward(&problem, &[&inputs[..], &parameters, &[("y", 5 * 11 + 2)]].concat());
    pin_moe_backward(&problem, &[&inputs[..], &parameters, &[("dy", 5 * 13 + 2)], &results].concat());
}
