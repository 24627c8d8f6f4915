//! The C interface of a plug-in (`crates/loadgen-official/bridge/regatta_loadgen.h`) in Rust: types, functions, and loading.
//!
//! This module states the safety contract of the functions. The bridge decides when they are called.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
    ptr::NonNull,
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::{error::PluginError, fields::Number};

/// `RLG_ABI_VERSION`.
pub(crate) const ABI_VERSION: u32 = 1;

/// `rlg_sample`, with the layout of the official `QuerySample`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Sample {
    pub(crate) id: u64,
    pub(crate) index: u64,
}

/// `rlg_response`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Response {
    pub(crate) id: u64,
    pub(crate) data: *const c_void,
    pub(crate) size: u64,
    pub(crate) n_tokens: i64,
}

/// `rlg_callbacks`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) context: *const c_void,
    pub(crate) sut_name: *const c_char,
    pub(crate) qsl_name: *const c_char,
    pub(crate) total_sample_count: u64,
    pub(crate) performance_sample_count: u64,
    pub(crate) issue_query: extern "C" fn(*const c_void, *const Sample, usize),
    pub(crate) flush_queries: extern "C" fn(*const c_void),
    pub(crate) load_samples: extern "C" fn(*const c_void, *const u64, usize),
    pub(crate) unload_samples: extern "C" fn(*const c_void, *const u64, usize),
    pub(crate) ended: extern "C" fn(*const c_void, c_int, *const c_char),
}

/// The error of a function that does not return `RLG_OK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: c_int,
    pub(crate) words: String,
}

/// `RLG_OK`.
pub(crate) const OK: c_int = 0;
/// `RLG_NOT_IN_REVISION`.
pub(crate) const NOT_IN_REVISION: c_int = 2;

type SettingsPointer = *mut c_void;
type ReadConf = unsafe extern "C" fn(SettingsPointer, *const c_char, *const c_char, *const c_char) -> c_int;

/// Declares the function table and its lookup from one list.
macro_rules! functions {
    ($($field:ident: $symbol:literal = $type:ty;)*) => {
        /// The functions of one plug-in. The library stays loaded until the process ends, because LoadGen keeps threads and thread-local
        /// state that cannot be released.
        #[derive(Debug)]
        pub(crate) struct PluginFunctions { $($field: $type,)* }

        impl PluginFunctions {
            fn find(library: &Library, path: &Path) -> Result<Self, PluginError> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the types are those of regatta_loadgen.h, whose version has been compared.
                        let symbol = unsafe { library.get::<$type>($symbol.as_bytes()) };
                        *symbol.map_err(|_| PluginError::NotAPlugin { path: path.to_owned(), symbol: $symbol })?
                    },)*
                })
            }
        }
    };
}

functions! {
    build_info: "rlg_build_info" = unsafe extern "C" fn() -> *const c_char;
    mlperf_conf: "rlg_mlperf_conf" = unsafe extern "C" fn() -> *const c_char;
    last_error: "rlg_last_error" = unsafe extern "C" fn() -> *const c_char;
    settings_new: "rlg_settings_new" = unsafe extern "C" fn() -> SettingsPointer;
    settings_free: "rlg_settings_free" = unsafe extern "C" fn(SettingsPointer);
    set_u64: "rlg_set_u64" = unsafe extern "C" fn(SettingsPointer, *const c_char, u64) -> c_int;
    set_f64: "rlg_set_f64" = unsafe extern "C" fn(SettingsPointer, *const c_char, f64) -> c_int;
    set_text: "rlg_set_text" = unsafe extern "C" fn(SettingsPointer, *const c_char, *const c_char) -> c_int;
    get_u64: "rlg_get_u64" = unsafe extern "C" fn(SettingsPointer, *const c_char, *mut u64) -> c_int;
    get_f64: "rlg_get_f64" = unsafe extern "C" fn(SettingsPointer, *const c_char, *mut f64) -> c_int;
    read_user_conf: "rlg_read_user_conf" = ReadConf;
    apply_compiled_conf: "rlg_apply_compiled_conf" =
        unsafe extern "C" fn(SettingsPointer, *const c_char, *const c_char) -> c_int;
    read_mlperf_conf: "rlg_read_mlperf_conf" = ReadConf;
    start_test: "rlg_start_test" = unsafe extern "C" fn(SettingsPointer, *const Callbacks) -> c_int;
    samples_complete: "rlg_samples_complete" = unsafe extern "C" fn(*const Response, usize) -> c_int;
    first_token_complete: "rlg_first_token_complete" = unsafe extern "C" fn(*const Response, usize) -> c_int;
    register_issue_thread: "rlg_register_issue_thread" = unsafe extern "C" fn() -> c_int;
    abort_test: "rlg_abort_test" = unsafe extern "C" fn() -> c_int;
}

