//! Products of fully general groups.
use crate::error::check;
use crate::handle::host_workspace;
use crate::memory::{Memory, Space};
use crate::tensor_check::*;
use crate::types::flags;
use crate::*;
use std::os::raw::c_void;

/// `D_i = alpha * op(A_i) @ op(B_i) + beta * C_i`, where every group has sizes, leading dimensions and pointers of its own.
///
/// A is `[M, K]` (`Mk`) or `[K, M]` (`Km`), B `[N, K]` (`Nk`) or `[K, N]` (`Kn`), C and D are `[M, N]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupedGemmArrayProblem {
    /// Groups, up to 2^20
    pub groups: usize,
    /// Bound on M of the groups
    pub max_m: usize,
    /// Bound on N
    pub max_n: usize,
    /// Bound on K
    pub max_k: usize,
    /// `None`: 1
    pub alpha: Option<f64>,
    /// 0: C is not read
    pub beta: f64,
    /// Type of sizes and leading dimensions; default: int32
    pub index_type: IndexType,
    /// To be chosen
    pub a_order: AOrder,
    /// To be chosen
    pub b_order: Order,
    /// To be chosen
    pub a_type: DataType,
    /// To be chosen; equal to `a_type` in this version
    pub b_type: DataType,
    /// Default: no C
    pub c_type: DataType,
    /// Default: `a_type`; that, or float32 with 16-bit inputs
    pub d_type: DataType,
    /// The default is exact
    pub compute_type: ComputeType,
    /// Bytes that all pointers and leading dimensions keep: 0 (of the element) or a power of two up to 256. Groups that do
    /// not are skipped and counted
    pub min_alignment: usize,
    /// Multiprocessors (host: threads) the call may use; 0: all
    pub sm_limit: usize,
}

impl GroupedGemmArrayProblem {
    pub(crate) fn raw(&self) -> Result<sys::ggm_grouped_gemm_array_problem_t> {
        Ok(sys::ggm_grouped_gemm_array_problem_t {
            flags: flags(&[(self.alpha.is_some(), sys::GGM_FLAG_ALPHA)]),
            groups: size("groups", self.groups)?,
            max_m: size("max_m", self.max_m)?,
            max_n: size("max_n", self.max_n)?,
            max_k: size("max_k", self.max_k)?,
            alpha: self.alpha.unwrap_or(0.0),
            beta: self.beta,
            index_type: self.index_type.code(),
            a_order: self.a_order.code(),
            b_order: self.b_order.code(),
            a_type: self.a_type.code(),
            b_type: self.b_type.code(),
            c_type: self.c_type.code(),
            d_type: self.d_type.code(),
            compute_type: self.compute_type.code(),
            min_alignment: small_size("min_alignment", self.min_alignment)?,
            sm_limit: small_size("sm_limit", self.sm_limit)?,
            ..Default::default()
        })
    }
}

/// One group of [`GroupedGemmArray::run_groups`]. A leading dimension of 0 is packed.
#[derive(Debug, Default)]
pub struct GemmGroup<'a> {
    /// Rows of D, up to `max_m`
    pub m: usize,
    /// Columns of D, up to `max_n`
    pub n: usize,
    /// Inner dimension, up to `max_k`
    pub k: usize,
    /// Elements between rows of A as stored
    pub lda: usize,
    /// Elements between rows of B as stored
    pub ldb: usize,
    /// Elements between rows of C
    pub ldc: usize,
    /// Elements between rows of D
    pub ldd: usize,
    /// Of `a_type`; may be absent when the group is empty or `k` is 0
    pub a: Input<'a>,
    /// Of `b_type`; as `a`
    pub b: Input<'a>,
    /// Of `c_type`; may be D itself, [`Addend::Output`]
    pub c: Addend<'a>,
    /// Of `d_type`
    pub d: Output<'a>,
}

