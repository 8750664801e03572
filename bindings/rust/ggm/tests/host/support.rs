//! What the tests share: numbers of every type, small random integers, poison.
use ggm::*;

/// A type of tensors, by way of float64.
pub trait Number: Element + Default + PartialEq + std::fmt::Debug {
    const DATA: DataType;
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! number {
    ($type:ty, $data:ident, $of:expr, $value:expr) => {
        impl Number for $type {
            const DATA: DataType = DataType::$data;
            fn of(value: f64) -> Self {
                ($of)(value)
            }
            fn value(self) -> f64 {
                ($value)(self)
            }
        }
    };
}
number!(f32, Float32, |v| v as f32, f64::from);
number!(f64, Float64, |v| v, |v| v);
number!(Bf16, BFloat16, |v| Bf16::from_f32(v as f32), |v: Bf16| f64::from(v.to_f32()));
number!(F16, Float16, |v| F16::from_f32(v as f32), |v: F16| f64::from(v.to_f32()));

/// Runs a generic test for each type.
#[macro_export]
macro_rules! for_each_type {
    ($($test:ident),* $(,)?) => {
        $(
            mod $test {
                #[test]
                fn float32() {
                    super::$test::<f32>();
                }
                #[test]
                fn float64() {
                    super::$test::<f64>();
                }
                #[test]
                fn bfloat16() {
                    super::$test::<ggm::Bf16>();
                }
                #[test]
                fn float16() {
                    super::$test::<ggm::F16>();
                }
            }
        )*
    };
}

pub fn host() -> Handle {
    Handle::on(Backend::Host).unwrap()
}

/// A generator of small numbers (Knuth's constants), so that a failure repeats.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed.wrapping_mul(2) + 1)
    }

    /// From `low` to `high`, both included.
    pub fn integer(&mut self, low: i64, high: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + ((self.0 >> 33) % (high - low + 1) as u64) as i64
    }

    /// Integers from -2 to 2: sums of a few products of them are exact in every type.
    pub fn numbers<T: Number>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::of(self.integer(-2, 2) as f64)).collect()
    }

    /// Routing weights: powers of two, so that a product with them is exact.
    pub fn weights<T: Number>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::of([0.5, 1.0, 2.0, -1.0][self.integer(0, 3) as usize])).collect()
    }

    /// Expert ids: -1 (none) to `experts` - 1.
    pub fn ids(&mut self, count: usize, experts: usize) -> Vec<i32> {
        (0..count).map(|_| self.integer(-1, experts as i64 - 1) as i32).collect()
    }
}

/// What outputs hold before a call: no result is this.
pub const POISON: f64 = -96.0;

pub fn poison<T: Number>(count: usize) -> Vec<T> {
    vec![T::of(POISON); count]
}

pub fn values<T: Number>(numbers: &[T]) -> Vec<f64> {
    numbers.iter().map(|number| number.value()).collect()
}

/// The routing arrays of `ids` on `experts` experts, as plain loops: (group_offsets, row_assignment, assignment_row), and the
/// expert of each row.
pub struct Routing {
    pub group_offsets: Vec<i32>,
    pub row_assignment: Vec<i32>,
    pub assignment_row: Vec<i32>,
    pub row_expert: Vec<usize>,
}

pub fn routing(ids: &[i32], experts: usize) -> Routing {
    let mut r = Routing {
        group_offsets: vec![0],
        row_assignment: vec![-1; ids.len()],
        assignment_row: vec![-1; ids.len()],
        row_expert: Vec::new(),
    };
    for expert in 0..experts {
        for (assignment, &id) in ids.iter().enumerate() {
            if id == expert as i32 {
                let row = r.row_expert.len();
                r.row_assignment[row] = assignment as i32;
                r.assignment_row[assignment] = row as i32;
                r.row_expert.push(expert);
            }
        }
        r.group_offsets.push(r.row_expert.len() as i32);
    }
    r
}

/// Asserts that `result` is an error of `status` whose text has all the `words`.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T>, status: Status, words: &[&str]) {
    let error = result.expect_err("a call that must be refused");
    assert_eq!(error.status(), status, "{error}");
    for word in words {
        assert!(error.text().contains(word), "{word:?} is not in: {error}");
    }
}
