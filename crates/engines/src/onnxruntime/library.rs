//! ONNX Runtime's library, opened at run time. The types of its functions are those of `ort-sys`, which links nothing
//! (docs/decisions/0095-onnx-runtime-by-its-c-interface.md).

use std::{
    error::Error as _,
    ffi::{CStr, c_char},
    mem,
    path::PathBuf,
    ptr,
    sync::{Mutex, PoisonError},
};

use libloading::Library;
use ort_sys::{
    OrtAllocatorType, OrtApi, OrtApiBase, OrtEnv, OrtLoggingLevel, OrtMemType, OrtMemoryInfo, OrtStatusPtr,
};

use super::{
    Provider,
    error::{API_VERSION, CallError, LibraryError},
    installed::InstalledOnnxRuntime,
};

/// The opened library. It is never closed, because its threads and destructors do not allow it.
pub(super) struct OnnxRuntime {
    pub(super) api: &'static OrtApi,
    pub(super) environment: *mut OrtEnv,
    /// Describes memory of the host.
    pub(super) host_memory: *mut OrtMemoryInfo,
    pub(super) version: String,
    pub(super) path: PathBuf,
    /// ONNX Runtime's names of the providers that the library was built with.
    providers: Vec<String>,
}

// SAFETY: environment and memory description are only read, and the interface allows calls from any thread.
unsafe impl Send for OnnxRuntime {}
// SAFETY: as above.
unsafe impl Sync for OnnxRuntime {}

/// The libraries that this process has opened.
static OPENED: Mutex<Vec<&OnnxRuntime>> = Mutex::new(Vec::new());

impl OnnxRuntime {
    /// Opens an installed library, unless this process has done so before.
    ///
    /// # Errors
    /// [`LibraryError`] when the file is not ONNX Runtime, is too old, or does not start.
    pub(super) fn open(installed: &InstalledOnnxRuntime) -> Result<&'static Self, LibraryError> {
        let path = &installed.path;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = opened.iter().find(|runtime| runtime.path == *path) {
            return Ok(runtime);
        }
        let runtime: &Self = Box::leak(Box::new(Self::start(path.clone())?));
        opened.push(runtime);
        Ok(runtime)
    }

    fn start(path: PathBuf) -> Result<Self, LibraryError> {
        let not_onnxruntime = |error: libloading::Error| LibraryError::NotOnnxRuntime {
            path: path.clone(),
            // The source is the loader's message; the error itself only names the call.
            reason: error.source().unwrap_or(&error).to_string(),
        };
        // SAFETY: loading runs the library's initialisers; the user or the system chose the file.
        let library = unsafe { Library::new(&path) }.map_err(not_onnxruntime)?;
        // SAFETY: every ONNX Runtime has this function with this type (onnxruntime_c_api.h).
        let base = unsafe { library.get::<unsafe extern "C" fn() -> *const OrtApiBase>(b"OrtGetApiBase") }
            .map(|function| *function)
            .map_err(not_onnxruntime)?;
        // What the function returns is static in the library, which stays open.
        mem::forget(library);
        // SAFETY: the function has no argument, and returns a static object.
        let base = unsafe { &*base() };
        // SAFETY: the function has no argument, and returns a static string.
        let version = unsafe { text((base.GetVersionString)()) };
        if minor_version(&version).is_some_and(|minor| minor < API_VERSION) {
            return Err(LibraryError::TooOld { path, version });
        }
        // SAFETY: any number is allowed; the result is null if the version is unknown.
        let api = unsafe { (base.GetApi)(API_VERSION).as_ref() };
        let Some(api) = api else {
            return Err(LibraryError::TooOld { path, version });
        };
        let failed = |source| LibraryError::Start {
            path: path.clone(),
            source,
        };
        let mut environment = ptr::null_mut();
        // Errors are returned; the log would repeat them on standard error.
        let silent = OrtLoggingLevel::ORT_LOGGING_LEVEL_FATAL;
        // SAFETY: the string is static, and `environment` outlives the call.
        let status = unsafe { (api.CreateEnv)(silent, c"regatta".as_ptr(), &raw mut environment) };
        check(api, status).map_err(failed)?;
        let mut host_memory = ptr::null_mut();
        let (kind, use_) = (
            OrtAllocatorType::OrtDeviceAllocator,
            OrtMemType::OrtMemTypeDefault,
        );
        // SAFETY: `host_memory` outlives the call.
        let status = unsafe { (api.CreateCpuMemoryInfo)(kind, use_, &raw mut host_memory) };
        check(api, status).map_err(failed)?;
        let providers = providers(api).map_err(failed)?;
        Ok(Self {
            api,
            environment,
            host_memory,
            version,
            path,
            providers,
        })
    }

    /// Turns the status of a call into its error, if there is one.
    pub(super) fn check(&self, status: OrtStatusPtr) -> Result<(), CallError> {
        check(self.api, status)
    }

    /// Checks that the library was built with a provider.
    ///
    /// # Errors
    /// [`LibraryError::NoProvider`] with those that it has.
    pub(super) fn check_provider(&self, provider: Provider) -> Result<(), LibraryError> {
        if self.providers.iter().any(|name| name == name_of(provider)) {
            return Ok(());
        }
        Err(LibraryError::NoProvider {
            path: self.path.clone(),
            version: self.version.clone(),
            provider,
            available: self.providers.join(", "),
        })
    }
}

/// Returns ONNX Runtime's name of a provider.
pub(super) const fn name_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Cpu => "CPUExecutionProvider",
        Provider::Cuda => "CUDAExecutionProvider",
        Provider::Tensorrt => "TensorrtExecutionProvider",
    }
}

/// Turns the status of a call into its error, if there is one, and frees it.
fn check(api: &OrtApi, status: OrtStatusPtr) -> Result<(), CallError> {
    if status.0.is_null() {
        return Ok(());
    }
    // SAFETY: the status is one that a call has returned; the message is its own until it is released.
    let message = unsafe { text((api.GetErrorMessage)(status.0)) };
    // SAFETY: nothing refers to the status any more.
    unsafe { (api.ReleaseStatus)(status.0) };
    Err(CallError(message))
}

/// Returns ONNX Runtime's names of the providers in the library.
fn providers(api: &OrtApi) -> Result<Vec<String>, CallError> {
    let (mut names, mut count) = (ptr::null_mut(), 0);
    // SAFETY: both outlive the call.
    check(api, unsafe {
        (api.GetAvailableProviders)(&raw mut names, &raw mut count)
    })?;
    let listed = (0..usize::try_from(count).unwrap_or(0))
        // SAFETY: the list has `count` strings.
        .map(|number| unsafe { text(*names.add(number)) })
        .collect();
    // SAFETY: the list is that of the call above, and is not used any more.
    check(api, unsafe { (api.ReleaseAvailableProviders)(names, count) })?;
    Ok(listed)
}

/// Returns a string of the library. Null is empty.
///
/// # Safety
/// The string ends with a NUL, and lives during the call.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees it.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_string_lossy().into_owned()
}

/// Returns the number behind `1.` of a version. `None` for another major version, whose interface is asked instead.
fn minor_version(version: &str) -> Option<u32> {
    let mut numbers = version.split('.');
    let is_first = numbers.next() == Some("1");
    numbers.next().filter(|_| is_first)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minor_version;

    #[test]
    fn versions_are_compared_by_their_second_number() {
        let minors = ["1.9.0", "1.23.2", "2.0.0", "", "1.x"].map(minor_version);
        assert_eq!(minors, [Some(9), Some(23), None, None, None]);
    }
}