/// An array of pointers to matrices: `From` a slice of raw pointers on the host, or a [`DeviceSlice`] of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pointers<'a> {
    array: Option<(*const c_void, usize, Space)>,
    lifetime: std::marker::PhantomData<&'a [*const c_void]>,
}

macro_rules! pointers {
    ($($pointer:ty),*) => {
        $(
            impl<'a, T> From<&'a [$pointer]> for Pointers<'a> {
                fn from(array: &'a [$pointer]) -> Self {
                    Pointers { array: Some((array.as_ptr().cast(), array.len(), Space::Host)), lifetime: Default::default() }
                }
            }
            impl<'a, T> From<&'a Vec<$pointer>> for Pointers<'a> {
                fn from(array: &'a Vec<$pointer>) -> Self {
                    array.as_slice().into()
                }
            }
            impl<T> From<DeviceSlice<$pointer>> for Pointers<'_> {
                fn from(array: DeviceSlice<$pointer>) -> Self {
                    let address = array.address() as *const c_void;
                    Pointers { array: Some((address, array.len(), Space::Device)), lifetime: Default::default() }
                }
            }
        )*
    };
}
pointers!(*const T, *mut T);

/// Tensors of [`GroupedGemmArray::run`]: arrays of `groups` entries, of `index_type` or of pointers.
#[derive(Debug, Default)]
pub struct GroupedGemmArrayTensors<'a> {
    /// Absent: `max_m` for every group
    pub m: Input<'a>,
    /// Absent: `max_n`
    pub n: Input<'a>,
    /// Absent: `max_k`
    pub k: Input<'a>,
    /// Absent: packed by the group's own sizes
    pub lda: Input<'a>,
    /// The same
    pub ldb: Input<'a>,
    /// The same
    pub ldc: Input<'a>,
    /// The same
    pub ldd: Input<'a>,
    /// To matrices of `a_type`
    pub a: Pointers<'a>,
    /// Of `b_type`
    pub b: Pointers<'a>,
    /// Of `c_type`; absent exactly when that is the default. An entry may equal that of `d`
    pub c: Pointers<'a>,
    /// Of `d_type`
    pub d: Pointers<'a>,
    /// Counts clamped sizes and misaligned groups
    pub faults: FaultsRef<'a>,
}

operation! {
    /// [`GroupedGemmArrayProblem`] on a handle.
    GroupedGemmArray, GroupedGemmArrayProblem -> ggm_grouped_gemm_array_problem_t, ggm_grouped_gemm_array_tensors_t,
    /// Products of groups that have nothing in common but bounds and types.
    grouped_gemm_array: ggm_grouped_gemm_array_workspace_size, ggm_grouped_gemm_array
}

