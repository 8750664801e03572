//! The whole product of a Mixture-of-Experts layer, routing included, and its gradients.
use crate::error::check;
use crate::handle::host_workspace;
use crate::route::{map_extent, RoutingSizes};
use crate::tensor_check::*;
use crate::types::flags;
use crate::*;

/// `y[t] = sum_j w[t,j] * (x[t] @ W[id[t,j]]^T + bias[id[t,j]])`, forward ([`MoeForward`]) and backward ([`MoeBackward`]).
///
/// One problem serves both: fill it once. With K = `in_features`, N = `out_features`, E = `experts`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MoeProblem {
    /// T; `tokens * top_k` is below 2^31
    pub tokens: usize,
    /// Slots of a token, 1 to 4096
    pub top_k: usize,
    /// Local experts, 1 to 65536
    pub experts: usize,
    /// As in [`RouteProblem`]; 0 when the routing arrays are given
    pub experts_total: usize,
    /// As in [`RouteProblem`]; 0 when the routing arrays are given
    pub first_expert: usize,
    /// As in [`RouteProblem`]
    pub max_rows: usize,
    /// Elements between the ids of two tokens; 0: `top_k`
    pub ids_ld: usize,
    /// Elements between the routing weights of two tokens; 0: `top_k`
    pub routing_weights_ld: usize,
    /// K
    pub in_features: usize,
    /// N
    pub out_features: usize,
    /// Elements between rows of x; 0: K
    pub x_ld: usize,
    /// Elements between rows of y; 0: N
    pub y_ld: usize,
    /// Elements between rows of a weight matrix as stored; 0: packed
    pub weight_ld: usize,
    /// Elements between the weights of two experts
    pub weight_stride: Stride,
    /// Elements between the biases of two experts
    pub bias_stride: Stride,
    /// Elements between rows of dy; 0: N
    pub dy_ld: usize,
    /// Elements between rows of dx; 0: K
    pub dx_ld: usize,
    /// Elements between rows of a gradient matrix; 0: packed
    pub d_weight_ld: usize,
    /// Elements between the gradients of two experts; 0: packed
    pub d_weight_stride: usize,
    /// Elements between the bias gradients of two experts; 0: N
    pub d_bias_stride: usize,
    /// Type of the ids; default: there are none, the arrays of [`Route`] are given
    pub id_type: IndexType,
    /// Default: no factor
    pub routing_weight_type: DataType,
    /// To be chosen
    pub x_type: DataType,
    /// To be chosen; equal to `x_type` in this version
    pub weight_type: DataType,
    /// Default: no bias; float32 or `x_type`
    pub bias_type: DataType,
    /// Default: `x_type`; that, or float32 with 16-bit x
    pub y_type: DataType,
    /// What a row's product is rounded to before rows are summed. Default: the type of the result; or float32
    pub product_type: DataType,
    /// The default is exact
    pub compute_type: ComputeType,
    /// To be chosen
    pub weight_order: Order,
    /// Whether x and dx are `[tokens, K]` or `[R, K]`
    pub input_rows: Rows,
    /// Whether y and dy are `[tokens, N]` or `[R, N]`
    pub output_rows: Rows,
    /// How the rows of a token are summed
    pub combine: Combine,
    /// Multiprocessors (host: threads) the call may use; 0: all
    pub sm_limit: usize,
    /// What the backward computes; the forward computes none of them
    pub gradients: Gradients,
    /// Default: `y_type`; in this version it must be `x_type`
    pub dy_type: DataType,
    /// Default: `x_type`; that, or float32 with 16-bit x
    pub dx_type: DataType,
    /// Default: `weight_type`; that, or float32 with 16-bit weights
    pub d_weight_type: DataType,
    /// Default: `bias_type`; `x_type` or float32
    pub d_bias_type: DataType,
    /// Leave unused output rows as they are; otherwise they become +0.0
    pub keep_unused_rows: bool,
    /// `y +=`
    pub add_to_y: bool,
    /// `dx +=`
    pub add_to_dx: bool,
    /// `d_weight +=`
    pub add_to_d_weight: bool,
    /// `d_bias +=`
    pub add_to_d_bias: bool,
}

