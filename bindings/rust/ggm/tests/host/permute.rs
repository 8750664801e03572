use crate::for_each_type;
use crate::support::*;
use ggm::*;

const TOKENS: usize = 7;
const TOP_K: usize = 3;
const EXPERTS: usize = 4;
const FEATURES: usize = 5;

fn problem<T: Number>() -> PermuteProblem {
    PermuteProblem {
        tokens: TOKENS,
        top_k: TOP_K,
        experts: EXPERTS,
        features: FEATURES,
        token_type: T::DATA,
        ..Default::default()
    }
}

fn permute_copies_rows<T: Number>() {
    let mut draw = Draw::new(2);
    let ids = draw.ids(TOKENS * TOP_K, EXPERTS);
    let r = routing(&ids, EXPERTS);
    let handle = host();
    // Wider rows on both sides; what lies between rows stays.
    let p = PermuteProblem { token_ld: FEATURES + 1, row_ld: FEATURES + 2, ..problem::<T>() };
    let x: Vec<T> = draw.numbers(TOKENS * (FEATURES + 1));
    let rows = TOKENS * TOP_K;
    let mut out: Vec<T> = poison(rows * (FEATURES + 2));
    let permute = handle.permute(&p).unwrap();
    assert_eq!(permute.problem(), &p);
    let tensors = PermuteTensors {
        group_offsets: (&r.group_offsets).into(),
        row_assignment: (&r.row_assignment).into(),
        assignment_row: (&r.assignment_row).into(),
        input: (&x).into(),
        output: (&mut out).into(),
        ..Default::default()
    };
    permute.run(tensors, &mut permute.workspace().unwrap(), Stream::DEFAULT).unwrap();
    for row in 0..rows {
        for column in 0..FEATURES + 2 {
            let expected = match r.row_assignment[row] {
                _ if column >= FEATURES => POISON,
                -1 => 0.0,
                a => x[a as usize / TOP_K * (FEATURES + 1) + column].value(),
            };
            assert_eq!(out[row * (FEATURES + 2) + column].value(), expected, "row {row}, column {column}");
        }
    }
}

fn unpermute_sums_weighted_rows<T: Number>() {
    let mut draw = Draw::new(3);
    let ids = draw.ids(TOKENS * TOP_K, EXPERTS);
    let r = routing(&ids, EXPERTS);
    let handle = host();
    let rows: Vec<T> = draw.numbers(TOKENS * TOP_K * FEATURES);
    let weights: Vec<T> = draw.weights(TOKENS * (TOP_K + 1));
    let before: Vec<T> = draw.numbers(TOKENS * FEATURES);
    for add in [false, true] {
        let p = PermuteProblem { routing_weight_type: T::DATA, routing_weights_ld: TOP_K + 1, add_to_y: add, ..problem::<T>() };
        let unpermute = handle.unpermute(&p).unwrap();
        let mut y = before.clone();
        let tensors = PermuteTensors {
            group_offsets: (&r.group_offsets).into(),
            row_assignment: (&r.row_assignment).into(),
            assignment_row: (&r.assignment_row).into(),
            routing_weights: (&weights).into(),
            input: (&rows).into(),
            output: (&mut y).into(),
            ..Default::default()
        };
        unpermute.run(tensors, &mut unpermute.workspace().unwrap(), Stream::DEFAULT).unwrap();
        for t in 0..TOKENS {
            for f in 0..FEATURES {
                let mut expected = if add { before[t * FEATURES + f].value() } else { 0.0 };
                for j in 0..TOP_K {
                    if let Ok(row) = usize::try_from(r.assignment_row[t * TOP_K + j]) {
                        expected += weights[t * (TOP_K + 1) + j].value() * rows[row * FEATURES + f].value();
                    }
                }
                assert_eq!(y[t * FEATURES + f].value(), expected, "token {t}, feature {f}, add {add}");
            }
        }
    }
}