impl PluginFunctions {
    /// Loads a plug-in for the lifetime of the process, after comparing its ABI version.
    pub(crate) fn load(path: &Path) -> Result<Self, PluginError> {
        let flags = RTLD_NOW | RTLD_LOCAL;
        // SAFETY: loading runs the library's initialisers. Users trust a plug-in by naming its directory, as with any program that they
        // start.
        let library = unsafe { Library::open(Some(path), flags) }.map_err(|source| PluginError::Open {
            path: path.to_owned(),
            source,
        })?;
        let library = Box::leak(Box::new(library));
        let not_a_plugin = |_| PluginError::NotAPlugin {
            path: path.to_owned(),
            symbol: "rlg_abi_version",
        };
        // SAFETY: this function has had the same type in every version of the interface.
        let abi_version = unsafe { library.get::<unsafe extern "C" fn() -> u32>(b"rlg_abi_version") };
        // SAFETY: it takes nothing and may be called at any time.
        let found = unsafe { abi_version.map_err(not_a_plugin)?() };
        if found != ABI_VERSION {
            return Err(PluginError::AbiVersion {
                path: path.to_owned(),
                found,
                needed: ABI_VERSION,
            });
        }
        Self::find(library, path)
    }

    /// Returns the text of the build information.
    pub(crate) fn build_info(&self) -> &CStr {
        // SAFETY: a string with static lifetime, by the interface's contract.
        unsafe { CStr::from_ptr((self.build_info)()) }
    }

    /// Returns the compiled-in `mlperf.conf`.
    pub(crate) fn mlperf_conf(&self) -> Option<&CStr> {
        // SAFETY: null, or a string with static lifetime.
        unsafe {
            let text = (self.mlperf_conf)();
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }

    /// Starts a run.
    ///
    /// # Safety
    /// What `callbacks` points to must stay valid until `ended` has been called, or for ever if the run is abandoned.
    pub(crate) unsafe fn start_test(
        &self,
        settings: &Settings<'_>,
        callbacks: &Callbacks,
    ) -> Result<(), Refusal> {
        // SAFETY: settings are live; the callbacks by this function's own contract.
        self.check(unsafe { (self.start_test)(settings.pointer.as_ptr(), callbacks) })
    }

    /// Passes final responses to LoadGen.
    ///
    /// # Safety
    /// Every id must be LoadGen's own, of a sample that has been issued in the current run and has no response yet.
    pub(crate) unsafe fn samples_complete(&self, responses: &[Response]) -> Result<(), Refusal> {
        // SAFETY: the slice is live; the ids by this function's own contract.
        self.check(unsafe { (self.samples_complete)(responses.as_ptr(), responses.len()) })
    }

    /// Passes first tokens to LoadGen.
    ///
    /// # Safety
    /// As [`samples_complete`](Self::samples_complete), and no final response may come for them during the call.
    pub(crate) unsafe fn first_token_complete(&self, responses: &[Response]) -> Result<(), Refusal> {
        // SAFETY: the slice is live; the ids by this function's own contract.
        self.check(unsafe { (self.first_token_complete)(responses.as_ptr(), responses.len()) })
    }

    /// Registers this thread with LoadGen as an issuing thread; returns at the run's end.
    pub(crate) fn register_issue_thread(&self) -> Result<(), Refusal> {
        // SAFETY: may be called from any thread; the callbacks it makes are the run's.
        self.check(unsafe { (self.register_issue_thread)() })
    }

    /// Makes LoadGen write out what it has logged and stop its I/O thread.
    ///
    /// # Safety
    /// The run's thread must not have ended, and must be at a point from which it can never end by itself.
    pub(crate) unsafe fn abort_test(&self) -> Result<(), Refusal> {
        // SAFETY: by this function's own contract.
        self.check(unsafe { (self.abort_test)() })
    }

    /// Creates settings with LoadGen's defaults. `None` when there is no memory.
    pub(crate) fn settings(&self) -> Option<Settings<'_>> {
        // SAFETY: takes nothing; null when there is no memory.
        NonNull::new(unsafe { (self.settings_new)() }).map(|pointer| Settings {
            functions: self,
            pointer,
        })
    }

