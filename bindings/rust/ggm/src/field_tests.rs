//! Each field of a problem reaches the field of the same name in C, and no other one; and every field of the C struct is
//! reached.
use crate::*;
use std::collections::BTreeSet;

/// The bytes of a C struct, which has no padding.
fn bytes<T>(value: &T) -> &[u8] {
    // SAFETY: plain fields without gaps, so all bytes are initialised.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), std::mem::size_of::<T>()) }
}

/// Names of the fields of a C struct.
fn fields_of(wanted: &str) -> BTreeSet<&'static str> {
    let mut fields = BTreeSet::new();
    macro_rules! structs {
        ($name:ident: $($field:ident),*) => {
            if stringify!($name) == wanted {
                fields.extend([$(stringify!($field)),*]);
            }
        };
    }
    macro_rules! constants {
        ($name:ident) => {};
    }
    sys::every_declaration!(structs, constants);
    fields
}

/// `field = value => number in C`; `[fields]` are sizes; `flag { field => bit }` are flags.
macro_rules! check_fields {
    ($problem:ident, $raw:ident, [$($size:ident),*], { $($field:ident = $value:expr => $code:expr,)* },
     flags { $($flag:ident => $bit:ident,)* }) => {{
        let mut reached = BTreeSet::from(["struct_size", "flags"]);
        $(
            let raw = $problem { $size: 77, ..Default::default() }.raw().unwrap();
            assert_eq!(bytes(&raw), bytes(&sys::$raw { $size: 77, ..sys::$raw::INIT }), stringify!($size));
            reached.insert(stringify!($size));
        )*
        $(
            let raw = $problem { $field: $value, ..Default::default() }.raw().unwrap();
            assert_eq!(bytes(&raw), bytes(&sys::$raw { $field: $code, ..sys::$raw::INIT }), stringify!($field));
            reached.insert(stringify!($field));
        )*
        $(
            let raw = $problem { $flag: true, ..Default::default() }.raw().unwrap();
            let flags = sys::$bit as u32;
            assert_eq!(bytes(&raw), bytes(&sys::$raw { flags, ..sys::$raw::INIT }), stringify!($flag));
        )*
        reached
    }};
}

#[test]
fn route_problem() {
    let reached = check_fields!(
        RouteProblem, ggm_route_problem_t,
        [tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld, sm_limit],
        { id_type = IndexType::Int64 => sys::GGM_INDEX_INT64, },
        flags {}
    );
    assert_eq!(reached, fields_of("ggm_route_problem_t"));
}

#[test]
fn permute_problem() {
    let reached = check_fields!(
        PermuteProblem, ggm_permute_problem_t,
        [tokens, top_k, experts, max_rows, features, token_ld, row_ld, routing_weights_ld, sm_limit],
        {
            token_type = DataType::BFloat16 => sys::GGM_TYPE_BFLOAT16,
            row_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            routing_weight_type = DataType::Float64 => sys::GGM_TYPE_FLOAT64,
        },
        flags { keep_unused_rows => GGM_FLAG_KEEP_UNUSED_ROWS, add_to_y => GGM_FLAG_ADD_TO_Y, }
    );
    assert_eq!(reached, fields_of("ggm_permute_problem_t"));
}

#[test]
fn grouped_gemm_problem() {
    let mut reached = check_fields!(
        GroupedGemmProblem, ggm_grouped_gemm_problem_t,
        [groups, m, n, k, lda, ldb, ldc, ldd, stride_d, sm_limit],
        {
            stride_a = Stride::Elements(5) => 5,
            stride_b = Stride::Shared => sys::GGM_STRIDE_SHARED,
            stride_c = Stride::Elements(6) => 6,
            beta = 2.5 => 2.5,
            layout = Layout::VariableK => sys::GGM_LAYOUT_VARIABLE_K,
            group_form = GroupForm::RowGroup => sys::GGM_GROUPS_ROW_GROUP,
            index_type = IndexType::Int32 => sys::GGM_INDEX_INT32,
            b_order = Order::Kn => sys::GGM_ORDER_KN,
            a_type = DataType::Float16 => sys::GGM_TYPE_FLOAT16,
            b_type = DataType::BFloat16 => sys::GGM_TYPE_BFLOAT16,
            c_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            d_type = DataType::Float64 => sys::GGM_TYPE_FLOAT64,
            compute_type = ComputeType::Tf32x3 => sys::GGM_COMPUTE_TF32X3,
        },
        flags { keep_unused_rows => GGM_FLAG_KEEP_UNUSED_ROWS, }
    );
    let raw = GroupedGemmProblem { alpha: Some(0.0), ..Default::default() }.raw().unwrap();
    assert_eq!((raw.flags, raw.alpha), (sys::GGM_FLAG_ALPHA as u32, 0.0), "an alpha of 0 is one");
    let raw = GroupedGemmProblem { alpha: Some(3.0), ..Default::default() }.raw().unwrap();
    assert_eq!((raw.flags, raw.alpha), (sys::GGM_FLAG_ALPHA as u32, 3.0));
    reached.insert("alpha");
    assert_eq!(reached, fields_of("ggm_grouped_gemm_problem_t"));
}

