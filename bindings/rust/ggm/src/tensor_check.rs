//! What C cannot see and a safe interface must: that each slice is as long as its tensor, of its type, and in the handle's
//! memory.
//!
//! The library has validated the problem before any of this runs, so sizes are sound and sums saturate at worst into "too
//! short". Presence, alignment and overlap of tensors are left to the library, which reports them.
use crate::memory::{Memory, Space};
use crate::{sys, Addend, DataType, ElementType, Error, FaultsRef, IndexType, Input, Output, Result, Status, Stride};
use std::os::raw::c_void;

/// What a tensor covers: `[groups, rows, columns]` elements, strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub groups: usize,
    pub stride: usize,
    pub rows: usize,
    pub ld: usize,
    pub columns: usize,
}

impl Extent {
    pub fn vector(elements: usize) -> Self {
        Extent { groups: 1, stride: 0, rows: 1, ld: 0, columns: elements }
    }

    /// `ld` 0: packed.
    pub fn matrix(rows: usize, ld: usize, columns: usize) -> Self {
        Extent { groups: 1, stride: 0, rows, ld: if ld == 0 { columns } else { ld }, columns }
    }

    /// One matrix for each group.
    pub fn grouped(self, groups: usize, stride: Stride) -> Self {
        let stride = match stride {
            Stride::Packed | Stride::Elements(0) => self.rows.saturating_mul(self.ld),
            Stride::Elements(elements) => elements,
            Stride::Shared => 0,
        };
        Extent { groups, stride, ..self }
    }

    /// Whether groups may have elements in common: one begins before the last has ended, and they do not lie side by side in wider rows.
    fn groups_meet(&self) -> bool {
        if self.groups < 2 || self.rows == 0 || self.columns == 0 {
            return false;
        }
        let one = Extent { groups: 1, ..*self }.elements();
        let all_in_a_row = (self.groups - 1).saturating_mul(self.stride).saturating_add(self.columns);
        self.stride < one && !(self.stride >= self.columns && (self.rows == 1 || self.ld >= all_in_a_row))
    }

    /// From the first element to behind the last.
    pub fn elements(&self) -> usize {
        if self.groups == 0 || self.rows == 0 || self.columns == 0 {
            return 0;
        }
        let groups = (self.groups - 1).saturating_mul(self.stride);
        let rows = (self.rows - 1).saturating_mul(self.ld);
        groups.saturating_add(rows).saturating_add(self.columns)
    }
}

/// The elements of a tensor whose type the problem names; `None`: the problem says that there is no such tensor.
pub(crate) fn element_of(data: DataType) -> Option<ElementType> {
    match data {
        DataType::Default => None,
        DataType::Float32 => Some(ElementType::Float32),
        DataType::BFloat16 => Some(ElementType::BFloat16),
        DataType::Float16 => Some(ElementType::Float16),
        DataType::Float64 => Some(ElementType::Float64),
    }
}

pub(crate) fn element_or(data: DataType, fallback: DataType) -> Option<ElementType> {
    element_of(data).or_else(|| element_of(fallback))
}

pub(crate) fn index_of(index: IndexType) -> Option<ElementType> {
    match index {
        IndexType::Default => None,
        IndexType::Int32 => Some(ElementType::Int32),
        IndexType::Int64 => Some(ElementType::Int64),
    }
}

pub(crate) const INT32: Option<ElementType> = Some(ElementType::Int32);
pub(crate) const FLOAT32: Option<ElementType> = Some(ElementType::Float32);

/// Checks the tensors of one call on a handle whose memory is `space`.
pub(crate) struct TensorCheck {
    pub space: Space,
}

impl TensorCheck {
    pub fn space(&self, name: &str, space: Space) -> Result<()> {
        if space == self.space {
            return Ok(());
        }
        let text = match space {
            Space::Host => format!("{name} is host memory; a handle of the CUDA backend takes device memory, a DeviceSlice"),
            Space::Device => format!("{name} is device memory; a handle of the host backend takes slices"),
        };
        Err(Error::new(Status::INVALID_VALUE, text))
    }