    fn check(&self, code: c_int) -> Result<(), Refusal> {
        if code == OK {
            return Ok(());
        }
        // SAFETY: a string of this thread that lives until the next call.
        let words = unsafe { CStr::from_ptr((self.last_error)()) }
            .to_string_lossy()
            .into_owned();
        Err(Refusal { code, words })
    }
}

/// LoadGen's `TestSettings` and `LogSettings`, accessed by the names of their fields.
#[derive(Debug)]
pub(crate) struct Settings<'a> {
    functions: &'a PluginFunctions,
    pointer: NonNull<c_void>,
}

impl Drop for Settings<'_> {
    fn drop(&mut self) {
        // SAFETY: made by settings_new, freed once.
        unsafe { (self.functions.settings_free)(self.pointer.as_ptr()) };
    }
}

impl Settings<'_> {
    /// Sets a numeric field.
    pub(crate) fn set(&mut self, key: &CStr, value: Number) -> Result<(), Refusal> {
        // SAFETY: settings and key are live.
        self.functions.check(unsafe {
            match value {
                Number::Whole(value) => (self.functions.set_u64)(self.pointer.as_ptr(), key.as_ptr(), value),
                Number::Real(value) => (self.functions.set_f64)(self.pointer.as_ptr(), key.as_ptr(), value),
            }
        })
    }

    /// Reads a numeric field; `like` selects the kind of number.
    pub(crate) fn get(&self, key: &CStr, like: Number) -> Result<Number, Refusal> {
        let (mut whole, mut real) = (0, 0.0);
        // SAFETY: settings, key and target are live.
        self.functions.check(unsafe {
            match like {
                Number::Whole(_) => {
                    (self.functions.get_u64)(self.pointer.as_ptr(), key.as_ptr(), &raw mut whole)
                }
                Number::Real(_) => {
                    (self.functions.get_f64)(self.pointer.as_ptr(), key.as_ptr(), &raw mut real)
                }
            }
        })?;
        Ok(match like {
            Number::Whole(_) => Number::Whole(whole),
            Number::Real(_) => Number::Real(real),
        })
    }

    /// Sets a text field, for example a path.
    pub(crate) fn set_text(&mut self, key: &CStr, value: &str) -> Result<(), Refusal> {
        let value = c_string(value)?;
        // SAFETY: all three are live.
        self.functions
            .check(unsafe { (self.functions.set_text)(self.pointer.as_ptr(), key.as_ptr(), value.as_ptr()) })
    }

    /// Reads the compiled-in conf and then the user's, in the order of a harness.
    pub(crate) fn read_user_conf(&mut self, path: &str, model: &str, scenario: &str) -> Result<(), Refusal> {
        self.read_conf(self.functions.read_user_conf, path, model, scenario)
    }

    /// Reads an `mlperf.conf` file, in LoadGens without a compiled-in one.
    pub(crate) fn read_mlperf_conf(
        &mut self,
        path: &str,
        model: &str,
        scenario: &str,
    ) -> Result<(), Refusal> {
        self.read_conf(self.functions.read_mlperf_conf, path, model, scenario)
    }

    /// Applies only the compiled-in conf.
    pub(crate) fn apply_compiled_conf(&mut self, model: &str, scenario: &str) -> Result<(), Refusal> {
        let (model, scenario) = (c_string(model)?, c_string(scenario)?);
        // SAFETY: all three are live.
        self.functions.check(unsafe {
            (self.functions.apply_compiled_conf)(self.pointer.as_ptr(), model.as_ptr(), scenario.as_ptr())
        })
    }

    fn read_conf(&mut self, read: ReadConf, path: &str, model: &str, scenario: &str) -> Result<(), Refusal> {
        let (path, model, scenario) = (c_string(path)?, c_string(model)?, c_string(scenario)?);
        // SAFETY: all four are live.
        self.functions.check(unsafe {
            read(
                self.pointer.as_ptr(),
                path.as_ptr(),
                model.as_ptr(),
                scenario.as_ptr(),
            )
        })
    }
}

/// Converts a string for the C side. A string that contains NUL is an error.
pub(crate) fn c_string(text: &str) -> Result<CString, Refusal> {
    CString::new(text).map_err(|_| Refusal {
        code: OK,
        words: format!("`{}` has a NUL character in it", text.escape_default()),
    })
}
