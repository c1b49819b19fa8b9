//! The library itself.

use crate::error::Error;
use clang_sys::*;
use std::ffi::CStr;
use std::sync::Arc;

/// The loaded library, to be made current in every thread that uses it.
#[derive(Clone, Debug)]
pub(crate) struct Library(Arc<SharedLibrary>);

impl Library {
    /// Finds and loads libclang: `LIBCLANG_PATH`, then where distributions put it.
    pub(crate) fn load() -> Result<Self, Error> {
        if let Some(library) = get_library() {
            return Ok(Library(library));
        }
        load().map_err(|why| Error::NoLibclang(why.lines().next().unwrap_or("").to_string()))?;
        get_library().map(Library).ok_or_else(|| Error::NoLibclang("it was unloaded".into()))
    }

    /// Makes it the library of this thread.
    pub(crate) fn make_current(&self) {
        set_library(Some(Arc::clone(&self.0)));
    }

    /// The file it was loaded from.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// Its version text, such as `Debian clang version 14.0.6`.
    pub(crate) fn version(&self) -> String {
        self.make_current();
        // SAFETY: takes nothing; the string it gives is owned by the caller.
        text(unsafe { clang_getClangVersion() })
    }
}

/// Takes a string over from libclang.
pub(super) fn text(string: CXString) -> String {
    // SAFETY: `string` was given by libclang and is disposed of once, below; its text is null or ends in a zero byte.
    unsafe {
        let chars = clang_getCString(string);
        let owned = match chars.is_null() {
            true => String::new(),
            false => CStr::from_ptr(chars).to_string_lossy().into_owned(),
        };
        clang_disposeString(string);
        owned
    }
}
