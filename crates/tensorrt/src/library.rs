//! An opened TensorRT, and an engine that it has loaded. Safe on the outside: pointers and callbacks end here.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    path::Path,
    ptr,
    sync::{Mutex, PoisonError},
};

use libloading::Library;
use serde::{Deserialize, Serialize};

use crate::{
    error::{BuildError, OpenError},
    face::{self, EngineHandle, Face, LibraryHandle, status},
    installed::Installed,
    shims::Shims,
    version::Version,
};

/// Severities of TensorRT's log from which on its words are kept: errors and warnings.
const KEPT: i32 = 2;
/// Words that are kept at most.
const MOST_WORDS: usize = 256;

/// TensorRT with the shim that serves it.
pub struct TensorRt {
    pub(crate) face: Face,
    pub(crate) handle: *mut LibraryHandle,
    version: Version,
    shim: Version,
    /// TensorRT's warnings and errors, to which the shim holds a pointer.
    words: Box<Mutex<Vec<String>>>,
}

impl TensorRt {
    /// Opens an installed TensorRT through the shim that fits. Without the ONNX parser's file, engines can be loaded and
    /// not built.
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
        let (infer, parser) = (c_path(&installed.infer), c_path(&installed.parser));
        let mut handle = ptr::null_mut();
        let user = ptr::from_ref::<Mutex<Vec<String>>>(&words).cast_mut().cast();
        // SAFETY: strings and `handle` outlive the call; `words` is boxed and outlives the handle, see `drop`.
        let result = unsafe {
            (face.open)(
                infer.as_ptr(),
                parser.as_ptr(),
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
        Ok(Self {
            face,
            handle,
            version: installed.version,
            shim,
            words,
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
        u32::try_from(unsafe { (self.face.dla_cores)(self.handle) }).ok()
    }

    /// TensorRT's warnings and errors since the last time.
    #[must_use]
    pub fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads an engine from a plan's bytes. `dla_core` for a plan with DLA parts.
    ///
    /// # Errors
    /// [`BuildError::Plan`] with TensorRT's words.
    pub fn load(&self, plan: &[u8], dla_core: Option<u32>) -> Result<Engine<'_>, BuildError> {
        let core = dla_core.map_or(-1, |core| i32::try_from(core).unwrap_or(i32::MAX));
        let mut handle = ptr::null_mut();
        // SAFETY: the plan is read during the call only; `handle` outlives it.
        let result = unsafe {
            (self.face.engine_open)(
                self.handle,
                plan.as_ptr().cast(),
                plan.len(),
                core,
                &raw mut handle,
            )
        };
        self.check(result)?;
        Ok(Engine {
            tensorrt: self,
            handle,
        })
    }

    /// What a status means, with the shim's words.
    pub(crate) fn check(&self, result: i32) -> Result<(), BuildError> {
        let words = || text((self.face.error)());
        match result {
            status::OK => Ok(()),
            status::MODEL => Err(BuildError::Model(words())),
            status::PLAN => Err(BuildError::Plan(words())),
            status::UNSUPPORTED => Err(BuildError::Unsupported(words())),
            status::CANCELLED => Err(BuildError::Cancelled),
            _ => Err(BuildError::Build(words())),
        }
    }
}

impl Drop for TensorRt {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; engines borrow `self` and are gone.
        unsafe { (self.face.close)(self.handle) };
    }
}

/// One input or output of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Whether it is an input.
    pub input: bool,
    /// Its type, such as `fp32`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its dimensions, -1 where free.
    pub dims: Vec<i64>,
}

/// A loaded engine.
pub struct Engine<'a> {
    tensorrt: &'a TensorRt,
    handle: *mut EngineHandle,
}

impl Engine<'_> {
    /// Inputs and outputs in the engine's order.
    ///
    /// # Errors
    /// [`BuildError::Plan`].
    pub fn tensors(&self) -> Result<Vec<Tensor>, BuildError> {
        let face = &self.tensorrt.face;
        // SAFETY: the engine is open.
        let count = unsafe { (face.engine_tensors)(self.handle) };
        let tensor = |number| {
            let mut tensor = face::Tensor {
                name: ptr::null(),
                is_input: 0,
                kind: 0,
                rank: 0,
                dims: [0; 8],
            };
            // SAFETY: the engine is open and `tensor` outlives the call.
            let result = unsafe { (face.engine_tensor)(self.handle, number, &raw mut tensor) };
            self.tensorrt.check(result)?;
            let rank = usize::try_from(tensor.rank).unwrap_or(0).min(tensor.dims.len());
            Ok(Tensor {
                name: text(tensor.name),
                input: tensor.is_input != 0,
                kind: data_type(tensor.kind),
                dims: tensor.dims[..rank].to_vec(),
            })
        };
        (0..count).map(tensor).collect()
    }

    /// TensorRT's description of the layers, as JSON.
    ///
    /// # Errors
    /// [`BuildError::Plan`].
    pub fn inspect(&self) -> Result<String, BuildError> {
        let mut json = Vec::new();
        // SAFETY: the engine is open; `json` outlives the call and is what the callback expects.
        let result = unsafe {
            (self.tensorrt.face.engine_inspect)(self.handle, take_bytes, ptr::from_mut(&mut json).cast())
        };
        self.tensorrt.check(result)?;
        Ok(String::from_utf8_lossy(&json).into_owned())
    }
}

impl Drop for Engine<'_> {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, before the library that it borrows.
        unsafe { (self.tensorrt.face.engine_close)(self.handle) };
    }
}

/// `nvinfer1::DataType`.
fn data_type(kind: i32) -> String {
    let known = [
        "fp32", "fp16", "int8", "int32", "bool", "uint8", "fp8", "bf16", "int64", "int4",
    ];
    let name = usize::try_from(kind).ok().and_then(|kind| known.get(kind));
    name.map_or_else(|| format!("type {kind}"), |&name| name.to_owned())
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

/// `user` is a `Vec<u8>`.
extern "C" fn take_bytes(user: *mut c_void, data: *const c_void, size: usize) {
    // SAFETY: `user` is what `inspect` gave, exclusively for this call; the bytes are `size` long.
    let (bytes, data) = unsafe {
        (
            &mut *user.cast::<Vec<u8>>(),
            std::slice::from_raw_parts(data.cast::<u8>(), size),
        )
    };
    bytes.extend_from_slice(data);
}
