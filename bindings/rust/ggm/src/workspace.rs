//! Scratch memory of a call.
use crate::memory::Space;
use crate::{sys, DeviceSlice, Error, Result, Status};
use std::alloc::{alloc, dealloc, Layout};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Alignment of a workspace in bytes.
pub const WORKSPACE_ALIGNMENT: usize = sys::GGM_WORKSPACE_ALIGNMENT;

/// Host memory of its own for the calls of host handles, aligned as they need it. Its content is garbage before and after a
/// call, and one may serve any calls one after another.
#[derive(Debug)]
pub struct Workspace {
    memory: NonNull<u8>,
    bytes: usize,
}
// SAFETY: it owns its memory, and only `&mut` reaches into it.
unsafe impl Send for Workspace {}
unsafe impl Sync for Workspace {}

impl Workspace {
    /// `bytes` of memory; 0 allocates nothing. `OUT_OF_MEMORY` when there is not so much.
    pub fn new(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Workspace { memory: NonNull::dangling(), bytes });
        }
        let none = || Error::new(Status::OUT_OF_MEMORY, format!("workspace_bytes = {bytes}; there is not so much host memory"));
        let layout = Layout::from_size_align(bytes, WORKSPACE_ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { alloc(layout) }).ok_or_else(none)?;
        Ok(Workspace { memory, bytes })
    }

    /// Makes it at least `bytes` large. What was in it is lost, as nothing is ever kept there.
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            *self = Workspace::new(bytes)?;
        }
        Ok(())
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.memory.as_ptr(), Layout::from_size_align_unchecked(self.bytes, WORKSPACE_ALIGNMENT)) }
        }
    }
}

/// What a call takes as its workspace: `From` a `&mut` [`Workspace`], bytes of an arena of yours, or a [`DeviceSlice`] of `u8`.
#[derive(Debug)]
pub struct WorkspaceRef<'a> {
    pub(crate) pointer: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) space: Space,
    lifetime: PhantomData<&'a mut [u8]>,
}
// SAFETY: what `&mut [u8]` is.
unsafe impl Send for WorkspaceRef<'_> {}
unsafe impl Sync for WorkspaceRef<'_> {}

impl<'a> From<&'a mut Workspace> for WorkspaceRef<'a> {
    fn from(workspace: &'a mut Workspace) -> Self {
        let pointer = if workspace.bytes == 0 { std::ptr::null_mut() } else { workspace.memory.as_ptr() };
        WorkspaceRef { pointer, bytes: workspace.bytes, space: Space::Host, lifetime: PhantomData }
    }
}
impl<'a> From<&'a mut [MaybeUninit<u8>]> for WorkspaceRef<'a> {
    fn from(bytes: &'a mut [MaybeUninit<u8>]) -> Self {
        WorkspaceRef { pointer: bytes.as_mut_ptr().cast(), bytes: bytes.len(), space: Space::Host, lifetime: PhantomData }
    }
}
impl From<DeviceSlice<u8>> for WorkspaceRef<'_> {
    fn from(memory: DeviceSlice<u8>) -> Self {
        WorkspaceRef { pointer: memory.address(), bytes: memory.len(), space: Space::Device, lifetime: PhantomData }
    }
}
