use crate::support::*;
use ggm::*;

fn run<I: Element>(
    problem: &RouteProblem,
    ids: &[I],
    map: Option<&[i32]>,
    num_tokens: Option<i32>,
    faults: &Faults,
) -> Routing {
    let handle = host();
    let route = handle.route(problem).unwrap();
    let assignments = problem.tokens * problem.top_k;
    let rows = if problem.max_rows == 0 { assignments } else { problem.max_rows.min(assignments) };
    let mut workspace = route.workspace().unwrap();
    let mut r = Routing {
        group_offsets: vec![-7; problem.experts + 1],
        row_assignment: vec![-7; rows],
        assignment_row: vec![-7; assignments],
        row_expert: Vec::new(),
    };
    let num_tokens = num_tokens.map(|count| [count]);
    let tensors = RouteTensors {
        ids: ids.into(),
        expert_map: map.map(Input::from).unwrap_or_default(),
        num_tokens: num_tokens.as_ref().map(Input::from).unwrap_or_default(),
        faults: faults.into(),
        group_offsets: (&mut r.group_offsets).into(),
        row_assignment: (&mut r.row_assignment).into(),
        assignment_row: (&mut r.assignment_row).into(),
    };
    route.run(tensors, &mut workspace, Stream::DEFAULT).unwrap();
    r
}

fn problem(tokens: usize, top_k: usize, experts: usize, id_type: IndexType) -> RouteProblem {
    RouteProblem { tokens, top_k, experts, id_type, ..Default::default() }
}

#[test]
fn rows_are_sorted_by_expert_token_and_slot() {
    let ids = Draw::new(1).ids(40 * 3, 5);
    let faults = Faults::new();
    let r = run(&problem(40, 3, 5, IndexType::Int32), &ids, None, None, &faults);
    let expected = routing(&ids, 5);
    assert_eq!(r.group_offsets, expected.group_offsets);
    assert_eq!(r.row_assignment, expected.row_assignment);
    assert_eq!(r.assignment_row, expected.assignment_row);
    assert!(!faults.any());
}

#[test]
fn int64_ids_of_wider_rows() {
    let ids = [1i64, 0, 99, 0, -1, 99];
    let p = RouteProblem { ids_ld: 3, ..problem(2, 2, 2, IndexType::Int64) };
    let r = run(&p, &ids, None, None, &Faults::new());
    assert_eq!(r.group_offsets, [0, 2, 3]);
    assert_eq!(r.row_assignment, [1, 2, 0, -1]);
    assert_eq!(r.assignment_row, [2, 0, 1, -1]);
}

#[test]
fn the_last_row_of_wider_ids_may_end_early() {
    let p = RouteProblem { ids_ld: 3, ..problem(2, 2, 2, IndexType::Int32) };
    let r = run(&p, &[1, 0, 99, 0, -1], None, None, &Faults::new());
    assert_eq!(r.assignment_row, [2, 0, 1, -1]);
}

#[test]
fn local_experts_by_range_and_by_map() {
    let ids = [0, 3, 2, 5, 3, 1];
    let by_range = RouteProblem { experts_total: 6, first_expert: 2, ..problem(3, 2, 2, IndexType::Int32) };
    let r = run(&by_range, &ids, None, None, &Faults::new());
    assert_eq!(r.group_offsets, [0, 1, 3]);
    assert_eq!(r.row_assignment, [2, 1, 4, -1, -1, -1]);
    let by_map = RouteProblem { experts_total: 6, ..problem(3, 2, 2, IndexType::Int32) };
    let r = run(&by_map, &ids, Some(&[1, -1, -1, 0, -1, -1]), None, &Faults::new());
    assert_eq!(r.group_offsets, [0, 2, 3]);
    assert_eq!(r.row_assignment, [1, 4, 0, -1, -1, -1]);
}

#[test]
fn bad_ids_dropped_rows_and_clamped_tokens_are_counted() {
    let faults = Faults::new();
    let p = RouteProblem { max_rows: 2, ..problem(3, 2, 2, IndexType::Int32) };
    let r = run(&p, &[0, 7, -5, 1, 0, 1], None, Some(-3), &faults);
    assert_eq!((faults.count(Fault::SizeClamped), faults.count(Fault::BadId)), (1, 0));
    assert_eq!(r.group_offsets, [0, 0, 0]);
    let r = run(&p, &[0, 7, -5, 1, 0, 1], None, Some(3), &faults);
    assert_eq!(faults.count(Fault::BadId), 2);
    assert_eq!(faults.count(Fault::RowsDropped), 2);
    assert_eq!(r.row_assignment, [0, 4]);
    assert_eq!(r.assignment_row, [0, -1, -1, -1, 1, -1]);
    assert_eq!(faults.count(Fault::BadRouting), 0);
    faults.clear();
    assert!(!faults.any());
}

#[test]
fn no_tokens() {
    let r = run::<i32>(&problem(0, 2, 2, IndexType::Int32), &[], None, None, &Faults::new());
    assert_eq!(r.group_offsets, [0, 0, 0]);
}