    fn memory(&self, name: &str, memory: Option<Memory>, element: Option<ElementType>, extent: Extent) -> Result<*mut c_void> {
        let memory = match memory {
            Some(memory) => memory,
            None => return Ok(std::ptr::null_mut()),
        };
        self.space(name, memory.space)?;
        let element = match element {
            Some(element) => element,
            // A tensor that the problem says is not there: refused by the library, which knows why.
            None => return Ok(memory.pointer),
        };
        if memory.element != element {
            let text = format!("{name} holds {}; this problem needs {element}", memory.element);
            return Err(Error::new(Status::TYPE_MISMATCH, text));
        }
        let needed = extent.elements();
        if memory.elements < needed {
            let text = format!("{name} holds {} elements; this problem needs {needed}", memory.elements);
            return Err(Error::new(Status::INVALID_VALUE, text));
        }
        Ok(memory.pointer)
    }

    pub fn input<T>(&self, name: &str, input: &Input<'_>, element: Option<ElementType>, extent: Extent) -> Result<*const T> {
        Ok(self.memory(name, input.memory, element, extent)?.cast::<T>() as *const T)
    }

    /// Also that groups have no element in common, since threads write them at the same time.
    pub fn output<T>(&self, name: &str, output: &Output<'_>, element: Option<ElementType>, extent: Extent) -> Result<*mut T> {
        if output.memory.is_some() && extent.groups_meet() {
            let Extent { stride, rows, ld, columns, .. } = extent;
            let text = format!(
                "{name} has groups {stride} elements apart that may overlap: each is {rows} rows of {columns}, {ld} apart"
            );
            return Err(Error::new(Status::INVALID_VALUE, text));
        }
        Ok(self.memory(name, output.memory, element, extent)?.cast())
    }

    /// C, which may be `d`: then C's type and extent must be those that `d` was checked for.
    pub fn addend(
        &self,
        name: &str,
        addend: &Addend<'_>,
        element: Option<ElementType>,
        extent: Extent,
        d: &Output<'_>,
    ) -> Result<*const c_void> {
        match addend {
            Addend::Absent => Ok(std::ptr::null()),
            Addend::Tensor(input) => self.input(name, input, element, extent),
            Addend::Output => Ok(self.memory(name, d.memory, element, extent)? as *const c_void),
        }
    }

    /// Host memory alone: that no two groups of rows, given by starts and sizes, have a row of `0..rows` in common. Threads write
    /// those of different groups at the same time.
    pub fn apart(&self, starts: &Input<'_>, sizes: &Input<'_>, groups: usize, rows: usize) -> Result<()> {
        let (starts, sizes) = match (starts.memory, sizes.memory) {
            (Some(starts), Some(sizes)) if self.space == Space::Host => (starts, sizes),
            _ => return Ok(()),
        };
        let clamp = |value: i64| usize::try_from(value).unwrap_or(0).min(rows);
        let mut ranges: Vec<_> = (0..groups)
            // SAFETY: both were held against the number of groups, by `input`.
            .map(|g| (clamp(unsafe { starts.index(g) }), clamp(unsafe { sizes.index(g) }), g))
            .map(|(start, size, g)| (start, size.min(rows - start), g))
            .filter(|&(_, size, _)| size > 0)
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            let ((start, size, first), (next, _, second)) = (pair[0], pair[1]);
            if next < start + size {
                let text =
                    format!("group_offsets: group {first} has rows {start}..{}, group {second} begins at {next}", start + size);
                return Err(Error::new(Status::INVALID_VALUE, text));
            }
        }
        Ok(())
    }

    pub fn faults(&self, faults: FaultsRef<'_>) -> Result<*mut u32> {
        let (words, count, space) = match faults.words {
            Some(words) => words,
            None => return Ok(std::ptr::null_mut()),
        };
        self.space("faults", space)?;
        if count < crate::FAULT_WORDS {
            let text = format!("faults holds {count} elements; a call needs {}", crate::FAULT_WORDS);
            return Err(Error::new(Status::INVALID_VALUE, text));
        }
        Ok(words)
    }
}

/// A size as the library takes it.
pub(crate) fn size(name: &str, value: usize) -> Result<i64> {
    let text = || format!("{name} = {value}; must be at most {}", i64::MAX);
    i64::try_from(value).map_err(|_| Error::new(Status::INVALID_VALUE, text()))
}

