//! The products of all groups in one call.
use crate::error::check;
use crate::handle::host_workspace;
use crate::tensor_check::*;
use crate::types::flags;
use crate::*;

/// `D_e = alpha * A_e @ B_e + beta * C_e` for every group e.
///
/// | layout | A | B | C, D |
/// |---|---|---|---|
/// | `Contiguous` | `[m, k]` | `[groups, n, k]` or `[groups, k, n]` | `[m, n]` |
/// | `Masked` | `[groups, m, k]` | the same | `[groups, m, n]` |
/// | `VariableK` | `[k, m]` | `[k, n]` | `[groups, m, n]`, `D_e = A_e^T @ B_e` over the rows of group e |
///
/// `m` of the first two and `k` of the third are bounds; the sizes of the groups are tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupedGemmProblem {
    /// Groups, up to 2^20 (65536 with `RowGroup`)
    pub groups: usize,
    /// See the table
    pub m: usize,
    /// See the table
    pub n: usize,
    /// See the table
    pub k: usize,
    /// Elements between rows of A; 0: packed
    pub lda: usize,
    /// Elements between rows of B as stored; 0: packed
    pub ldb: usize,
    /// Elements between rows of C; 0: packed
    pub ldc: usize,
    /// Elements between rows of D; 0: packed
    pub ldd: usize,
    /// `Masked`: elements between groups of A
    pub stride_a: Stride,
    /// `Contiguous`, `Masked`: elements between groups of B
    pub stride_b: Stride,
    /// `Masked`, `VariableK`: elements between groups of C
    pub stride_c: Stride,
    /// `Masked`, `VariableK`: elements between groups of D; 0: packed
    pub stride_d: usize,
    /// `None`: 1. As float32 unless the types are float64
    pub alpha: Option<f64>,
    /// 0: C is not read
    pub beta: f64,
    /// See the table
    pub layout: Layout,
    /// How the groups are given; `Masked` takes `Sizes` only
    pub group_form: GroupForm,
    /// Type of the arrays that say so; default: int32
    pub index_type: IndexType,
    /// To be chosen; `VariableK`: `Unset`
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
    /// Not `VariableK`: leave unused rows of D as they are; otherwise they become +0.0
    pub keep_unused_rows: bool,
    /// Multiprocessors (host: threads) the call may use; 0: all
    pub sm_limit: usize,
}

impl GroupedGemmProblem {
    pub(crate) fn raw(&self) -> Result<sys::ggm_grouped_gemm_problem_t> {
        Ok(sys::ggm_grouped_gemm_problem_t {
            flags: flags(&[
                (self.keep_unused_rows, sys::GGM_FLAG_KEEP_UNUSED_ROWS),
                (self.alpha.is_some(), sys::GGM_FLAG_ALPHA),
            ]),
            groups: size("groups", self.groups)?,
            m: size("m", self.m)?,
            n: size("n", self.n)?,
            k: size("k", self.k)?,
            lda: size("lda", self.lda)?,
            ldb: size("ldb", self.ldb)?,
            ldc: size("ldc", self.ldc)?,
            ldd: size("ldd", self.ldd)?,
            stride_a: stride("stride_a", self.stride_a)?,
            stride_b: stride("stride_b", self.stride_b)?,
            stride_c: stride("stride_c", self.stride_c)?,
            stride_d: size("stride_d", self.stride_d)?,
            alpha: self.alpha.unwrap_or(0.0),
            beta: self.beta,
            layout: self.layout.code(),
            group_form: self.group_form.code(),
            index_type: self.index_type.code(),
            b_order: self.b_order.code(),
            a_type: self.a_type.code(),
            b_type: self.b_type.code(),
            c_type: self.c_type.code(),
            d_type: self.d_type.code(),
            compute_type: self.compute_type.code(),
            sm_limit: small_size("sm_limit", self.sm_limit)?,
            ..Default::default()
        })
    }

