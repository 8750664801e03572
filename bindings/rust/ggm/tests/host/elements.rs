//! 16-bit floats: every bit pattern goes to float32 and back, and rounding goes to the nearest, ties to even.
use ggm::{Bf16, F16};

/// The value of a binary format of `exponent` and `mantissa` bits, by its definition.
fn by_definition(bits: u16, exponent: u32, mantissa: u32) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let bias = (1i32 << (exponent - 1)) - 1;
    let e = i32::from(bits >> mantissa & ((1 << exponent) - 1) as u16);
    let m = f64::from(bits & ((1 << mantissa) - 1) as u16) / f64::from(1u32 << mantissa);
    match e {
        0 => sign * m * 2f64.powi(1 - bias),
        e if e == (1 << exponent) - 1 && m == 0.0 => sign * f64::INFINITY,
        e if e == (1 << exponent) - 1 => f64::NAN,
        e => sign * (1.0 + m) * 2f64.powi(e - bias),
    }
}

fn check_all(exponent: u32, mantissa: u32, to: fn(u16) -> f32, from: fn(f32) -> u16) {
    for bits in 0..=u16::MAX {
        let expected = by_definition(bits, exponent, mantissa);
        let value = to(bits);
        if expected.is_nan() {
            assert!(value.is_nan(), "{bits:#06x}");
            assert!(to(from(value)).is_nan(), "{bits:#06x}");
            continue;
        }
        assert_eq!(f64::from(value), expected, "{bits:#06x}");
        assert_eq!(from(value), bits, "{bits:#06x}");
    }
    // Between each two neighbours: a quarter, the middle, three quarters.
    let infinity = ((1u16 << exponent) - 1) << mantissa;
    for bits in 0..infinity {
        let low = by_definition(bits, exponent, mantissa);
        // Behind the largest number stands what would be the next one; from its middle on everything is infinite.
        let high =
            if bits + 1 == infinity { 2f64.powi(1 << (exponent - 1)) } else { by_definition(bits + 1, exponent, mantissa) };
        for (part, rounded) in [(0.25, bits), (0.5, bits + (bits & 1)), (0.75, bits + 1)] {
            let value = (low + (high - low) * part) as f32;
            assert_eq!(f64::from(value), low + (high - low) * part, "the test's own value is exact");
            assert_eq!(from(value), rounded, "{bits:#06x} + {part}");
            assert_eq!(from(-value), rounded | 0x8000, "-({bits:#06x} + {part})");
        }
    }
}

#[test]
fn bfloat16() {
    check_all(8, 7, |bits| Bf16(bits).to_f32(), |value| Bf16::from_f32(value).0);
}

#[test]
fn float16() {
    check_all(5, 10, |bits| F16(bits).to_f32(), |value| F16::from_f32(value).0);
    assert_eq!(F16::from_f32(f32::MAX).0, 0x7c00);
    assert_eq!(F16::from_f32(1e-30).0, 0);
}
