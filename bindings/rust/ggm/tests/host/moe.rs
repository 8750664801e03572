use crate::for_each_type;
use crate::support::*;
use ggm::*;

const TOKENS: usize = 9;
const TOP_K: usize = 3;
const EXPERTS: usize = 4;
const K: usize = 4;
const N: usize = 3;
const SLOTS: usize = TOKENS * TOP_K;

/// A layer of small integers.
struct Layer<T> {
    ids: Vec<i32>,
    routing_weights: Vec<T>,
    x: Vec<T>,
    weight: Vec<T>, // [E,N,K]
    bias: Vec<T>,
    dy: Vec<T>,
}

impl<T: Number> Layer<T> {
    fn new() -> Self {
        let mut draw = Draw::new(9);
        Layer {
            ids: draw.ids(SLOTS, EXPERTS),
            routing_weights: draw.weights(SLOTS),
            x: draw.numbers(TOKENS * K),
            weight: draw.numbers(EXPERTS * N * K),
            bias: draw.numbers(EXPERTS * N),
            dy: draw.numbers(TOKENS * N),
        }
    }

    fn w(&self, expert: usize, n: usize, k: usize) -> f64 {
        self.weight[(expert * N + n) * K + k].value()
    }

    /// The weights as [E,K,N].
    fn weight_kn(&self) -> Vec<T> {
        let mut kn = Vec::new();
        for expert in 0..EXPERTS {
            for k in 0..K {
                for n in 0..N {
                    kn.push(T::of(self.w(expert, n, k)));
                }
            }
        }
        kn
    }

    /// x[t] @ W_e^T + bias_e, one element.
    fn product(&self, token: usize, expert: usize, n: usize) -> f64 {
        let sum: f64 = (0..K).map(|k| self.x[token * K + k].value() * self.w(expert, n, k)).sum();
        sum + self.bias[expert * N + n].value()
    }

    /// (token, slot, expert, routing weight) of every slot that has an expert.
    fn slots(&self) -> impl Iterator<Item = (usize, usize, usize, f64)> + '_ {
        self.ids.iter().enumerate().filter_map(move |(slot, &id)| {
            usize::try_from(id).ok().map(|expert| (slot / TOP_K, slot, expert, self.routing_weights[slot].value()))
        })
    }

    fn y(&self) -> Vec<f64> {
        let mut y = vec![0.0; TOKENS * N];
        for (token, _, expert, w) in self.slots() {
            for n in 0..N {
                y[token * N + n] += w * self.product(token, expert, n);
            }
        }
        y
    }
}

fn problem<T: Number>() -> MoeProblem {
    MoeProblem {
        tokens: TOKENS,
        top_k: TOP_K,
        experts: EXPERTS,
        in_features: K,
        out_features: N,
        id_type: IndexType::Int32,
        routing_weight_type: T::DATA,
        x_type: T::DATA,
        weight_type: T::DATA,
        bias_type: T::DATA,
        weight_order: Order::Nk,
        ..Default::default()
    }
}

fn forward_from_ids<T: Number>() {
    let layer = Layer::<T>::new();
    let handle = host();
    for (order, weight) in [(Order::Nk, layer.weight.clone()), (Order::Kn, layer.weight_kn())] {
        for combine in [Combine::Auto, Combine::Ordered, Combine::TwoStep] {
            for add in [false, true] {
                let p = MoeProblem { weight_order: order, combine, add_to_y: add, ..problem::<T>() };
                let forward = handle.moe_forward(&p).unwrap();
                let mut y: Vec<T> = vec![T::of(3.0); TOKENS * N];
                let tensors = MoeForwardTensors {
                    ids: (&layer.ids).into(),
                    routing_weights: (&layer.routing_weights).into(),
                    x: (&layer.x).into(),
                    weight: (&weight).into(),
                    bias: (&layer.bias).into(),
                    y: (&mut y).into(),
                    ..Default::default()
                };
                forward.run(tensors, &mut forward.workspace().unwrap(), Stream::DEFAULT).unwrap();
                let old = if add { 3.0 } else { 0.0 };
                let expected: Vec<f64> = layer.y().iter().map(|value| value + old).collect();
                assert_eq!(values(&y), expected, "{order:?} {combine:?} add {add}");
            }
        }
    }
}