/// A size whose field in C has 32 bits.
pub(crate) fn small_size(name: &str, value: usize) -> Result<i32> {
    let text = || format!("{name} = {value}; must be at most {}", i32::MAX);
    i32::try_from(value).map_err(|_| Error::new(Status::INVALID_VALUE, text()))
}

pub(crate) fn stride(name: &str, value: Stride) -> Result<i64> {
    match value {
        Stride::Packed => Ok(0),
        Stride::Elements(elements) => size(name, elements),
        Stride::Shared => Ok(sys::GGM_STRIDE_SHARED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceSlice, Faults};

    /// What no test without a GPU reaches through a handle.
    #[test]
    fn host_memory_never_reaches_a_device() {
        let check = TensorCheck { space: Space::Device };
        let slice = [0i32; 4];
        let error = check.input::<i32>("ids", &(&slice).into(), INT32, Extent::vector(4)).unwrap_err();
        assert_eq!(error.status(), Status::INVALID_VALUE);
        assert!(error.text().contains("ids is host memory"), "{error}");
        assert!(check.faults((&Faults::new()).into()).unwrap_err().text().contains("faults is host memory"));
        let mut floats = [0f32; 4];
        assert!(check.output::<f32>("y", &(&mut floats).into(), FLOAT32, Extent::vector(4)).is_err());
    }

    #[test]
    fn device_memory_is_held_against_its_length_too() {
        let check = TensorCheck { space: Space::Device };
        // SAFETY: only the address is looked at.
        let ids = unsafe { DeviceSlice::new(0x1000 as *mut i32, 4) };
        let input = Input::from(ids.slice(1..4));
        assert_eq!(check.input::<i32>("ids", &input, INT32, Extent::vector(3)).unwrap() as usize, 0x1004);
        let error = check.input::<i32>("ids", &input, INT32, Extent::vector(4)).unwrap_err();
        assert!(error.text().contains("ids holds 3 elements; this problem needs 4"), "{error}");
        let words = unsafe { DeviceSlice::new(0x2000 as *mut u32, 7) };
        assert!(check.faults(words.into()).unwrap_err().text().contains("faults holds 7"));
        assert!(check.faults(FaultsRef::default()).unwrap().is_null());
    }

    #[test]
    fn extents() {
        assert_eq!(Extent::matrix(3, 0, 4).elements(), 12);
        assert_eq!(Extent::matrix(3, 5, 4).elements(), 14);
        assert_eq!(Extent::matrix(0, 5, 4).elements(), 0);
        assert_eq!(Extent::matrix(3, 5, 4).grouped(2, Stride::Packed).elements(), 29);
        assert_eq!(Extent::matrix(3, 5, 4).grouped(2, Stride::Elements(20)).elements(), 34);
        assert_eq!(Extent::matrix(3, 5, 4).grouped(2, Stride::Shared).elements(), 14);
        assert_eq!(Extent::matrix(3, 5, 4).grouped(0, Stride::Packed).elements(), 0);
        let meet =
            |rows, ld, columns, stride| Extent::matrix(rows, ld, columns).grouped(3, Stride::Elements(stride)).groups_meet();
        assert!(!meet(2, 5, 4, 9) && meet(2, 5, 4, 8), "one behind the other");
        assert!(!meet(2, 12, 4, 4) && meet(2, 12, 4, 3) && meet(2, 11, 4, 4), "side by side in wider rows");
        assert!(!meet(2, 20, 4, 7) && meet(1, 4, 4, 3) && !meet(1, 4, 4, 4));
        assert!(Extent::matrix(2, 0, 4).grouped(2, Stride::Shared).groups_meet());
        assert!(!Extent::matrix(2, 0, 4).grouped(1, Stride::Shared).groups_meet());
        assert!(!Extent::matrix(0, 0, 4).grouped(2, Stride::Shared).groups_meet());
        // Too large for any memory is too large for any slice.
        assert_eq!(Extent::matrix(usize::MAX, usize::MAX, 1).elements(), usize::MAX);
    }
}
