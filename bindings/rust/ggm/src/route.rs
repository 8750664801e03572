//! Expert ids to sorted rows, and the gather and scatter as operations of their own.
use crate::error::check;
use crate::handle::host_workspace;
use crate::tensor_check::*;
use crate::types::flags;
use crate::*;

/// How many rows a routing has, from the sizes of a problem that the library has accepted.
#[derive(Clone, Copy)]
pub(crate) struct RoutingSizes {
    pub tokens: usize,
    pub top_k: usize,
    pub experts: usize,
    pub max_rows: usize,
}

impl RoutingSizes {
    pub fn assignments(&self) -> usize {
        self.tokens.saturating_mul(self.top_k)
    }

    pub fn rows(&self) -> usize {
        match self.max_rows {
            0 => self.assignments(),
            bound => bound.min(self.assignments()),
        }
    }

    pub fn offsets(&self) -> Extent {
        Extent::vector(self.experts.saturating_add(1))
    }

    /// Rows of the tokens' ids or routing weights.
    pub fn slots(&self, ld: usize) -> Extent {
        Extent::matrix(self.tokens, ld, self.top_k)
    }
}

/// Sorts expert ids into rows.
///
/// Slot (t,j) of a token is *assignment* t*top_k + j. A slot with a local expert becomes a *row*; rows are sorted by (local
/// expert, token, slot). An id of -1 is a slot without an expert; ids outside of the local experts have no row either.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteProblem {
    /// T; `tokens * top_k` is below 2^31
    pub tokens: usize,
    /// Slots of a token, 1 to 4096; may exceed the number of experts
    pub top_k: usize,
    /// Local experts, 1 to 65536
    pub experts: usize,
    /// Global experts; 0: `first_expert + experts`
    pub experts_total: usize,
    /// Global id of local expert 0; 0 with an `expert_map`
    pub first_expert: usize,
    /// Bound on the rows; 0: `tokens * top_k`. Rows beyond it are dropped and counted
    pub max_rows: usize,
    /// Elements between the ids of two tokens; 0: `top_k`
    pub ids_ld: usize,
    /// Type of the ids; to be chosen
    pub id_type: IndexType,
    /// Multiprocessors (host: threads) the call may use; 0: all. Never changes a result
    pub sm_limit: usize,
}

impl RouteProblem {
    pub(crate) fn raw(&self) -> Result<sys::ggm_route_problem_t> {
        Ok(sys::ggm_route_problem_t {
            tokens: size("tokens", self.tokens)?,
            top_k: size("top_k", self.top_k)?,
            experts: size("experts", self.experts)?,
            experts_total: size("experts_total", self.experts_total)?,
            first_expert: size("first_expert", self.first_expert)?,
            max_rows: size("max_rows", self.max_rows)?,
            ids_ld: size("ids_ld", self.ids_ld)?,
            id_type: self.id_type.code(),
            sm_limit: small_size("sm_limit", self.sm_limit)?,
            ..Default::default()
        })
    }

    pub(crate) fn sizes(&self) -> RoutingSizes {
        RoutingSizes { tokens: self.tokens, top_k: self.top_k, experts: self.experts, max_rows: self.max_rows }
    }
}

/// Entries of an `expert_map`.
pub(crate) fn map_extent(experts_total: usize, first_expert: usize, experts: usize) -> Extent {
    Extent::vector(if experts_total == 0 { first_expert.saturating_add(experts) } else { experts_total })
}

/// Tensors of [`Route`]. With R = `max_rows`, or `tokens * top_k` when that is 0 or less.
#[derive(Debug, Default)]
pub struct RouteTensors<'a> {
    /// `[tokens, top_k]` of `id_type`
    pub ids: Input<'a>,
    /// `i32 [experts_total]`, global to local expert or -1; absent: by `first_expert`
    pub expert_map: Input<'a>,
    /// `i32 [1]`, tokens that are real; absent: `tokens`
    pub num_tokens: Input<'a>,
    /// Counts bad ids, clamped `num_tokens` and dropped rows
    pub faults: FaultsRef<'a>,
    /// `i32 [experts + 1]`: rows of expert e are `group_offsets[e] .. group_offsets[e + 1]`
    pub group_offsets: Output<'a>,
    /// `i32 [R]`: the assignment of each row, -1 behind the last
    pub row_assignment: Output<'a>,
    /// `i32 [tokens * top_k]`: the row of each assignment, -1 where there is none
    pub assignment_row: Output<'a>,
}