/// Two calls with an activation of the caller's own between them: tokens to sorted rows, then sorted rows to tokens.
fn forward_by_routing_arrays_and_grouped_rows<T: Number>() {
    let layer = Layer::<T>::new();
    let handle = host();
    let r = routing(&layer.ids, EXPERTS);
    let arrays = MoeProblem { id_type: IndexType::Default, ..problem::<T>() };
    let up = handle
        .moe_forward(&MoeProblem { output_rows: Rows::Grouped, routing_weight_type: DataType::Default, ..arrays.clone() })
        .unwrap();
    let mut rows: Vec<T> = poison(SLOTS * N);
    let mut workspace = up.workspace().unwrap();
    let tensors = MoeForwardTensors {
        group_offsets: (&r.group_offsets).into(),
        row_assignment: (&r.row_assignment).into(),
        assignment_row: (&r.assignment_row).into(),
        x: (&layer.x).into(),
        weight: (&layer.weight).into(),
        bias: (&layer.bias).into(),
        y: (&mut rows).into(),
        ..Default::default()
    };
    up.run(tensors, &mut workspace, Stream::DEFAULT).unwrap();
    for (row, &assignment) in r.row_assignment.iter().enumerate() {
        for n in 0..N {
            let expected = if assignment < 0 { 0.0 } else { layer.product(assignment as usize / TOP_K, r.row_expert[row], n) };
            assert_eq!(rows[row * N + n].value(), expected, "row {row}, feature {n}");
        }
    }

    // The second product takes the rows back to tokens, by a matrix [E,1,N] of ones: it adds the features of each row up.
    let down = handle
        .moe_forward(&MoeProblem {
            input_rows: Rows::Grouped,
            in_features: N,
            out_features: 1,
            bias_type: DataType::Default,
            weight_stride: Stride::Shared,
            ..arrays
        })
        .unwrap();
    workspace.reserve(down.workspace_bytes()).unwrap();
    // The activation: the sign, so that sums stay exact in 8 bits.
    let rows: Vec<T> = rows.iter().map(|value| T::of(if value.value() < 0.0 { -1.0 } else { 1.0 })).collect();
    let mut y: Vec<T> = poison(TOKENS);
    let ones = [T::of(1.0); N];
    let tensors = MoeForwardTensors {
        group_offsets: (&r.group_offsets).into(),
        row_assignment: (&r.row_assignment).into(),
        assignment_row: (&r.assignment_row).into(),
        routing_weights: (&layer.routing_weights).into(),
        x: (&rows).into(),
        weight: (&ones).into(),
        y: (&mut y).into(),
        ..Default::default()
    };
    down.run(tensors, &mut workspace, Stream::DEFAULT).unwrap();
    let mut expected = vec![0.0; TOKENS];
    for (token, slot, _, w) in layer.slots() {
        let row = r.assignment_row[slot] as usize;
        expected[token] += w * (0..N).map(|n| rows[row * N + n].value()).sum::<f64>();
    }
    assert_eq!(values(&y), expected);
}

fn backward_gives_all_gradients<T: Number>() {
    let layer = Layer::<T>::new();
    let handle = host();
    let r = routing(&layer.ids, EXPERTS);
    for from_ids in [true, false] {
        for add in [0.0, 1.0] {
            let p = MoeProblem {
                id_type: if from_ids { IndexType::Int32 } else { IndexType::Default },
                gradients: Gradients { x: true, weight: true, routing_weights: true, bias: true },
                add_to_dx: add != 0.0,
                add_to_d_weight: add != 0.0,
                add_to_d_bias: add != 0.0,
                ..problem::<T>()
            };
            let backward = handle.moe_backward(&p).unwrap();
            let one = T::of(1.0);
            let (mut dx, mut d_weight) = (vec![one; TOKENS * K], vec![one; EXPERTS * N * K]);
            let (mut d_bias, mut d_routing_weights) = (vec![one; EXPERTS * N], vec![f32::NAN; SLOTS]);
            let mut tensors = MoeBackwardTensors {
                routing_weights: (&layer.routing_weights).into(),
                x: (&layer.x).into(),
                weight: (&layer.weight).into(),
                bias: (&layer.bias).into(),
                dy: (&layer.dy).into(),
                dx: (&mut dx).into(),
                d_weight: (&mut d_weight).into(),
                d_bias: (&mut d_bias).into(),
                d_routing_weights: (&mut d_routing_weights).into(),
                ..Default::default()
            };
            if from_ids {
                tensors.ids = (&layer.ids).into();
            } else {
                tensors.group_offsets = (&r.group_offsets).into();
                tensors.row_assignment = (&r.row_assignment).into();
                tensors.assignment_row = (&r.assignment_row).into();
            }
            backward.run(tensors, &mut backward.workspace().unwrap(), Stream::DEFAULT).unwrap();

            let (mut x_expected, mut w_expected) = (vec![add; TOKENS * K], vec![add; EXPERTS * N * K]);
            let (mut b_expected, mut r_expected) = (vec![add; EXPERTS * N], vec![0.0; SLOTS]);
            for (token, slot, expert, w) in layer.slots() {
                for n in 0..N {
                    let dy = layer.dy[token * N + n].value();
                    b_expected[expert * N + n] += w * dy;
                    r_expected[slot] += dy * layer.product(token, expert, n);
                    for k in 0..K {
                        x_expected[token * K + k] += w * dy * layer.w(expert, n, k);
                        w_expected[(expert * N + n) * K + k] += w * dy * layer.x[token * K + k].value();
                    }
                }
            }
            assert_eq!(values(&dx), x_expected, "dx, from ids {from_ids}, add {add}");
            assert_eq!(values(&d_weight), w_expected, "d_weight, from ids {from_ids}, add {add}");
            assert_eq!(values(&d_bias), b_expected, "d_bias, from ids {from_ids}, add {add}");
            assert_eq!(values(&d_routing_weights), r_expected, "d_routing_weights, from ids {from_ids}, add {add}");
        }
    }
}

