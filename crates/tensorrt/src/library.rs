//! An open TensorRT with its shim, behind a safe interface. Engines are in `engine`, their execution in `execution_context`.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    path::Path,
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use libloading::Library;

use crate::{
    engine::Engine,
    error::{BuildError, TensorRtOpenError},
    ffi::{self, LibraryHandle, ShimFunctions, status},
    installed_tensorrt::InstalledTensorRt,
    shim_directories::ShimDirectories,
    version::Version,
};

/// The largest severity number of messages that are kept: internal errors, errors and warnings.
const MAX_SEVERITY: i32 = 2;
/// The largest number of messages that are kept.
const MAX_MESSAGES: usize = 256;

/// TensorRT, opened through the shim for its version. Clones share it.
#[derive(Clone)]
pub struct TensorRt {
    pub(crate) library: Arc<OpenLibrary>,
    version: Version,
    shim: Version,
}

/// The shim's functions and its handle, shared by everything that needs them.
pub(crate) struct OpenLibrary {
    pub(crate) functions: ShimFunctions,
    pub(crate) handle: *mut LibraryHandle,
    /// TensorRT's warnings and errors, to which the shim holds a pointer.
    messages: Box<Mutex<Vec<String>>>,
}

// SAFETY: the shim's only thread-local state is its error message, which the failing thread reads. The messages are behind
// a lock, and any thread may call TensorRT's functions on a library.
unsafe impl Send for OpenLibrary {}
// SAFETY: as above.
unsafe impl Sync for OpenLibrary {}

impl TensorRt {
    /// Opens an installed TensorRT through the shim for its version. Without the ONNX parser's file, engines can be loaded
    /// but not built.
    ///
    /// # Errors
    /// [`TensorRtOpenError`] when there is no shim, or shim or library cannot be opened.
    pub fn open(installed: &InstalledTensorRt, shims: &ShimDirectories) -> Result<Self, TensorRtOpenError> {
        let path = shims.find(installed.version)?;
        let unloadable = |source| TensorRtOpenError::Shim {
            path: path.clone(),
            source,
        };
        // SAFETY: the file has a shim's name and is in a directory of plug-ins; a shim has no initialisers.
        let library = unsafe { Library::new(&path) }.map_err(unloadable)?;
        // SAFETY: as above.
        let found = unsafe { ShimFunctions::abi(&library) }.map_err(unloadable)?;
        if found != ffi::ABI {
            return Err(TensorRtOpenError::ShimAbi {
                path,
                found,
                expected: ffi::ABI,
            });
        }
        // SAFETY: the shim has the declared ABI.
        let functions = unsafe { ShimFunctions::load(library) }.map_err(unloadable)?;
        let messages = Box::new(Mutex::new(Vec::new()));
        let infer = c_path(&installed.infer);
        let parser = installed.parser.as_deref().map(c_path);
        let mut handle = ptr::null_mut();
        let user = ptr::from_ref::<Mutex<Vec<String>>>(&messages).cast_mut().cast();
        // SAFETY: strings and `handle` outlive the call; `messages` is boxed and outlives the handle, see `drop`.
        let result = unsafe {
            (functions.open)(
                infer.as_ptr(),
                parser.as_ref().map_or(ptr::null(), |parser| parser.as_ptr()),
                Some(keep_message),
                user,
                &raw mut handle,
            )
        };
        if result != status::OK {
            return Err(TensorRtOpenError::Library {
                version: installed.version,
                reason: text((functions.error)()),
            });
        }
        let shim = text((functions.headers)()).parse().unwrap_or(installed.version);
        let library = OpenLibrary {
            functions,
            handle,
            messages,
        };
        Ok(Self {
            library: Arc::new(library),
            version: installed.version,
            shim,
        })
    }

    /// Returns the version of the installed TensorRT.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the version of the headers that the shim was compiled with.
    #[must_use]
    pub const fn shim_version(&self) -> Version {
        self.shim
    }

    /// Returns the number of DLA cores that TensorRT finds. `None` when this TensorRT cannot create a builder.
    #[must_use]
    pub fn dla_cores(&self) -> Option<u32> {
        // SAFETY: the handle is open.
        u32::try_from(unsafe { (self.library.functions.dla_cores)(self.library.handle) }).ok()
    }

    /// Returns TensorRT's warnings and errors since the last call.
    #[must_use]
    pub fn take_messages(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .library
                .messages
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Loads an engine from the bytes of a plan. A plan with parts for DLA needs a `dla_core`.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's message.
    pub fn load(&self, plan: &[u8], dla_core: Option<u32>) -> Result<Engine, BuildError> {
        Engine::open(&self.library, plan, dla_core)
    }
}

impl OpenLibrary {
    /// Turns a status into an error with the shim's message.
    pub(crate) fn check(&self, result: i32) -> Result<(), BuildError> {
        let message = || self.error();
        match result {
            status::OK => Ok(()),
            status::MODEL => Err(BuildError::Model(message())),
            status::PLAN => Err(BuildError::Plan(message())),
            status::UNSUPPORTED => Err(BuildError::Unsupported(message())),
            status::CANCELLED => Err(BuildError::Cancelled),
            _ => Err(BuildError::Build(message())),
        }
    }

    /// Returns the message of this thread's last failed call.
    pub(crate) fn error(&self) -> String {
        text((self.functions.error)())
    }
}

impl Drop for OpenLibrary {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; no engine or context is left, because each holds the library.
        unsafe { (self.functions.close)(self.handle) };
    }
}

/// Converts a C string; a null pointer becomes an empty string.
pub(crate) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the shim's strings end with a NUL and exist until its next call.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Converts a path for C. A path with a NUL becomes empty; no file has either path.
pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}

/// Receives a message of TensorRT's log. `user` points to [`OpenLibrary::messages`].
extern "C" fn keep_message(user: *mut c_void, severity: i32, message: *const c_char) {
    // SAFETY: see `TensorRt::open`.
    let messages = unsafe { &*user.cast::<Mutex<Vec<String>>>() };
    if severity <= MAX_SEVERITY {
        let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < MAX_MESSAGES {
            messages.push(text(message));
        }
    }
}