impl MoeProblem {
    pub(crate) fn raw(&self) -> Result<sys::ggm_moe_problem_t> {
        Ok(sys::ggm_moe_problem_t {
            flags: flags(&[
                (self.keep_unused_rows, sys::GGM_FLAG_KEEP_UNUSED_ROWS),
                (self.add_to_y, sys::GGM_FLAG_ADD_TO_Y),
                (self.add_to_dx, sys::GGM_FLAG_ADD_TO_DX),
                (self.add_to_d_weight, sys::GGM_FLAG_ADD_TO_DWEIGHT),
                (self.add_to_d_bias, sys::GGM_FLAG_ADD_TO_DBIAS),
            ]),
            tokens: size("tokens", self.tokens)?,
            top_k: size("top_k", self.top_k)?,
            experts: size("experts", self.experts)?,
            experts_total: size("experts_total", self.experts_total)?,
            first_expert: size("first_expert", self.first_expert)?,
            max_rows: size("max_rows", self.max_rows)?,
            ids_ld: size("ids_ld", self.ids_ld)?,
            routing_weights_ld: size("routing_weights_ld", self.routing_weights_ld)?,
            in_features: size("in_features", self.in_features)?,
            out_features: size("out_features", self.out_features)?,
            x_ld: size("x_ld", self.x_ld)?,
            y_ld: size("y_ld", self.y_ld)?,
            weight_ld: size("weight_ld", self.weight_ld)?,
            weight_stride: stride("weight_stride", self.weight_stride)?,
            bias_stride: stride("bias_stride", self.bias_stride)?,
            dy_ld: size("dy_ld", self.dy_ld)?,
            dx_ld: size("dx_ld", self.dx_ld)?,
            d_weight_ld: size("d_weight_ld", self.d_weight_ld)?,
            d_weight_stride: size("d_weight_stride", self.d_weight_stride)?,
            d_bias_stride: size("d_bias_stride", self.d_bias_stride)?,
            id_type: self.id_type.code(),
            routing_weight_type: self.routing_weight_type.code(),
            x_type: self.x_type.code(),
            weight_type: self.weight_type.code(),
            bias_type: self.bias_type.code(),
            y_type: self.y_type.code(),
            product_type: self.product_type.code(),
            compute_type: self.compute_type.code(),
            weight_order: self.weight_order.code(),
            input_rows: self.input_rows.code(),
            output_rows: self.output_rows.code(),
            combine: self.combine.code(),
            sm_limit: small_size("sm_limit", self.sm_limit)?,
            gradients: self.gradients.bits(),
            dy_type: self.dy_type.code(),
            dx_type: self.dx_type.code(),
            d_weight_type: self.d_weight_type.code(),
            d_bias_type: self.d_bias_type.code(),
            ..Default::default()
        })
    }

    fn sizes(&self) -> RoutingSizes {
        RoutingSizes { tokens: self.tokens, top_k: self.top_k, experts: self.experts, max_rows: self.max_rows }
    }

    fn rows(&self, rows: Rows) -> usize {
        if rows == Rows::Grouped {
            self.sizes().rows()
        } else {
            self.tokens
        }
    }

    fn x_extent(&self, ld: usize) -> Extent {
        Extent::matrix(self.rows(self.input_rows), ld, self.in_features)
    }

    fn y_extent(&self, ld: usize) -> Extent {
        Extent::matrix(self.rows(self.output_rows), ld, self.out_features)
    }

    fn weight_extent(&self, ld: usize, stride: Stride) -> Extent {
        let matrix = match self.weight_order {
            Order::Kn => Extent::matrix(self.in_features, ld, self.out_features),
            _ => Extent::matrix(self.out_features, ld, self.in_features),
        };
        matrix.grouped(self.experts, stride)
    }

    fn bias_extent(&self, stride: Stride) -> Extent {
        Extent::matrix(1, self.out_features, self.out_features).grouped(self.experts, stride)
    }
}

/// Fields that both operations read in the same way, from either tensors struct into either struct of C.
macro_rules! routing_and_parameters {
    ($raw:ident, $p:ident, $t:ident, $check:ident) => {{
        let sizes = $p.sizes();
        $raw.ids = $check.input("ids", &$t.ids, index_of($p.id_type), sizes.slots($p.ids_ld))?;
        let map = map_extent($p.experts_total, $p.first_expert, $p.experts);
        $raw.expert_map = $check.input("expert_map", &$t.expert_map, INT32, map)?;
        $raw.group_offsets = $check.input("group_offsets", &$t.group_offsets, INT32, sizes.offsets())?;
        $raw.row_assignment = $check.input("row_assignment", &$t.row_assignment, INT32, Extent::vector(sizes.rows()))?;
        let assignments = Extent::vector(sizes.assignments());
        $raw.assignment_row = $check.input("assignment_row", &$t.assignment_row, INT32, assignments)?;
        let weight_element = element_of($p.routing_weight_type);
        let slots = sizes.slots($p.routing_weights_ld);
        $raw.routing_weights = $check.input("routing_weights", &$t.routing_weights, weight_element, slots)?;
        $raw.x = $check.input("x", &$t.x, element_of($p.x_type), $p.x_extent($p.x_ld))?;
        let weight = $p.weight_extent($p.weight_ld, $p.weight_stride);
        $raw.weight = $check.input("weight", &$t.weight, element_of($p.weight_type), weight)?;
        $raw.bias = $check.input("bias", &$t.bias, element_of($p.bias_type), $p.bias_extent($p.bias_stride))?;
        $raw.num_tokens = $check.input("num_tokens", &$t.num_tokens, INT32, Extent::vector(1))?;
        $raw.faults = $check.faults($t.faults)?;
    }};
}