for_each_type!(forward_from_ids, forward_by_routing_arrays_and_grouped_rows, backward_gives_all_gradients);

/// Every leading dimension and stride wider than packed, on tensors whose last row ends with its last element.
#[test]
fn wider_rows_everywhere() {
    let layer = Layer::<f32>::new();
    let handle = host();
    let spread = |packed: &[f32], rows: usize, columns: usize, ld: usize| {
        let mut wide = vec![POISON as f32; (rows - 1) * ld + columns];
        for row in 0..rows {
            wide[row * ld..row * ld + columns].copy_from_slice(&packed[row * columns..(row + 1) * columns]);
        }
        wide
    };
    let ids: Vec<i64> = {
        let mut wide = vec![77; TOKENS * 4 - 1];
        for (slot, &id) in layer.ids.iter().enumerate() {
            wide[slot / TOP_K * 4 + slot % TOP_K] = i64::from(id);
        }
        wide
    };
    let (x, weights) = (spread(&layer.x, TOKENS, K, 6), spread(&layer.routing_weights, TOKENS, TOP_K, 5));
    // Rows of a matrix 7 apart, matrices 3 rows and 2 elements apart.
    let matrices: Vec<Vec<f32>> = layer.weight.chunks(N * K).map(|matrix| spread(matrix, N, K, 7)).collect();
    let mut weight = vec![POISON as f32; (EXPERTS - 1) * 23 + matrices[0].len()];
    for (expert, matrix) in matrices.iter().enumerate() {
        weight[expert * 23..expert * 23 + matrix.len()].copy_from_slice(matrix);
    }
    let p = MoeProblem {
        id_type: IndexType::Int64,
        ids_ld: 4,
        routing_weights_ld: 5,
        x_ld: 6,
        y_ld: 8,
        weight_ld: 7,
        weight_stride: Stride::Elements(23),
        bias_stride: Stride::Elements(4),
        sm_limit: 1,
        ..problem::<f32>()
    };
    let bias = spread(&layer.bias, EXPERTS, N, 4);
    let forward = handle.moe_forward(&p).unwrap();
    let mut y = vec![POISON as f32; (TOKENS - 1) * 8 + N];
    let tensors = MoeForwardTensors {
        ids: (&ids).into(),
        routing_weights: (&weights).into(),
        x: (&x).into(),
        weight: (&weight).into(),
        bias: (&bias).into(),
        y: (&mut y).into(),
        ..Default::default()
    };
    forward.run(tensors, &mut forward.workspace().unwrap(), Stream::DEFAULT).unwrap();
    let packed: Vec<f32> = layer.y().iter().map(|&value| value as f32).collect();
    assert_eq!(y, spread(&packed, TOKENS, N, 8));
}