operation! {
    /// [`RouteProblem`] on a handle.
    Route, RouteProblem -> ggm_route_problem_t, ggm_route_tensors_t,
    /// Expert ids to sorted rows.
    route: ggm_route_workspace_size, ggm_route
}

impl Route<'_> {
    /// Routes. On the host it returns when the work is done; on CUDA the work is put on `stream`.
    pub fn run<'w>(&self, tensors: RouteTensors<'_>, workspace: impl Into<WorkspaceRef<'w>>, stream: Stream) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let sizes = p.sizes();
        let raw = sys::ggm_route_tensors_t {
            ids: check.input("ids", &t.ids, index_of(p.id_type), sizes.slots(p.ids_ld))?,
            expert_map: {
                let extent = map_extent(p.experts_total, p.first_expert, p.experts);
                check.input("expert_map", &t.expert_map, INT32, extent)?
            },
            num_tokens: check.input("num_tokens", &t.num_tokens, INT32, Extent::vector(1))?,
            faults: check.faults(t.faults)?,
            group_offsets: check.output("group_offsets", &t.group_offsets, INT32, sizes.offsets())?,
            row_assignment: check.output("row_assignment", &t.row_assignment, INT32, Extent::vector(sizes.rows()))?,
            assignment_row: check.output("assignment_row", &t.assignment_row, INT32, Extent::vector(sizes.assignments()))?,
            ..Default::default()
        };
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}

/// Gathers rows of tokens ([`Permute`]), sums weighted rows of a token ([`Unpermute`]), or the gradients of that sum
/// ([`UnpermuteBackward`]), by the three arrays of [`Route`]. These are untrusted: rows whose two maps disagree are skipped and
/// counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PermuteProblem {
    /// T; `tokens * top_k` is below 2^31
    pub tokens: usize,
    /// Slots of a token, 1 to 4096
    pub top_k: usize,
    /// Experts, 1 to 65536
    pub experts: usize,
    /// As given to [`RouteProblem`]; 0: `tokens * top_k`
    pub max_rows: usize,
    /// Length of a row
    pub features: usize,
    /// Elements between two token rows; 0: `features`
    pub token_ld: usize,
    /// Elements between two sorted rows; 0: `features`
    pub row_ld: usize,
    /// Elements between the routing weights of two tokens; 0: `top_k`
    pub routing_weights_ld: usize,
    /// Type of the `[tokens, features]` tensor; to be chosen
    pub token_type: DataType,
    /// Type of the `[max_rows, features]` tensor; default: `token_type`
    pub row_type: DataType,
    /// Default: no weights, and permute takes no other
    pub routing_weight_type: DataType,
    /// Leave unused output rows as they are; otherwise they become +0.0
    pub keep_unused_rows: bool,
    /// Unpermute adds to its output
    pub add_to_y: bool,
    /// Multiprocessors (host: threads) the call may use; 0: all
    pub sm_limit: usize,
}

impl PermuteProblem {
    pub(crate) fn raw(&self) -> Result<sys::ggm_permute_problem_t> {
        Ok(sys::ggm_permute_problem_t {
            flags: flags(&[(self.keep_unused_rows, sys::GGM_FLAG_KEEP_UNUSED_ROWS), (self.add_to_y, sys::GGM_FLAG_ADD_TO_Y)]),
            tokens: size("tokens", self.tokens)?,
            top_k: size("top_k", self.top_k)?,
            experts: size("experts", self.experts)?,
            max_rows: size("max_rows", self.max_rows)?,
            features: size("features", self.features)?,
            token_ld: size("token_ld", self.token_ld)?,
            row_ld: size("row_ld", self.row_ld)?,
            routing_weights_ld: size("routing_weights_ld", self.routing_weights_ld)?,
            token_type: self.token_type.code(),
            row_type: self.row_type.code(),
            routing_weight_type: self.routing_weight_type.code(),
            sm_limit: small_size("sm_limit", self.sm_limit)?,
            ..Default::default()
        })
    }

