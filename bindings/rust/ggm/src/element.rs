//! Elements of tensors, and 16-bit floats without a dependency.
use std::fmt;

/// Type of the elements that an [`Input`](crate::Input) or [`Output`](crate::Output) refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// `f32`
    Float32,
    /// [`Bf16`]
    BFloat16,
    /// [`F16`]
    Float16,
    /// `f64`
    Float64,
    /// `i32`
    Int32,
    /// `i64`
    Int64,
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementType::Float32 => "float32",
            ElementType::BFloat16 => "bfloat16",
            ElementType::Float16 => "float16",
            ElementType::Float64 => "float64",
            ElementType::Int32 => "int32",
            ElementType::Int64 => "int64",
        })
    }
}

/// A Rust type that tensors are made of.
///
/// # Safety
/// Size, alignment and meaning of the bits are those of `TYPE`, and all bit patterns are valid values: the library writes any.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// What the library calls it.
    const TYPE: ElementType;
}
// SAFETY: these are the very types.
unsafe impl Element for f32 {
    const TYPE: ElementType = ElementType::Float32;
}
unsafe impl Element for f64 {
    const TYPE: ElementType = ElementType::Float64;
}
unsafe impl Element for i32 {
    const TYPE: ElementType = ElementType::Int32;
}
unsafe impl Element for i64 {
    const TYPE: ElementType = ElementType::Int64;
}
// SAFETY: transparent over the 16 bits of the format.
unsafe impl Element for Bf16 {
    const TYPE: ElementType = ElementType::BFloat16;
}
unsafe impl Element for F16 {
    const TYPE: ElementType = ElementType::Float16;
}

/// A bfloat16 number: the upper half of a float32. For storage; arithmetic goes by `f32`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bf16(pub u16);

/// A float16 number (IEEE binary16). For storage; arithmetic goes by `f32`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

impl Bf16 {
    /// Rounded to nearest, ties to even. A NaN stays a NaN.
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x0040);
        }
        // Half of the last kept bit less one, and that bit itself: a tie goes to the even neighbour.
        Bf16((bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl F16 {
    /// Rounded to nearest, ties to even; too large becomes infinite. A NaN stays a NaN.
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return F16(sign | 0x7e00 | (magnitude >> 13) as u16 & 0x03ff);
        }
        // 65520 is half way between the largest number and the power of two behind it.
        if magnitude >= 0x477f_f000 {
            return F16(sign | 0x7c00);
        }
        // Below 2^-14 numbers are multiples of 2^-24: adding 0.5, whose last bit is 2^-24, makes the addition round there.
        if magnitude < 0x3880_0000 {
            return F16(sign | ((f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()) as u16);
        }
        let rounded = magnitude + 0x0fff + ((magnitude >> 13) & 1);
        // The exponents differ in their bias: 127 and 15.
        F16(sign | ((rounded >> 13) - (112 << 10)) as u16)
    }

    /// Exact.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let magnitude = u32::from(self.0 & 0x7fff);
        let bits = match magnitude {
            0x7c00..=0x7fff => 0x7f80_0000 | (magnitude & 0x03ff) << 13,
            0x0400..=0x7bff => (magnitude + (112 << 10)) << 13,
            _ => (magnitude as f32 / 16_777_216.0).to_bits(),
        };
        f32::from_bits(sign | bits)
    }
}

macro_rules! as_f32 {
    ($($name:ident),*) => {
        $(
            impl From<$name> for f32 {
                fn from(value: $name) -> f32 {
                    value.to_f32()
                }
            }
            impl PartialEq for $name {
                fn eq(&self, other: &Self) -> bool {
                    self.to_f32() == other.to_f32()
                }
            }
            impl PartialOrd for $name {
                fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                    self.to_f32().partial_cmp(&other.to_f32())
                }
            }
            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(&self.to_f32(), f)
                }
            }
            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Display::fmt(&self.to_f32(), f)
                }
            }
        )*
    };
}
as_f32!(Bf16, F16);
