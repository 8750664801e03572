use crate::for_each_type;
use crate::support::*;
use ggm::*;

/// A strided matrix of one group.
struct Matrix<'a, T>(&'a [T], usize, usize);

impl<T: Number> Matrix<'_, T> {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.0[self.1 + row * self.2 + column].value()
    }
}

/// sum over k of a(i, k) * b(k, j)
fn sum(k: std::ops::Range<usize>, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> f64 {
    k.map(|l| a(l) * b(l)).sum()
}

fn contiguous_every_group_form<T: Number>() {
    const SIZES: [usize; 4] = [3, 0, 2, 4];
    const STARTS: [usize; 4] = [0, 3, 3, 5];
    let (m, n, k, groups) = (10, 3, 4, 4);
    let mut draw = Draw::new(5);
    let a: Vec<T> = draw.numbers(m * (k + 1));
    let handle = host();
    let sizes64: Vec<i64> = SIZES.iter().map(|&size| size as i64).collect();
    let starts64: Vec<i64> = STARTS.iter().map(|&start| start as i64).collect();
    let row_group: Vec<i32> = (0..m).map(|row| group_of(row).map_or(-1, |group| group as i32)).collect();
    fn group_of(row: usize) -> Option<usize> {
        (0..4).find(|&group| row >= STARTS[group] && row < STARTS[group] + SIZES[group])
    }
    for order in [Order::Nk, Order::Kn] {
        let (b_rows, b_columns) = if order == Order::Nk { (n, k) } else { (k, n) };
        let b: Vec<T> = draw.numbers(groups * (b_rows * (b_columns + 2) + 3));
        let stride = b_rows * (b_columns + 2) + 3;
        for form in [GroupForm::Sizes, GroupForm::Offsets, GroupForm::Ends, GroupForm::StartsSizes, GroupForm::RowGroup] {
            let p = GroupedGemmProblem {
                groups,
                m,
                n,
                k,
                lda: k + 1,
                ldb: b_columns + 2,
                ldd: n + 1,
                stride_b: Stride::Elements(stride),
                group_form: form,
                index_type: if form == GroupForm::StartsSizes { IndexType::Int64 } else { IndexType::Default },
                b_order: order,
                a_type: T::DATA,
                b_type: T::DATA,
                ..Default::default()
            };
            let product = handle.grouped_gemm(&p).unwrap();
            let mut d: Vec<T> = poison(m * (n + 1) - 1);
            let mut tensors = GroupedGemmTensors { a: (&a).into(), b: (&b).into(), d: (&mut d).into(), ..Default::default() };
            match form {
                GroupForm::Sizes => tensors.group_sizes = (&[3, 0, 2, 4]).into(),
                GroupForm::Offsets => tensors.group_offsets = (&[0, 3, 3, 5, 9]).into(),
                GroupForm::Ends => tensors.group_offsets = (&[3, 3, 5, 9]).into(),
                GroupForm::StartsSizes => {
                    tensors.group_offsets = (&starts64).into();
                    tensors.group_sizes = (&sizes64).into();
                }
                GroupForm::RowGroup => tensors.row_group = (&row_group).into(),
            }
            product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT).unwrap();
            for i in 0..m {
                for j in 0..n {
                    let expected = group_of(i).map_or(0.0, |group| {
                        let a = Matrix(&a, 0, k + 1);
                        let b = Matrix(&b, group * stride, b_columns + 2);
                        sum(0..k, |l| a.at(i, l), |l| if order == Order::Nk { b.at(j, l) } else { b.at(l, j) })
                    });
                    assert_eq!(d[i * (n + 1) + j].value(), expected, "{order:?} {form:?} d[{i},{j}]");
                }
            }
            assert_eq!(d[n].value(), POISON, "between rows");
        }
    }
}