/// Tensors of [`MoeForward`]. Either `ids`, or the three arrays of [`Route`]. R is `max_rows`, or `tokens * top_k` when that
/// is 0 or less.
#[derive(Debug, Default)]
pub struct MoeForwardTensors<'a> {
    /// `[tokens, top_k]` of `id_type`
    pub ids: Input<'a>,
    /// `i32 [experts_total]`; absent: by `first_expert`
    pub expert_map: Input<'a>,
    /// `i32 [experts + 1]`
    pub group_offsets: Input<'a>,
    /// `i32 [R]`
    pub row_assignment: Input<'a>,
    /// `i32 [tokens * top_k]`
    pub assignment_row: Input<'a>,
    /// `[tokens, top_k]` of `routing_weight_type`
    pub routing_weights: Input<'a>,
    /// `[tokens, K]` or `[R, K]`
    pub x: Input<'a>,
    /// `[experts, N, K]` or `[experts, K, N]`
    pub weight: Input<'a>,
    /// `[experts, N]` of `bias_type`
    pub bias: Input<'a>,
    /// `[tokens, N]` or `[R, N]`
    pub y: Output<'a>,
    /// `i32 [1]`; absent: `tokens`
    pub num_tokens: Input<'a>,
    /// Counts bad ids, bad routing and dropped rows
    pub faults: FaultsRef<'a>,
}

operation! {
    /// [`MoeProblem`] on a handle.
    MoeForward, MoeProblem -> ggm_moe_problem_t, ggm_moe_forward_tensors_t,
    /// The product of a whole layer.
    moe_forward: ggm_moe_forward_workspace_size, ggm_moe_forward
}

impl MoeForward<'_> {
    /// Computes y.
    pub fn run<'w>(
        &self,
        tensors: MoeForwardTensors<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
        stream: Stream,
    ) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let mut raw = sys::ggm_moe_forward_tensors_t::INIT;
        routing_and_parameters!(raw, p, t, check);
        raw.y = check.output("y", &t.y, element_or(p.y_type, p.x_type), p.y_extent(p.y_ld))?;
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}

/// Tensors of [`MoeBackward`]; the first ones as in [`MoeForwardTensors`]. Each gradient is given exactly when the problem
/// asks for it.
#[derive(Debug, Default)]
pub struct MoeBackwardTensors<'a> {
    /// As in the forward
    pub ids: Input<'a>,
    /// As in the forward
    pub expert_map: Input<'a>,
    /// As in the forward
    pub group_offsets: Input<'a>,
    /// As in the forward
    pub row_assignment: Input<'a>,
    /// As in the forward
    pub assignment_row: Input<'a>,
    /// As in the forward
    pub routing_weights: Input<'a>,
    /// Needed by `d_weight` and `d_routing_weights`
    pub x: Input<'a>,
    /// Needed by `dx` and `d_routing_weights`
    pub weight: Input<'a>,
    /// Needed by `d_routing_weights` when there is a bias
    pub bias: Input<'a>,
    /// `[tokens, N]` or `[R, N]` of `dy_type`
    pub dy: Input<'a>,
    /// `[tokens, K]` or `[R, K]`
    pub dx: Output<'a>,
    /// Shaped as the weight
    pub d_weight: Output<'a>,
    /// `[experts, N]`
    pub d_bias: Output<'a>,
    /// `f32 [tokens, top_k]`, packed
    pub d_routing_weights: Output<'a>,
    /// As in the forward
    pub num_tokens: Input<'a>,
    /// As in the forward
    pub faults: FaultsRef<'a>,
}

operation! {
    /// The gradients of a [`MoeProblem`] on a handle.
    MoeBackward, MoeProblem -> ggm_moe_problem_t, ggm_moe_backward_tensors_t,
    /// Gradients of the product of a whole layer, those that the problem's `gradients` name.
    moe_backward: ggm_moe_backward_workspace_size, ggm_moe_backward
}

impl MoeBackward<'_> {
    /// Computes the gradients.
    pub fn run<'w>(
        &self,
        tensors: MoeBackwardTensors<'_>,
        workspace: impl Into<WorkspaceRef<'w>>,
        stream: Stream,
    ) -> Result<()> {
        let (p, t, check) = (&self.problem, &tensors, self.handle.tensor_check());
        let mut raw = sys::ggm_moe_backward_tensors_t::INIT;
        routing_and_parameters!(raw, p, t, check);
        let y_type = if p.y_type == DataType::Default { p.x_type } else { p.y_type };
        raw.dy = check.input("dy", &t.dy, element_or(p.dy_type, y_type), p.y_extent(p.dy_ld))?;
        raw.dx = check.output("dx", &t.dx, element_or(p.dx_type, p.x_type), p.x_extent(p.dx_ld))?;
        let d_weight = p.weight_extent(p.d_weight_ld, Stride::Elements(p.d_weight_stride));
        raw.d_weight = check.output("d_weight", &t.d_weight, element_or(p.d_weight_type, p.weight_type), d_weight)?;
        let d_bias = p.bias_extent(Stride::Elements(p.d_bias_stride));
        raw.d_bias = check.output("d_bias", &t.d_bias, element_or(p.d_bias_type, p.bias_type), d_bias)?;
        let assignments = Extent::vector(p.sizes().assignments());
        raw.d_routing_weights = check.output("d_routing_weights", &t.d_routing_weights, FLOAT32, assignments)?;
        // SAFETY: each tensor was held against its extent.
        unsafe { self.call(&raw, workspace.into(), stream) }
    }
}
