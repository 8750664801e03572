//! The quick start of bindings/rust/README.md: a test holds the two together.
use ggm::*;

fn main() -> Result<()> {
    // Two tokens, two experts: expert 0 doubles a token, expert 1 swaps its two features.
    let x = [1.0f32, 2.0, 3.0, 4.0];
    let weight = [2.0f32, 0.0, 0.0, 2.0, 0.0, 1.0, 1.0, 0.0];
    let ids = [0, 1, 1, -1]; // token 0 goes to both experts, token 1 to expert 1 alone
    let routing_weights = [0.5f32, 0.25, 1.0, 0.0];
    let mut y = [0.0f32; 4];

    let handle = Handle::on(Backend::Host)?;
    let forward = handle.moe_forward(&MoeProblem {
        tokens: 2,
        top_k: 2,
        experts: 2,
        in_features: 2,
        out_features: 2,
        id_type: IndexType::Int32,
        routing_weight_type: DataType::Float32,
        x_type: DataType::Float32,
        weight_type: DataType::Float32,
        weight_order: Order::Nk,
        ..Default::default() // zero, and so the default, everywhere
    })?;
    let mut workspace = forward.workspace()?;
    let tensors = MoeForwardTensors {
        ids: (&ids).into(),
        routing_weights: (&routing_weights).into(),
        x: (&x).into(),
        weight: (&weight).into(),
        y: (&mut y).into(),
        ..Default::default()
    };
    forward.run(tensors, &mut workspace, Stream::DEFAULT)?;
    println!("{y:?}");
    assert_eq!(y, [1.5, 2.25, 4.0, 3.0]);
    Ok(())
}