#[test]
fn grouped_gemm_array_problem() {
    let mut reached = check_fields!(
        GroupedGemmArrayProblem, ggm_grouped_gemm_array_problem_t,
        [groups, max_m, max_n, max_k, min_alignment, sm_limit],
        {
            beta = 2.5 => 2.5,
            index_type = IndexType::Int64 => sys::GGM_INDEX_INT64,
            a_order = AOrder::Km => sys::GGM_ORDER_KM,
            b_order = Order::Nk => sys::GGM_ORDER_NK,
            a_type = DataType::Float16 => sys::GGM_TYPE_FLOAT16,
            b_type = DataType::BFloat16 => sys::GGM_TYPE_BFLOAT16,
            c_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            d_type = DataType::Float64 => sys::GGM_TYPE_FLOAT64,
            compute_type = ComputeType::Tf32 => sys::GGM_COMPUTE_TF32,
        },
        flags {}
    );
    let raw = GroupedGemmArrayProblem { alpha: Some(3.0), ..Default::default() }.raw().unwrap();
    assert_eq!((raw.flags, raw.alpha), (sys::GGM_FLAG_ALPHA as u32, 3.0));
    reached.insert("alpha");
    assert_eq!(reached, fields_of("ggm_grouped_gemm_array_problem_t"));
}

#[test]
fn moe_problem() {
    let all = Gradients { x: true, weight: true, routing_weights: true, bias: true };
    let reached = check_fields!(
        MoeProblem, ggm_moe_problem_t,
        [
            tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld, routing_weights_ld, in_features, out_features,
            x_ld, y_ld, weight_ld, dy_ld, dx_ld, d_weight_ld, d_weight_stride, d_bias_stride, sm_limit
        ],
        {
            weight_stride = Stride::Elements(5) => 5,
            bias_stride = Stride::Shared => sys::GGM_STRIDE_SHARED,
            id_type = IndexType::Int64 => sys::GGM_INDEX_INT64,
            routing_weight_type = DataType::Float16 => sys::GGM_TYPE_FLOAT16,
            x_type = DataType::BFloat16 => sys::GGM_TYPE_BFLOAT16,
            weight_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            bias_type = DataType::Float64 => sys::GGM_TYPE_FLOAT64,
            y_type = DataType::Float16 => sys::GGM_TYPE_FLOAT16,
            product_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            compute_type = ComputeType::Tf32 => sys::GGM_COMPUTE_TF32,
            weight_order = Order::Kn => sys::GGM_ORDER_KN,
            input_rows = Rows::Grouped => sys::GGM_ROWS_GROUPED,
            output_rows = Rows::Grouped => sys::GGM_ROWS_GROUPED,
            combine = Combine::TwoStep => sys::GGM_COMBINE_TWO_STEP,
            gradients = all => 15,
            dy_type = DataType::Float16 => sys::GGM_TYPE_FLOAT16,
            dx_type = DataType::BFloat16 => sys::GGM_TYPE_BFLOAT16,
            d_weight_type = DataType::Float32 => sys::GGM_TYPE_FLOAT32,
            d_bias_type = DataType::Float64 => sys::GGM_TYPE_FLOAT64,
        },
        flags {
            keep_unused_rows => GGM_FLAG_KEEP_UNUSED_ROWS,
            add_to_y => GGM_FLAG_ADD_TO_Y,
            add_to_dx => GGM_FLAG_ADD_TO_DX,
            add_to_d_weight => GGM_FLAG_ADD_TO_DWEIGHT,
            add_to_d_bias => GGM_FLAG_ADD_TO_DBIAS,
        }
    );
    assert_eq!(reached, fields_of("ggm_moe_problem_t"));
    let one = |gradients: Gradients| MoeProblem { gradients, ..Default::default() }.raw().unwrap().gradients;
    assert_eq!(one(Gradients { x: true, ..Default::default() }), sys::GGM_GRADIENT_X);
    assert_eq!(one(Gradients { weight: true, ..Default::default() }), sys::GGM_GRADIENT_WEIGHT);
    assert_eq!(one(Gradients { routing_weights: true, ..Default::default() }), sys::GGM_GRADIENT_ROUTING_WEIGHTS);
    assert_eq!(one(Gradients { bias: true, ..Default::default() }), sys::GGM_GRADIENT_BIAS);
}
