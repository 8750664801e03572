use crate::for_each_type;
use crate::support::*;
use ggm::*;

/// m, n, k of each group; an empty one and one without an inner dimension among them.
const GROUPS: [(usize, usize, usize); 4] = [(2, 3, 4), (0, 2, 2), (4, 1, 3), (1, 2, 0)];

struct Group<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    d: Vec<T>,
}

fn draw_groups<T: Number>() -> Vec<Group<T>> {
    let mut draw = Draw::new(8);
    GROUPS
        .iter()
        .map(|&(m, n, k)| Group { a: draw.numbers(m * k), b: draw.numbers(n * k), c: draw.numbers(m * n), d: poison(m * n) })
        .collect()
}

fn problem<T: Number>(a_order: AOrder, b_order: Order) -> GroupedGemmArrayProblem {
    GroupedGemmArrayProblem {
        groups: GROUPS.len(),
        max_m: 4,
        max_n: 3,
        max_k: 4,
        a_order,
        b_order,
        a_type: T::DATA,
        b_type: T::DATA,
        ..Default::default()
    }
}

/// alpha * A B, element by element, for packed matrices.
fn check<T: Number>(groups: &[Group<T>], a_order: AOrder, b_order: Order, result: impl Fn(f64, f64) -> f64) {
    for (index, (group, &(m, n, k))) in groups.iter().zip(&GROUPS).enumerate() {
        for i in 0..m {
            for j in 0..n {
                let a = |l: usize| group.a[if a_order == AOrder::Mk { i * k + l } else { l * m + i }].value();
                let b = |l: usize| group.b[if b_order == Order::Nk { j * k + l } else { l * n + j }].value();
                let product: f64 = (0..k).map(|l| a(l) * b(l)).sum();
                let expected = result(product, group.c[i * n + j].value());
                assert_eq!(group.d[i * n + j].value(), expected, "{a_order:?} {b_order:?} group {index} d[{i},{j}]");
            }
        }
    }
}

fn groups_of_slices_in_every_order<T: Number>() {
    let handle = host();
    for a_order in [AOrder::Mk, AOrder::Km] {
        for b_order in [Order::Nk, Order::Kn] {
            let mut groups = draw_groups::<T>();
            let product = handle.grouped_gemm_array(&problem::<T>(a_order, b_order)).unwrap();
            let mut tensors: Vec<_> = groups
                .iter_mut()
                .zip(&GROUPS)
                .map(|(group, &(m, n, k))| GemmGroup {
                    m,
                    n,
                    k,
                    a: (&group.a).into(),
                    b: (&group.b).into(),
                    d: (&mut group.d).into(),
                    ..Default::default()
                })
                .collect();
            product.run_groups(&mut tensors, FaultsRef::default(), &mut product.workspace().unwrap()).unwrap();
            check(&groups, a_order, b_order, |product, _| product);
        }
    }
}

fn addend_apart_and_in_place<T: Number>() {
    let handle = host();
    for index_type in [IndexType::Default, IndexType::Int64] {
        for apart in [true, false] {
            let mut groups = draw_groups::<T>();
            let p = GroupedGemmArrayProblem {
                alpha: Some(2.0),
                beta: -1.0,
                c_type: T::DATA,
                index_type,
                ..problem::<T>(AOrder::Mk, Order::Nk)
            };
            let product = handle.grouped_gemm_array(&p).unwrap();
            let mut tensors = Vec::new();
            for (group, &(m, n, k)) in groups.iter_mut().zip(&GROUPS) {
                if !apart {
                    group.d.clone_from(&group.c);
                }
                tensors.push(GemmGroup {
                    m,
                    n,
                    k,
                    a: (&group.a).into(),
                    b: (&group.b).into(),
                    c: if apart { (&group.c).into() } else { Addend::Output },
                    d: (&mut group.d).into(),
                    ..Default::default()
                });
            }
            product.run_groups(&mut tensors, FaultsRef::default(), &mut product.workspace().unwrap()).unwrap();
            check(&groups, AOrder::Mk, Order::Nk, |product, c| 2.0 * product - c);
        }
    }
}

for_each_type!(groups_of_slices_in_every_order, addend_apart_and_in_place);