    fn sizes(&self) -> RoutingSizes {
        RoutingSizes { tokens: self.tokens, top_k: self.top_k, experts: self.experts, max_rows: self.max_rows }
    }

    fn token_tensor(&self) -> (Option<ElementType>, Extent) {
        (element_of(self.token_type), Extent::matrix(self.tokens, self.token_ld, self.features))
    }

    fn row_tensor(&self) -> (Option<ElementType>, Extent) {
        (element_or(self.row_type, self.token_type), Extent::matrix(self.sizes().rows(), self.row_ld, self.features))
    }
}

/// Tensors of [`Permute`] and [`Unpermute`]. R as in [`RouteTensors`].
#[derive(Debug, Default)]
pub struct PermuteTensors<'a> {
    /// `i32 [experts + 1]` of [`Route`]
    pub group_offsets: Input<'a>,
    /// `i32 [R]`
    pub row_assignment: Input<'a>,
    /// `i32 [tokens * top_k]`
    pub assignment_row: Input<'a>,
    /// `[tokens, top_k]` of `routing_weight_type`
    pub routing_weights: Input<'a>,
    /// Permute: `[tokens, features]` of `token_type`. Unpermute: `[R, features]` of `row_type`
    pub input: Input<'a>,
    /// Permute: `[R, features]` of `row_type`. Unpermute: `[tokens, features]` of `token_type`
    pub output: Output<'a>,
    /// `i32 [1]`; absent: `tokens`
    pub num_tokens: Input<'a>,
    /// Counts bad routing
    pub faults: FaultsRef<'a>,
}

impl PermuteTensors<'_> {
    fn raw(
        &self,
        p: &PermuteProblem,
        check: &TensorCheck,
        input: (Option<ElementType>, Extent),
        output: (Option<ElementType>, Extent),
    ) -> Result<sys::ggm_permute_tensors_t> {
        let sizes = p.sizes();
        Ok(sys::ggm_permute_tensors_t {
            group_offsets: check.input("group_offsets", &self.group_offsets, INT32, sizes.offsets())?,
            row_assignment: check.input("row_assignment", &self.row_assignment, INT32, Extent::vector(sizes.rows()))?,
            assignment_row: check.input("assignment_row", &self.assignment_row, INT32, Extent::vector(sizes.assignments()))?,
            routing_weights: {
                let element = element_of(p.routing_weight_type);
                check.input("routing_weights", &self.routing_weights, element, sizes.slots(p.routing_weights_ld))?
            },
            input: check.input("input", &self.input, input.0, input.1)?,
            output: check.output("output", &self.output, output.0, output.1)?,
            num_tokens: check.input("num_tokens", &self.num_tokens, INT32, Extent::vector(1))?,
            faults: check.faults(self.faults)?,
            ..Default::default()
        })
    }
}

operation! {
    /// [`PermuteProblem`] as a gather, on a handle.
    Permute, PermuteProblem -> ggm_permute_problem_t, ggm_permute_tensors_t,
    /// The gather: `output[r] = input[token of r]`, converted.
    permute: ggm_permute_workspace_size, ggm_permute
}

impl Permute<'_> {
    /// Gathers. Unused rows of the output become +0.0 or stay.
    pub fn run<'w>(&self, tensors: PermuteTensors<'_>, workspace: impl Into<WorkspaceRef<'w>>, stream: Stream) -> Result<()> {
        let (p, check) = (&self.problem, self.handle.tensor_check());
        let raw = tensors.raw(p, &check, p.token_tensor(), p.row_tensor())?;
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}

