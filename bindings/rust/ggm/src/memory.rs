//! Memory that a call reads and writes: slices on the host backend, device addresses on CUDA.
use crate::{sys, Bf16, Element, ElementType, F16};
use std::marker::PhantomData;
use std::ops::Range;
use std::os::raw::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Host,
    Device,
}

/// A tensor without its lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub pointer: *mut c_void,
    pub elements: usize,
    pub element: ElementType,
    pub space: Space,
}

impl Memory {
    /// Element `at` of an array of indices, of either type.
    ///
    /// # Safety
    /// It is host memory of more than `at` elements.
    pub unsafe fn index(&self, at: usize) -> i64 {
        match self.element {
            ElementType::Int64 => unsafe { *self.pointer.cast::<i64>().add(at) },
            _ => i64::from(unsafe { *self.pointer.cast::<i32>().add(at) }),
        }
    }
}

/// Device memory of `len()` elements at an address of the handle's GPU. A plain pair: it owns nothing and copies freely.
#[derive(Debug)]
pub struct DeviceSlice<T> {
    address: *mut T,
    elements: usize,
}

impl<T> Clone for DeviceSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DeviceSlice<T> {}
// SAFETY: an address and a number; nothing in this crate follows it on the host.
unsafe impl<T> Send for DeviceSlice<T> {}
unsafe impl<T> Sync for DeviceSlice<T> {}

impl<T> DeviceSlice<T> {
    /// Device memory at `address`, from `cudaMalloc` or whatever else the GPU can read and write there.
    ///
    /// # Safety
    /// Whenever it is part of a call, until the work of that call on its stream is done: the memory holds `elements` elements
    /// of `T`, belongs to the handle's device, stays allocated, and nobody writes what the call reads or touches what it
    /// writes, but through work that the stream orders.
    pub const unsafe fn new(address: *mut T, elements: usize) -> Self {
        DeviceSlice { address, elements }
    }

    /// Its address.
    pub const fn address(self) -> *mut T {
        self.address
    }

    /// Elements.
    pub const fn len(self) -> usize {
        self.elements
    }

    /// Whether it has no elements.
    pub const fn is_empty(self) -> bool {
        self.elements == 0
    }

    /// A part of it. Panics when the range is not inside.
    pub fn slice(self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.elements,
            "{range:?} is not inside of {} elements",
            self.elements
        );
        DeviceSlice { address: self.address.wrapping_add(range.start), elements: range.end - range.start }
    }
}

/// A tensor that a call reads: `From` a slice, a `Vec`, an array, or a [`DeviceSlice`]. The default is "absent".
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    pub(crate) memory: Option<Memory>,
    lifetime: PhantomData<&'a [u8]>,
}
// SAFETY: what `&[T]` of plain elements is.
unsafe impl Send for Input<'_> {}
unsafe impl Sync for Input<'_> {}

/// A tensor that a call writes: `From` a mutable slice, `Vec` or array, or a [`DeviceSlice`]. The default is "absent".
///
/// Its memory stays borrowed, so nothing else can be given the same:
///
/// ```compile_fail,E0502
/// # use ggm::*;
/// let mut memory = [0.0f32; 4];
/// let tensors = PermuteTensors { output: (&mut memory).into(), input: (&memory).into(), ..Default::default() };
/// drop(tensors);
/// ```
#[derive(Debug, Default)]
pub struct Output<'a> {
    pub(crate) memory: Option<Memory>,
    lifetime: PhantomData<&'a mut [u8]>,
}
// SAFETY: what `&mut [T]` of plain elements is.
unsafe impl Send for Output<'_> {}
unsafe impl Sync for Output<'_> {}

impl<'a> Input<'a> {
    /// Not given.
    pub const ABSENT: Input<'static> = Input { memory: None, lifetime: PhantomData };

    fn host(pointer: *const c_void, elements: usize, element: ElementType) -> Self {
        Input {
            memory: Some(Memory { pointer: pointer as *mut c_void, elements, element, space: Space::Host }),
            lifetime: PhantomData,
        }
    }

    /// bfloat16 numbers as their bits, such as those of another crate's type.
    pub fn bfloat16_bits(bits: &'a [u16]) -> Self {
        Self::host(bits.as_ptr().cast(), bits.len(), Bf16::TYPE)
    }

    /// float16 numbers as their bits.
    pub fn float16_bits(bits: &'a [u16]) -> Self {
        Self::host(bits.as_ptr().cast(), bits.len(), F16::TYPE)
    }

    /// Whether a tensor is given.
    pub fn is_given(&self) -> bool {
        self.memory.is_some()
    }
}

impl<'a> Output<'a> {
    /// Not given.
    pub const ABSENT: Output<'static> = Output { memory: None, lifetime: PhantomData };

    fn host(pointer: *mut c_void, elements: usize, element: ElementType) -> Self {
        Output { memory: Some(Memory { pointer, elements, element, space: Space::Host }), lifetime: PhantomData }
    }

    /// bfloat16 numbers as their bits, such as those of another crate's type.
    pub fn bfloat16_bits(bits: &'a mut [u16]) -> Self {
        Self::host(bits.as_mut_ptr().cast(), bits.len(), Bf16::TYPE)
    }

    /// float16 numbers as their bits.
    pub fn float16_bits(bits: &'a mut [u16]) -> Self {
        Self::host(bits.as_mut_ptr().cast(), bits.len(), F16::TYPE)
    }