fn masked_with_c_and_with_d_as_c<T: Number>() {
    let (groups, m, n, k) = (3, 4, 3, 4);
    let sizes = [4, 1, 0];
    let mut draw = Draw::new(6);
    let a: Vec<T> = draw.numbers(groups * m * k);
    let b: Vec<T> = draw.numbers(n * k);
    let c: Vec<T> = draw.numbers(groups * m * n);
    let handle = host();
    let p = GroupedGemmProblem {
        groups,
        m,
        n,
        k,
        layout: Layout::Masked,
        stride_b: Stride::Shared,
        b_order: Order::Nk,
        a_type: T::DATA,
        b_type: T::DATA,
        c_type: T::DATA,
        alpha: Some(-1.0),
        beta: 2.0,
        ..Default::default()
    };
    let product = handle.grouped_gemm(&p).unwrap();
    let mut workspace = product.workspace().unwrap();
    let mut apart: Vec<T> = poison(groups * m * n);
    let mut in_place = c.clone();
    for (d, separate) in [(&mut apart, true), (&mut in_place, false)] {
        let tensors = GroupedGemmTensors {
            group_sizes: (&sizes).into(),
            a: (&a).into(),
            b: (&b).into(),
            c: if separate { (&c).into() } else { Addend::Output },
            d: d.into(),
            ..Default::default()
        };
        product.run(tensors, &mut workspace, Stream::DEFAULT).unwrap();
    }
    for group in 0..groups {
        for i in 0..m {
            for j in 0..n {
                let index = (group * m + i) * n + j;
                let ab = sum(0..k, |l| a[(group * m + i) * k + l].value(), |l| b[j * k + l].value());
                // With beta rows beyond a group's size stay as they are.
                let used = i < sizes[group] as usize;
                let result = -ab + 2.0 * c[index].value();
                assert_eq!(apart[index].value(), if used { result } else { POISON }, "[{group},{i},{j}]");
                assert_eq!(in_place[index].value(), if used { result } else { c[index].value() }, "[{group},{i},{j}] in place");
            }
        }
    }
}

fn variable_k<T: Number>() {
    let (groups, m, n, k) = (3, 3, 2, 8);
    let offsets = [0, 3, 3, 8];
    let mut draw = Draw::new(7);
    let a: Vec<T> = draw.numbers(k * m);
    let b: Vec<T> = draw.numbers(k * n);
    let handle = host();
    let p = GroupedGemmProblem {
        groups,
        m,
        n,
        k,
        layout: Layout::VariableK,
        group_form: GroupForm::Offsets,
        stride_d: m * n + 1,
        a_type: T::DATA,
        b_type: T::DATA,
        ..Default::default()
    };
    let product = handle.grouped_gemm(&p).unwrap();
    let mut d: Vec<T> = poison(groups * (m * n + 1) - 1);
    let tensors = GroupedGemmTensors {
        group_offsets: (&offsets).into(),
        a: (&a).into(),
        b: (&b).into(),
        d: (&mut d).into(),
        ..Default::default()
    };
    product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT).unwrap();
    for group in 0..groups {
        for i in 0..m {
            for j in 0..n {
                let rows = offsets[group] as usize..offsets[group + 1] as usize;
                let expected = sum(rows, |l| a[l * m + i].value(), |l| b[l * n + j].value());
                assert_eq!(d[group * (m * n + 1) + i * n + j].value(), expected, "[{group},{i},{j}]");
            }
        }
    }
    assert_eq!(d[m * n].value(), POISON, "between groups");
}

for_each_type!(contiguous_every_group_form, masked_with_c_and_with_d_as_c, variable_k);

#[test]
fn float32_result_of_bfloat16_and_clamped_sizes() {
    let handle = host();
    let p = GroupedGemmProblem {
        groups: 2,
        m: 2,
        n: 1,
        k: 1,
        b_order: Order::Kn,
        a_type: DataType::BFloat16,
        b_type: DataType::BFloat16,
        d_type: DataType::Float32,
        keep_unused_rows: true,
        ..Default::default()
    };
    let product = handle.grouped_gemm(&p).unwrap();
    // 1.0078125 * 255 has more bits than bfloat16 holds.
    let (a, b) = ([Bf16::from_f32(1.0078125), Bf16::from_f32(3.0)], [Bf16::from_f32(255.0), Bf16::from_f32(7.0)]);
    let mut d = [9.0f32; 2];
    let faults = Faults::new();
    let tensors = GroupedGemmTensors {
        group_sizes: (&[1, -4]).into(),
        a: (&a).into(),
        b: (&b).into(),
        d: (&mut d).into(),
        faults: (&faults).into(),
        ..Default::default()
    };
    product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT).unwrap();
    assert_eq!(d, [1.0078125 * 255.0, 9.0]);
    assert_eq!(faults.count(Fault::SizeClamped), 1);
}