    fn a_extent(&self) -> Extent {
        match self.layout {
            Layout::Contiguous => Extent::matrix(self.m, self.lda, self.k),
            Layout::Masked => Extent::matrix(self.m, self.lda, self.k).grouped(self.groups, self.stride_a),
            Layout::VariableK => Extent::matrix(self.k, self.lda, self.m),
        }
    }

    fn b_extent(&self) -> Extent {
        match (self.layout, self.b_order) {
            (Layout::VariableK, _) => Extent::matrix(self.k, self.ldb, self.n),
            (_, Order::Kn) => Extent::matrix(self.k, self.ldb, self.n).grouped(self.groups, self.stride_b),
            (_, _) => Extent::matrix(self.n, self.ldb, self.k).grouped(self.groups, self.stride_b),
        }
    }

    fn result_extent(&self, ld: usize, stride: Stride) -> Extent {
        let matrix = Extent::matrix(self.m, ld, self.n);
        match self.layout {
            Layout::Contiguous => matrix,
            Layout::Masked | Layout::VariableK => matrix.grouped(self.groups, stride),
        }
    }

    fn rows(&self) -> usize {
        if self.layout == Layout::VariableK {
            self.k
        } else {
            self.m
        }
    }
}

/// Tensors of [`GroupedGemm`].
#[derive(Debug, Default)]
pub struct GroupedGemmTensors<'a> {
    /// `Sizes`, `StartsSizes`: `[groups]` of `index_type`; else absent
    pub group_sizes: Input<'a>,
    /// `Offsets`: `[groups + 1]`; `Ends`, `StartsSizes`: `[groups]`; else absent
    pub group_offsets: Input<'a>,
    /// `RowGroup`: `[rows]`; else absent
    pub row_group: Input<'a>,
    /// Of `a_type`
    pub a: Input<'a>,
    /// Of `b_type`
    pub b: Input<'a>,
    /// Of `c_type`; may be D itself, [`Addend::Output`]
    pub c: Addend<'a>,
    /// Of `d_type`
    pub d: Output<'a>,
    /// Counts clamped sizes, bad offsets and bad ids
    pub faults: FaultsRef<'a>,
}

operation! {
    /// [`GroupedGemmProblem`] on a handle.
    GroupedGemm, GroupedGemmProblem -> ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t,
    /// The products of all groups.
    grouped_gemm: ggm_grouped_gemm_workspace_size, ggm_grouped_gemm
}

impl GroupedGemm<'_> {
    /// Multiplies. Bad sizes, offsets and groups of rows are clamped or skipped, and counted.
    pub fn run<'w>(
        &self,
        tensors: GroupedGemmTensors<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
        stream: Stream,
    ) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let index = index_of(p.index_type).or(INT32);
        let groups = Extent::vector(p.groups);
        let offsets = Extent::vector(p.groups.saturating_add(usize::from(p.group_form == GroupForm::Offsets && p.groups > 0)));
        let raw = sys::ggm_grouped_gemm_tensors_t {
            group_sizes: check.input("group_sizes", &t.group_sizes, index, groups)?,
            group_offsets: check.input("group_offsets", &t.group_offsets, index, offsets)?,
            row_group: check.input("row_group", &t.row_group, index, Extent::vector(p.rows()))?,
            a: check.input("a", &t.a, element_of(p.a_type), p.a_extent())?,
            b: check.input("b", &t.b, element_of(p.b_type), p.b_extent())?,
            c: check.addend("c", &t.c, element_of(p.c_type), p.result_extent(p.ldc, p.stride_c), &t.d)?,
            d: {
                let extent = p.result_extent(p.ldd, Stride::Elements(p.stride_d));
                check.output("d", &t.d, element_or(p.d_type, p.a_type), extent)?
            },
            faults: check.faults(t.faults)?,
            ..Default::default()
        };
        if p.layout == Layout::Contiguous && p.group_form == GroupForm::StartsSizes {
            check.apart(&t.group_offsets, &t.group_sizes, p.groups, p.m)?;
        }
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}