fn unpermute_backward_gives_both_gradients<T: Number>() {
    let mut draw = Draw::new(4);
    let ids = draw.ids(TOKENS * TOP_K, EXPERTS);
    let r = routing(&ids, EXPERTS);
    let handle = host();
    let rows: Vec<T> = draw.numbers(TOKENS * TOP_K * FEATURES);
    let weights: Vec<T> = draw.weights(TOKENS * TOP_K);
    let dy: Vec<T> = draw.numbers(TOKENS * FEATURES);
    let p = PermuteProblem { routing_weight_type: T::DATA, ..problem::<T>() };
    let backward = handle.unpermute_backward(&p).unwrap();
    let mut d_rows: Vec<T> = poison(TOKENS * TOP_K * FEATURES);
    let mut d_weights = vec![f32::NAN; TOKENS * TOP_K];
    let tensors = UnpermuteBackwardTensors {
        group_offsets: (&r.group_offsets).into(),
        row_assignment: (&r.row_assignment).into(),
        assignment_row: (&r.assignment_row).into(),
        routing_weights: (&weights).into(),
        rows: (&rows).into(),
        dy: (&dy).into(),
        d_rows: (&mut d_rows).into(),
        d_routing_weights: (&mut d_weights).into(),
        ..Default::default()
    };
    backward.run(tensors, &mut backward.workspace().unwrap(), Stream::DEFAULT).unwrap();
    for (row, &assignment) in r.row_assignment.iter().enumerate() {
        for f in 0..FEATURES {
            let expected = match assignment {
                -1 => 0.0,
                a => weights[a as usize].value() * dy[a as usize / TOP_K * FEATURES + f].value(),
            };
            assert_eq!(d_rows[row * FEATURES + f].value(), expected, "row {row}, feature {f}");
        }
    }
    for (assignment, &row) in r.assignment_row.iter().enumerate() {
        let dot = |row: usize| -> f64 {
            (0..FEATURES).map(|f| dy[assignment / TOP_K * FEATURES + f].value() * rows[row * FEATURES + f].value()).sum()
        };
        let expected = if row < 0 { 0.0 } else { dot(row as usize) };
        assert_eq!(f64::from(d_weights[assignment]), expected, "assignment {assignment}");
    }
}

for_each_type!(permute_copies_rows, unpermute_sums_weighted_rows, unpermute_backward_gives_both_gradients);

#[test]
fn rows_of_another_type_unused_rows_kept_and_bad_routing_counted() {
    let p = PermuteProblem {
        tokens: 2,
        top_k: 1,
        experts: 1,
        features: 1,
        token_type: DataType::Float32,
        row_type: DataType::BFloat16,
        keep_unused_rows: true,
        ..Default::default()
    };
    let handle = host();
    let permute = handle.permute(&p).unwrap();
    let mut bits = [0xffffu16; 2];
    let faults = Faults::new();
    let tensors = PermuteTensors {
        group_offsets: (&[0, 2]).into(),
        row_assignment: (&[1, 0]).into(),
        assignment_row: (&[0, 0]).into(), // row 1 is of assignment 0, which says row 0
        input: (&[3.0f32, 1.0]).into(),
        output: Output::bfloat16_bits(&mut bits),
        faults: (&faults).into(),
        ..Default::default()
    };
    permute.run(tensors, &mut permute.workspace().unwrap(), Stream::DEFAULT).unwrap();
    assert_eq!(bits, [0x3f80, 0xffff]);
    assert_eq!(faults.count(Fault::BadRouting), 1);
}

#[test]
fn fewer_real_tokens() {
    let handle = host();
    let p =
        PermuteProblem { tokens: 2, top_k: 1, experts: 1, features: 1, token_type: DataType::Float16, ..Default::default() };
    let unpermute = handle.unpermute(&p).unwrap();
    let mut y: Vec<F16> = poison(2);
    let rows = [F16::from_f32(4.0).0, F16::from_f32(5.0).0];
    let tensors = PermuteTensors {
        group_offsets: (&[0, 1]).into(),
        row_assignment: (&[0, -1]).into(),
        assignment_row: (&[0, -1]).into(),
        input: Input::float16_bits(&rows),
        output: (&mut y).into(),
        num_tokens: (&[1]).into(),
        ..Default::default()
    };
    unpermute.run(tensors, &mut unpermute.workspace().unwrap(), Stream::DEFAULT).unwrap();
    assert_eq!(values(&y), [4.0, 0.0]);
}