#[test]
fn local_experts_real_tokens_and_faults() {
    let handle = host();
    let p = MoeProblem {
        tokens: 3,
        top_k: 1,
        experts: 1,
        experts_total: 4,
        in_features: 1,
        out_features: 1,
        id_type: IndexType::Int32,
        x_type: DataType::Float16,
        weight_type: DataType::Float16,
        y_type: DataType::Float32,
        product_type: DataType::Float32,
        weight_order: Order::Kn,
        ..Default::default()
    };
    let forward = handle.moe_forward(&p).unwrap();
    let mut y = [9.0f32; 3];
    let faults = Faults::new();
    let x: Vec<F16> = [2.0, 3.0, 4.0].iter().map(|&value| F16::of(value)).collect();
    let ten = [F16::of(10.0)];
    let tensors = MoeForwardTensors {
        ids: (&[2, 9, 2]).into(),
        expert_map: (&[-1, -1, 0, -1]).into(),
        x: (&x).into(),
        weight: (&ten).into(),
        y: (&mut y).into(),
        num_tokens: (&[2]).into(),
        faults: (&faults).into(),
        ..Default::default()
    };
    forward.run(tensors, &mut forward.workspace().unwrap(), Stream::DEFAULT).unwrap();
    assert_eq!(y, [20.0, 0.0, 0.0]);
    assert_eq!(faults.count(Fault::BadId), 1);
}

#[test]
fn one_gradient_alone_needs_only_its_inputs() {
    let layer = Layer::<f32>::new();
    let handle = host();
    let p = MoeProblem { gradients: Gradients { bias: true, ..Default::default() }, ..problem::<f32>() };
    let backward = handle.moe_backward(&p).unwrap();
    let mut d_bias = [0.0f32; EXPERTS * N];
    let tensors = MoeBackwardTensors {
        ids: (&layer.ids).into(),
        routing_weights: (&layer.routing_weights).into(),
        dy: (&layer.dy).into(),
        d_bias: (&mut d_bias).into(),
        ..Default::default()
    };
    backward.run(tensors, &mut backward.workspace().unwrap(), Stream::DEFAULT).unwrap();
    let mut expected = [0.0; EXPERTS * N];
    for (token, _, expert, w) in layer.slots() {
        for n in 0..N {
            expected[expert * N + n] += w * layer.dy[token * N + n].value();
        }
    }
    assert_eq!(values(&d_bias), expected);
}

#[test]
fn float32_gradients_of_bfloat16() {
    let layer = Layer::<Bf16>::new();
    let handle = host();
    let p = MoeProblem {
        gradients: Gradients { x: true, weight: true, bias: true, ..Default::default() },
        bias_type: DataType::Default,
        dx_type: DataType::Float32,
        d_weight_type: DataType::Float32,
        d_bias_type: DataType::Float32,
        ..problem::<Bf16>()
    };
    let backward = handle.moe_backward(&p).unwrap();
    let (mut dx, mut d_weight, mut d_bias) = ([9.0f32; TOKENS * K], [9.0f32; EXPERTS * N * K], [9.0f32; EXPERTS * N]);
    let tensors = MoeBackwardTensors {
        ids: (&layer.ids).into(),
        routing_weights: (&layer.routing_weights).into(),
        x: (&layer.x).into(),
        weight: (&layer.weight).into(),
        dy: (&layer.dy).into(),
        dx: (&mut dx).into(),
        d_weight: (&mut d_weight).into(),
        d_bias: (&mut d_bias).into(),
        ..Default::default()
    };
    backward.run(tensors, &mut backward.workspace().unwrap(), Stream::DEFAULT).unwrap();
    let (mut x_expected, mut w_expected) = ([0.0; TOKENS * K], [0.0; EXPERTS * N * K]);
    let mut b_expected = [0.0; EXPERTS * N];
    for (token, _, expert, w) in layer.slots() {
        for n in 0..N {
            let dy = w * layer.dy[token * N + n].value();
            b_expected[expert * N + n] += dy;
            for k in 0..K {
                x_expected[token * K + k] += dy * layer.w(expert, n, k);
                w_expected[(expert * N + n) * K + k] += dy * layer.x[token * K + k].value();
            }
        }
    }
    assert_eq!(values(&dx), x_expected);
    assert_eq!(values(&d_weight), w_expected);
    assert_eq!(values(&d_bias), b_expected);
    let mut wrong = [Bf16(0); EXPERTS * N];
    let tensors = MoeBackwardTensors { d_bias: (&mut wrong).into(), ..Default::default() };
    let result = backward.run(tensors, &mut backward.workspace().unwrap(), Stream::DEFAULT);
    refused(result, Status::TYPE_MISMATCH, &["d_bias holds bfloat16", "float32"]);
}
