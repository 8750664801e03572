//! What all operations have in common.

/// Defines an operation: one problem on one handle, validated once and run many times. The method `run` is written beside each.
macro_rules! operation {
    ($(#[$meta:meta])* $operation:ident, $problem:ident -> $raw_problem:ident, $raw_tensors:ident,
     $(#[$method_meta:meta])* $method:ident: $query:ident, $call:ident) => {
        $(#[$meta])*
        ///
        /// Holds its problem, the workspace size that the library asked for, and the handle. Calling it allocates nothing.
        #[derive(Clone, Debug)]
        pub struct $operation<'h> {
            handle: &'h Handle,
            problem: $problem,
            raw: sys::$raw_problem,
            workspace_bytes: usize,
        }

        impl Handle {
            $(#[$method_meta])*
            ///
            /// Validates the problem and asks for its workspace: the error says which field is wrong, or why it is not
            /// supported.
            pub fn $method(&self, problem: &$problem) -> Result<$operation<'_>> {
                let raw = problem.raw()?;
                let mut workspace_bytes = 0;
                // SAFETY: a live handle, and arguments that live through the call.
                check(unsafe { sys::$query(self.as_raw(), &raw, &mut workspace_bytes) })?;
                Ok($operation { handle: self, problem: problem.clone(), raw, workspace_bytes })
            }
        }

        impl $operation<'_> {
            /// Bytes of workspace that a call needs; 0 is possible. Enough for every routing, and for every problem that
            /// differs only in fewer tokens or rows.
            pub fn workspace_bytes(&self) -> usize {
                self.workspace_bytes
            }

            /// A workspace for it. An error on CUDA, where it is device memory of yours.
            pub fn workspace(&self) -> Result<Workspace> {
                host_workspace(self.handle, self.workspace_bytes)
            }

            /// The problem that it was made for.
            pub fn problem(&self) -> &$problem {
                &self.problem
            }

            /// # Safety
            /// Every pointer in `tensors` covers what the problem says, in the handle's memory, for as long as the call or,
            /// on CUDA, its work needs it.
            unsafe fn call(&self, tensors: &sys::$raw_tensors, workspace: WorkspaceRef<'_>, stream: Stream) -> Result<()> {
                let pointer = self.handle.workspace(&workspace)?;
                // SAFETY: a live handle, and tensors by the caller's word.
                check(unsafe { sys::$call(self.handle.as_raw(), &self.raw, tensors, pointer, workspace.bytes, stream.0) })
            }
        }
    };
}