#[test]
fn arrays_of_pointers() {
    let handle = host();
    let product = handle.grouped_gemm_array(&problem::<f32>(AOrder::Mk, Order::Nk)).unwrap();
    let mut groups = draw_groups::<f32>();
    let sizes = |f: fn(&(usize, usize, usize)) -> usize| GROUPS.iter().map(|group| f(group) as i32).collect::<Vec<_>>();
    let (m, n, k) = (sizes(|g| g.0), sizes(|g| g.1), sizes(|g| g.2));
    let a: Vec<*const f32> = groups.iter().map(|group| group.a.as_ptr()).collect();
    let b: Vec<*const f32> = groups.iter().map(|group| group.b.as_ptr()).collect();
    let d: Vec<*mut f32> = groups.iter_mut().map(|group| group.d.as_mut_ptr()).collect();
    let faults = Faults::new();
    let tensors = GroupedGemmArrayTensors {
        m: (&m).into(),
        n: (&n).into(),
        k: (&k).into(),
        a: (&a).into(),
        b: (&b).into(),
        d: (&d).into(),
        faults: (&faults).into(),
        ..Default::default()
    };
    // SAFETY: the matrices are as large as the sizes say, and live in `groups`.
    unsafe { product.run(tensors, &mut product.workspace().unwrap(), Stream::DEFAULT).unwrap() };
    check(&groups, AOrder::Mk, Order::Nk, |product, _| product);
    assert!(!faults.any());
}

#[test]
fn wider_rows_of_a_group() {
    let handle = host();
    let p = GroupedGemmArrayProblem { groups: 1, max_m: 2, max_n: 2, max_k: 1, ..problem::<f32>(AOrder::Km, Order::Kn) };
    let product = handle.grouped_gemm_array(&p).unwrap();
    let mut d = [7.0f32; 5];
    let mut groups = [GemmGroup {
        m: 2,
        n: 2,
        k: 1,
        ldd: 3,
        a: (&[2.0f32, 3.0]).into(),
        b: (&[10.0f32, 100.0]).into(),
        d: (&mut d).into(),
        ..Default::default()
    }];
    product.run_groups(&mut groups, FaultsRef::default(), &mut product.workspace().unwrap()).unwrap();
    assert_eq!(d, [20.0, 200.0, 7.0, 30.0, 300.0]);
}

#[test]
fn a_wrong_group_is_refused_before_anything_is_read() {
    let handle = host();
    let one = GroupedGemmArrayProblem { groups: 1, max_m: 2, max_n: 2, max_k: 2, ..problem::<f32>(AOrder::Mk, Order::Nk) };
    let with_c = GroupedGemmArrayProblem { c_type: DataType::Float32, beta: 1.0, ..one.clone() };
    let run = |p: &GroupedGemmArrayProblem, change: fn(&mut GemmGroup<'_>), words: &[&str], status: Status| {
        let product = handle.grouped_gemm_array(p).unwrap();
        let (ones, mut d) = ([1.0f32; 4], [5.0f32; 4]);
        let mut group = GemmGroup {
            m: 2,
            n: 2,
            k: 2,
            a: (&ones).into(),
            b: (&ones).into(),
            c: if p.c_type == DataType::Default { Addend::Absent } else { (&ones).into() },
            d: (&mut d).into(),
            ..Default::default()
        };
        change(&mut group);
        let mut workspace = product.workspace().unwrap();
        refused(product.run_groups(&mut [group], FaultsRef::default(), &mut workspace), status, words);
        assert_eq!(d, [5.0; 4]);
    };
    let value = Status::INVALID_VALUE;
    run(&one, |g| g.m = 3, &["groups[0].m = 3", "max_m is 2"], value);
    run(&one, |g| g.lda = 1, &["groups[0].lda = 1", "at least 2"], value);
    run(&one, |g| g.ldb = 3, &["groups[0].b holds 4", "needs 5"], value);
    run(&one, |g| g.ldd = 4, &["groups[0].d holds 4", "needs 6"], value);
    run(&one, |g| g.a = Input::ABSENT, &["groups[0].a is absent"], Status::NULL_POINTER);
    run(&one, |g| g.d = Output::ABSENT, &["groups[0].d is absent"], Status::NULL_POINTER);
    run(&one, |g| g.a = (&[1.0f64; 4]).into(), &["groups[0].a holds float64", "float32"], Status::TYPE_MISMATCH);
    run(&one, |g| g.c = Addend::Output, &["groups[0].c is given", "c_type"], Status::TYPE_MISMATCH);
    run(&with_c, |g| g.c = Addend::Absent, &["groups[0].c is absent"], Status::NULL_POINTER);
    run(&with_c, |g| g.c = (&[1.0f32; 3]).into(), &["groups[0].c holds 3", "needs 4"], value);
    run(&with_c, |g| (g.c, g.ldc) = (Addend::Output, 3), &["groups[0].c is d itself"], value);

    let product = handle.grouped_gemm_array(&one).unwrap();
    let none = product.run_groups(&mut [], FaultsRef::default(), &mut product.workspace().unwrap());
    refused(none, value, &["groups holds 0", "has 1"]);
    let few = GroupedGemmArrayTensors { a: Pointers::from(&[] as &[*const f32]), ..Default::default() };
    let few = unsafe { product.run(few, &mut product.workspace().unwrap(), Stream::DEFAULT) };
    refused(few, value, &["a holds 0 pointers", "needs 1"]);
}