operation! {
    /// [`PermuteProblem`] as a weighted sum, on a handle.
    Unpermute, PermuteProblem -> ggm_permute_problem_t, ggm_permute_tensors_t,
    /// The weighted sum: `output[t]` is the sum of `w[t,j] * input[r]` over the rows r of t, ascending.
    unpermute: ggm_unpermute_workspace_size, ggm_unpermute
}

impl Unpermute<'_> {
    /// Sums. A token without rows gets +0.0, or keeps its value with `add_to_y`.
    pub fn run<'w>(&self, tensors: PermuteTensors<'_>, workspace: impl Into<WorkspaceRef<'w>>, stream: Stream) -> Result<()> {
        let (p, check) = (&self.problem, self.handle.tensor_check());
        let raw = tensors.raw(p, &check, p.row_tensor(), p.token_tensor())?;
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}

/// Tensors of [`UnpermuteBackward`]. At least one of the two results is given. R as in [`RouteTensors`].
#[derive(Debug, Default)]
pub struct UnpermuteBackwardTensors<'a> {
    /// `i32 [experts + 1]` of [`Route`]
    pub group_offsets: Input<'a>,
    /// `i32 [R]`
    pub row_assignment: Input<'a>,
    /// `i32 [tokens * top_k]`
    pub assignment_row: Input<'a>,
    /// `[tokens, top_k]` of `routing_weight_type`
    pub routing_weights: Input<'a>,
    /// `[R, features]` of `row_type`, the input of unpermute; given exactly with `d_routing_weights`
    pub rows: Input<'a>,
    /// `[tokens, features]` of `token_type`
    pub dy: Input<'a>,
    /// `[R, features]` of `row_type`; absent: not wanted
    pub d_rows: Output<'a>,
    /// `f32 [tokens, top_k]`, packed; absent: not wanted
    pub d_routing_weights: Output<'a>,
    /// `i32 [1]`; absent: `tokens`
    pub num_tokens: Input<'a>,
    /// Counts bad routing
    pub faults: FaultsRef<'a>,
}

operation! {
    /// [`PermuteProblem`] as the gradient of the weighted sum, on a handle.
    UnpermuteBackward, PermuteProblem -> ggm_permute_problem_t, ggm_unpermute_backward_tensors_t,
    /// Gradients of [`unpermute`](Handle::unpermute): `d_rows[r] = w[t,j] * dy[t]` and `d_routing_weights[t,j] = <dy[t],
    /// rows[r]>`.
    unpermute_backward: ggm_unpermute_backward_workspace_size, ggm_unpermute_backward
}

impl UnpermuteBackward<'_> {
    /// Computes the results that are given.
    pub fn run<'w>(
        &self,
        tensors: UnpermuteBackwardTensors<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
        stream: Stream,
    ) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let sizes = p.sizes();
        let (row_element, row_extent) = p.row_tensor();
        let (token_element, token_extent) = p.token_tensor();
        let assignments = Extent::vector(sizes.assignments());
        let raw = sys::ggm_unpermute_backward_tensors_t {
            group_offsets: check.input("group_offsets", &t.group_offsets, INT32, sizes.offsets())?,
            row_assignment: check.input("row_assignment", &t.row_assignment, INT32, Extent::vector(sizes.rows()))?,
            assignment_row: check.input("assignment_row", &t.assignment_row, INT32, assignments)?,
            routing_weights: {
                let element = element_of(p.routing_weight_type);
                check.input("routing_weights", &t.routing_weights, element, sizes.slots(p.routing_weights_ld))?
            },
            rows: check.input("rows", &t.rows, row_element, row_extent)?,
            dy: check.input("dy", &t.dy, token_element, token_extent)?,
            d_rows: check.output("d_rows", &t.d_rows, row_element, row_extent)?,
            d_routing_weights: check.output("d_routing_weights", &t.d_routing_weights, FLOAT32, assignments)?,
            num_tokens: check.input("num_tokens", &t.num_tokens, INT32, Extent::vector(1))?,
            faults: check.faults(t.faults)?,
            ..Default::default()
        };
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}