impl GroupedGemmArray<'_> {
    /// Multiplies groups that arrays describe; on CUDA the arrays lie in device memory.
    ///
    /// # Safety
    /// The pointers and leading dimensions inside of the arrays are right: each group's matrices are memory of the handle's
    /// backend, as large as its sizes, clamped to the bounds, and its leading dimensions say, and no D overlaps another one
    /// or an input.
    pub unsafe fn run<'w>(
        &self,
        tensors: GroupedGemmArrayTensors<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
        stream: Stream,
    ) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let array = |name, input: &Input<'_>| {
            check.input::<c_void>(name, input, index_of(p.index_type).or(INT32), Extent::vector(p.groups))
        };
        let pointers = |name: &str, pointers: &Pointers<'_>| {
            let (address, count, space) = match pointers.array {
                Some(array) => array,
                None => return Ok(std::ptr::null()),
            };
            check.space(name, space)?;
            if count < p.groups {
                let text = format!("{name} holds {count} pointers; this problem needs {}", p.groups);
                return Err(Error::new(Status::INVALID_VALUE, text));
            }
            Ok(address)
        };
        let raw = sys::ggm_grouped_gemm_array_tensors_t {
            m: array("m", &t.m)?,
            n: array("n", &t.n)?,
            k: array("k", &t.k)?,
            lda: array("lda", &t.lda)?,
            ldb: array("ldb", &t.ldb)?,
            ldc: array("ldc", &t.ldc)?,
            ldd: array("ldd", &t.ldd)?,
            a: pointers("a", &t.a)?.cast(),
            b: pointers("b", &t.b)?.cast(),
            c: pointers("c", &t.c)?.cast(),
            d: pointers("d", &t.d)?.cast(),
            faults: check.faults(t.faults)?,
            ..Default::default()
        };
        // SAFETY: the arrays were held against their lengths; what they point to is the caller's word.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }

    /// Multiplies groups of slices, on the host backend. Each slice is held against its group's sizes, so this is safe; it
    /// allocates the arrays that the library reads.
    pub fn run_groups<'w>(
        &self,
        groups: &mut [GemmGroup<'_>],
        faults: FaultsRef<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
    ) -> Result<()> {
        if !self.handle.is_host() {
            let text =
                "groups are host memory; a handle of the CUDA backend takes arrays of device pointers, GroupedGemmArray::run";
            return Err(Error::new(Status::INVALID_VALUE, text));
        }
        let (p, check) = (&self.problem, self.handle.tensor_check());
        if groups.len() != p.groups {
            let text = format!("groups holds {} groups; this problem has {}", groups.len(), p.groups);
            return Err(Error::new(Status::INVALID_VALUE, text));
        }
        let mut arrays = Arrays::default();
        for (index, group) in groups.iter().enumerate() {
            arrays.add(p, &check, index, group)?;
        }
        let sizes = arrays.sizes(p.index_type)?;
        let size_array = |column: usize| match &sizes {
            Sizes::Int32(columns) => Input::from(&columns[column]),
            Sizes::Int64(columns) => Input::from(&columns[column]),
        };
        let tensors = GroupedGemmArrayTensors {
            m: size_array(0),
            n: size_array(1),
            k: size_array(2),
            lda: size_array(3),
            ldb: size_array(4),
            ldc: if p.c_type == DataType::Default { Input::ABSENT } else { size_array(5) },
            ldd: size_array(6),
            a: Pointers::from(&arrays.a),
            b: Pointers::from(&arrays.b),
            c: if p.c_type == DataType::Default { Pointers::default() } else { Pointers::from(&arrays.c) },
            d: Pointers::from(&arrays.d),
            faults,
        };
        // SAFETY: every matrix was held against the sizes and leading dimensions that are in the arrays, and borrows keep
        // outputs apart.
        unsafe { self.run(tensors, workspace, Stream::DEFAULT) }
    }
}

/// m, n, k, lda, ldb, ldc, ldd of every group.
enum Sizes {
    Int32([Vec<i32>; 7]),
    Int64([Vec<i64>; 7]),
}

#[derive(Default)]
struct Arrays {
    columns: [Vec<usize>; 7],
    a: Vec<*const c_void>,
    b: Vec<*const c_void>,
    c: Vec<*const c_void>,
    d: Vec<*mut c_void>,
}