    /// Whether a tensor is given.
    pub fn is_given(&self) -> bool {
        self.memory.is_some()
    }
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(slice: &'a [T]) -> Self {
        Self::host(slice.as_ptr().cast(), slice.len(), T::TYPE)
    }
}
impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(vector: &'a Vec<T>) -> Self {
        vector.as_slice().into()
    }
}
impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Input<'a> {
    fn from(array: &'a [T; N]) -> Self {
        array.as_slice().into()
    }
}
impl<T: Element> From<DeviceSlice<T>> for Input<'_> {
    fn from(slice: DeviceSlice<T>) -> Self {
        let memory = Memory { pointer: slice.address.cast(), elements: slice.elements, element: T::TYPE, space: Space::Device };
        Input { memory: Some(memory), lifetime: PhantomData }
    }
}
impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    fn from(slice: &'a mut [T]) -> Self {
        Self::host(slice.as_mut_ptr().cast(), slice.len(), T::TYPE)
    }
}
impl<'a, T: Element> From<&'a mut Vec<T>> for Output<'a> {
    fn from(vector: &'a mut Vec<T>) -> Self {
        vector.as_mut_slice().into()
    }
}
impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Output<'a> {
    fn from(array: &'a mut [T; N]) -> Self {
        array.as_mut_slice().into()
    }
}
impl<T: Element> From<DeviceSlice<T>> for Output<'_> {
    fn from(slice: DeviceSlice<T>) -> Self {
        let memory = Memory { pointer: slice.address.cast(), elements: slice.elements, element: T::TYPE, space: Space::Device };
        Output { memory: Some(memory), lifetime: PhantomData }
    }
}

/// C of a grouped product, of which `beta` times is added. The default is "absent".
#[derive(Clone, Copy, Debug, Default)]
pub enum Addend<'a> {
    /// No C; right when `c_type` is [`DataType::Default`](crate::DataType::Default).
    #[default]
    Absent,
    /// A tensor of its own.
    Tensor(Input<'a>),
    /// D itself, as it was before the call. Type, leading dimension and stride of C and D must be equal.
    Output,
}

impl<'a, T: Into<Input<'a>>> From<T> for Addend<'a> {
    fn from(tensor: T) -> Self {
        Addend::Tensor(tensor.into())
    }
}

/// A kind of device data that the library skipped or clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Fault {
    /// Ids and entries of maps outside of their range.
    BadId = sys::GGM_FAULT_BAD_ID,
    /// Group sizes or `num_tokens` that were negative or too large.
    SizeClamped = sys::GGM_FAULT_SIZE_CLAMPED,
    /// Rows beyond `max_rows`.
    RowsDropped = sys::GGM_FAULT_ROWS_DROPPED,
    /// Offsets that were not monotone or in range; rows whose two maps disagree.
    BadRouting = sys::GGM_FAULT_BAD_ROUTING,
    /// Groups of the array product that break `min_alignment`.
    MisalignedGroup = sys::GGM_FAULT_MISALIGNED_GROUP,
}

/// Words of an array of faults.
pub const FAULT_WORDS: usize = sys::GGM_FAULT_WORDS as usize;

/// Counters of bad device data, for host handles. One may be given to many calls in many threads: the library counts
/// atomically, only adds, and stops at the largest number.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Faults([AtomicU32; FAULT_WORDS]);

impl Faults {
    /// All zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many of one kind were counted.
    pub fn count(&self, fault: Fault) -> u32 {
        self.0[fault as usize].load(Ordering::Relaxed)
    }

    /// Whether any were counted.
    pub fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Back to zero.
    pub fn clear(&self) {
        for word in &self.0 {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Where a call counts faults: `From` a `&`[`Faults`], or a [`DeviceSlice`] of [`FAULT_WORDS`] `u32`. The default counts
/// nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultsRef<'a> {
    pub(crate) words: Option<(*mut u32, usize, Space)>,
    lifetime: PhantomData<&'a Faults>,
}
// SAFETY: what `&Faults` is.
unsafe impl Send for FaultsRef<'_> {}
unsafe impl Sync for FaultsRef<'_> {}

impl<'a> From<&'a Faults> for FaultsRef<'a> {
    fn from(faults: &'a Faults) -> Self {
        // Atomics may be written through a shared reference.
        let words = faults.0.as_ptr() as *mut u32;
        FaultsRef { words: Some((words, FAULT_WORDS, Space::Host)), lifetime: PhantomData }
    }
}
impl From<DeviceSlice<u32>> for FaultsRef<'_> {
    fn from(words: DeviceSlice<u32>) -> Self {
        FaultsRef { words: Some((words.address, words.elements, Space::Device)), lifetime: PhantomData }
    }
}

/// The CUDA stream that the work of a call is put on. The default is CUDA's default stream, and the only one on the host
/// backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub(crate) sys::ggm_stream_t);
// SAFETY: a stream may be used from any thread.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    /// CUDA's default stream; the host backend's only one.
    pub const DEFAULT: Stream = Stream(std::ptr::null_mut());

    /// A `cudaStream_t` or `CUstream`.
    ///
    /// # Safety
    /// It is a stream of the handle's device, and lives until the calls made with it have returned.
    pub const unsafe fn from_raw(stream: *mut c_void) -> Self {
        Stream(stream as sys::ggm_stream_t)
    }
}

impl Default for Stream {
    fn default() -> Self {
        Stream::DEFAULT
    }
}
