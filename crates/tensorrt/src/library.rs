//! An opened TensorRT. Safe on the outside: pointers and callbacks end here. Engines are in `engine`, their running in `context`.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    path::Path,
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use libloading::Library;

use crate::{
    engine::Engine,
    error::{BuildError, OpenError},
    face::{self, Face, LibraryHandle, status},
    installed::Installed,
    shims::Shims,
    version::Version,
};

/// Severities of TensorRT's log from which on its words are kept: errors and warnings.
const KEPT: i32 = 2;
/// Words that are kept at most.
const MOST_WORDS: usize = 256;

/// TensorRT with the shim that serves it. Clones are the same one.
#[derive(Clone)]
pub struct TensorRt {
    pub(crate) opened: Arc<Opened>,
    version: Version,
    shim: Version,
}

/// The shim's functions and its handle, for as long as an engine or a context needs them.
pub(crate) struct Opened {
    pub(crate) face: Face,
    pub(crate) handle: *mut LibraryHandle,
    /// TensorRT's warnings and errors, to which the shim holds a pointer.
    words: Box<Mutex<Vec<String>>>,
}

// SAFETY: a shim keeps no thread's state but its error's words, which are read by the thread that got the status; its log
// is behind a lock, and TensorRT's own functions on a library may be called from any thread.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl TensorRt {
    /// Opens an installed TensorRT through the shim that fits. Without the ONNX parser's file, engines can be loaded and
    /// not built, which a build says.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(installed: &Installed, shims: &Shims) -> Result<Self, OpenError> {
        let path = shims.find(installed.version)?;
        let unloadable = |source| OpenError::Shim {
            path: path.clone(),
            source,
        };
        // SAFETY: a file named as a shim of ours, in a directory of plug-ins; it runs nothing when it is loaded.
        let library = unsafe { Library::new(&path) }.map_err(unloadable)?;
        // SAFETY: as above.
        let given = unsafe { Face::abi(&library) }.map_err(unloadable)?;
        if given != face::ABI {
            return Err(OpenError::ShimAbi {
                path,
                given,
                expected: face::ABI,
            });
        }
        // SAFETY: the ABI is the one that is declared.
        let face = unsafe { Face::of(library) }.map_err(unloadable)?;
        let words = Box::new(Mutex::new(Vec::new()));
        let infer = c_path(&installed.infer);
        let parser = installed.parser.as_deref().map(c_path);
        let mut handle = ptr::null_mut();
        let user = ptr::from_ref::<Mutex<Vec<String>>>(&words).cast_mut().cast();
        // SAFETY: strings and `handle` outlive the call; `words` is boxed and outlives the handle, see `drop`.
        let result = unsafe {
            (face.open)(
                infer.as_ptr(),
                parser.as_ref().map_or(ptr::null(), |parser| parser.as_ptr()),
                Some(keep_words),
                user,
                &raw mut handle,
            )
        };
        if result != status::OK {
            return Err(OpenError::Library {
                version: installed.version,
                reason: text((face.error)()),
            });
        }
        let shim = text((face.headers)()).parse().unwrap_or(installed.version);
        let opened = Opened { face, handle, words };
        Ok(Self {
            opened: Arc::new(opened),
            version: installed.version,
            shim,
        })
    }

    /// The installed version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The version of the headers that the shim was compiled against.
    #[must_use]
    pub const fn shim_version(&self) -> Version {
        self.shim
    }

    /// DLA cores that this TensorRT finds, or `None` where it makes no builder.
    #[must_use]
    pub fn dla_cores(&self) -> Option<u32> {
        // SAFETY: the handle is open.
        u32::try_from(unsafe { (self.opened.face.dla_cores)(self.opened.handle) }).ok()
    }

    /// TensorRT's warnings and errors since the last time.
    #[must_use]
    pub fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut *self.opened.words.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads an engine from a plan's bytes. `dla_core` for a plan with DLA parts.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's words.
    pub fn load(&self, plan: &[u8], dla_core: Option<u32>) -> Result<Engine, BuildError> {
        Engine::open(&self.opened, plan, dla_core)
    }
}

impl Opened {
    /// What a status means, with the shim's words.
    pub(crate) fn check(&self, result: i32) -> Result<(), BuildError> {
        let words = || self.error();
        match result {
            status::OK => Ok(()),
            status::MODEL => Err(BuildError::Model(words())),
            status::PLAN => Err(BuildError::Plan(words())),
            status::UNSUPPORTED => Err(BuildError::Unsupported(words())),
            status::CANCELLED => Err(BuildError::Cancelled),
            _ => Err(BuildError::Build(words())),
        }
    }

    /// The words of this thread's last call that failed.
    pub(crate) fn error(&self) -> String {
        text((self.face.error)())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; engines and contexts hold it and are gone.
        unsafe { (self.face.close)(self.handle) };
    }
}

/// A C string as text, empty for none.
pub(crate) fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: the shim's strings end with a NUL and live until its next call.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

/// A path for C. One with a NUL, which no file has, becomes one that is not there.
pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}

/// `user` is the mutex of [`TensorRt::words`].
extern "C" fn keep_words(user: *mut c_void, severity: i32, message: *const c_char) {
    // SAFETY: see `TensorRt::open`.
    let words = unsafe { &*user.cast::<Mutex<Vec<String>>>() };
    if severity <= KEPT {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < MOST_WORDS {
            words.push(text(message));
        }
    }
}