impl Arrays {
    fn add(&mut self, p: &GroupedGemmArrayProblem, check: &TensorCheck, index: usize, group: &GemmGroup<'_>) -> Result<()> {
        let name = |field: &str| format!("groups[{index}].{field}");
        for (field, value, bound) in [("m", group.m, p.max_m), ("n", group.n, p.max_n), ("k", group.k, p.max_k)] {
            if value > bound {
                let text = format!("{} = {value}; max_{field} is {bound}", name(field));
                return Err(Error::new(Status::INVALID_VALUE, text));
            }
        }
        let ld = |field: &str, value: usize, columns: usize| match value {
            0 => Ok(columns),
            value if value >= columns => Ok(value),
            value => {
                let text = format!("{} = {value}; must be 0 (packed) or at least {columns}, the length of a row", name(field));
                Err(Error::new(Status::INVALID_VALUE, text))
            }
        };
        let (a_rows, a_columns) = if p.a_order == AOrder::Km { (group.k, group.m) } else { (group.m, group.k) };
        let (b_rows, b_columns) = if p.b_order == Order::Kn { (group.k, group.n) } else { (group.n, group.k) };
        let lda = ld("lda", group.lda, a_columns)?;
        let ldb = ld("ldb", group.ldb, b_columns)?;
        let ldc = ld("ldc", group.ldc, group.n)?;
        let ldd = ld("ldd", group.ldd, group.n)?;

        let empty = group.m == 0 || group.n == 0;
        // The library does not look at what an empty group has, nor at A and B without an inner dimension.
        let inputs = !empty && group.k > 0;
        let c_type = element_of(p.c_type);
        let d_type = element_or(p.d_type, p.a_type);
        self.a.push(given(&name("a"), inputs, group.a.memory, |field| {
            check.input(field, &group.a, element_of(p.a_type), Extent::matrix(a_rows, lda, a_columns))
        })?);
        self.b.push(given(&name("b"), inputs, group.b.memory, |field| {
            check.input(field, &group.b, element_of(p.b_type), Extent::matrix(b_rows, ldb, b_columns))
        })?);
        let c_memory = match &group.c {
            Addend::Absent => None,
            Addend::Tensor(input) => input.memory,
            Addend::Output => group.d.memory,
        };
        match (c_type, &group.c) {
            (None, Addend::Absent) => {}
            (None, _) => {
                let text = format!("{} is given, but c_type is the default, no C", name("c"));
                return Err(Error::new(Status::TYPE_MISMATCH, text));
            }
            (Some(_), Addend::Output) if c_type != d_type || ldc != ldd => {
                let text = format!("{} is d itself; type and leading dimension of both must be equal", name("c"));
                return Err(Error::new(Status::INVALID_VALUE, text));
            }
            (Some(_), addend) => self.c.push(given(&name("c"), !empty && p.beta != 0.0, c_memory, |field| {
                check.addend(field, addend, c_type, Extent::matrix(group.m, ldc, group.n), &group.d)
            })?),
        }
        self.d.push(given(&name("d"), !empty, group.d.memory, |field| {
            let extent = Extent::matrix(group.m, ldd, group.n);
            Ok(check.output::<c_void>(field, &group.d, d_type, extent)? as *const c_void)
        })? as *mut c_void);
        for (column, value) in self.columns.iter_mut().zip([group.m, group.n, group.k, lda, ldb, ldc, ldd]) {
            column.push(value);
        }
        Ok(())
    }

    fn sizes(&self, index_type: IndexType) -> Result<Sizes> {
        const NAMES: [&str; 7] = ["m", "n", "k", "lda", "ldb", "ldc", "ldd"];
        if index_type == IndexType::Int64 {
            let mut columns: [Vec<i64>; 7] = Default::default();
            for ((to, from), name) in columns.iter_mut().zip(&self.columns).zip(NAMES) {
                *to = from.iter().map(|&value| size(name, value)).collect::<Result<_>>()?;
            }
            return Ok(Sizes::Int64(columns));
        }
        let mut columns: [Vec<i32>; 7] = Default::default();
        for ((to, from), name) in columns.iter_mut().zip(&self.columns).zip(NAMES) {
            *to = from.iter().map(|&value| small_size(name, value)).collect::<Result<_>>()?;
        }
        Ok(Sizes::Int32(columns))
    }
}

/// A matrix that the call touches must be there: behind these pointers the library checks nothing.
fn given(
    name: &str,
    needed: bool,
    memory: Option<Memory>,
    checked: impl FnOnce(&str) -> Result<*const c_void>,
) -> Result<*const c_void> {
    if needed && memory.is_none() {
        return Err(Error::new(Status::NULL_POINTER, format!("{name} is absent; its group needs it")));
    }
    checked(name)
}
