//! Tests of the crate with a fake CUDA driver (crates/test-support/fakes/cuda_driver.c). Streams execute their work in order,
//! failures are errors with the driver's names, and everything allocated is freed.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

use std::{
    ffi::{CString, c_char, c_void},
    path::{Path, PathBuf},
    process::Command,
};

use libloading::Library;
use regatta_cuda::{
    Context, CudaError, DeviceMemory, Driver, DriverOpenError, Event, Graph, HostMemory, RowCopy, Stream,
    WaitMode,
};
use tempfile::TempDir;

/// A fake driver. Each test has its own library, so that tests in one process do not share state.
struct FakeDriver {
    directory: TempDir,
    library: Library,
}

impl FakeDriver {
    fn new(faults: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = compile(&directory, "libcuda.so.1", &[]);
        // SAFETY: the fake only reads its environment when it is loaded.
        let library = unsafe { Library::new(file) }.unwrap();
        let fake = Self { directory, library };
        let list = CString::new(faults).unwrap();
        // SAFETY: the fake's own function and type; it reads the list during the call.
        unsafe {
            let set = fake
                .library
                .get::<extern "C" fn(*const c_char)>(b"fake_cuda_faults")
                .unwrap();
            set(list.as_ptr());
        }
        fake
    }

    fn driver(&self) -> Result<Driver, DriverOpenError> {
        Driver::open_file(&self.directory.path().join("libcuda.so.1"))
    }

    fn context(&self) -> Context {
        self.driver().unwrap().context(0).unwrap()
    }

    /// The number of driver objects that exist.
    fn live(&self) -> i64 {
        // SAFETY: the fake's own function and type.
        unsafe {
            self.library
                .get::<extern "C" fn() -> i64>(b"fake_cuda_live")
                .unwrap()()
        }
    }

    /// Launches a kernel that adds 1 to the byte at `address`.
    fn launch(&self, stream: &Stream, address: u64) -> u32 {
        type Launch =
            extern "C" fn(*mut c_void, extern "C" fn(*mut Increment), *const Increment, usize) -> u32;
        type Resolve = extern "C" fn(u64, usize) -> *mut u8;
        // SAFETY: the fake's own functions and types.
        let (launch, resolve) = unsafe {
            (
                *self.library.get::<Launch>(b"fake_cuda_launch").unwrap(),
                *self.library.get::<Resolve>(b"fake_cuda_resolve").unwrap(),
            )
        };
        let argument = Increment { resolve, address };
        launch(
            stream.as_raw(),
            increment,
            &raw const argument,
            size_of::<Increment>(),
        )
    }
}

#[repr(C)]
struct Increment {
    resolve: extern "C" fn(u64, usize) -> *mut u8,
    address: u64,
}

extern "C" fn increment(argument: *mut Increment) {
    // SAFETY: the fake passes a copy of the launched argument, and an address that it resolves has at least one byte.
    unsafe {
        let byte = ((*argument).resolve)((*argument).address, 1);
        if !byte.is_null() {
            *byte += 1;
        }
    }
}

fn compile(directory: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let file = directory.path().join(name);
    // Compiled beforehand for boards, which have no compiler, as in crates/test-support/src/fake_tensorrt.rs.
    if let Some(directory) = std::env::var_os("REGATTA_FAKES") {
        let compiled = Path::new(&directory).join(format!("cuda_driver{}.so", flags.concat()));
        assert!(
            std::fs::copy(&compiled, &file).is_ok(),
            "{} is missing",
            compiled.display()
        );
        return file;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/fakes/cuda_driver.c");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-pthread", "-o"])
        .arg(&file)
        .args(flags)
        .arg(source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    file
}

#[test]
fn streams_execute_their_work_in_order() {
    let fake = FakeDriver::new("slow=2000");
    let context = fake.context();
    assert_eq!(context.driver().version(), 11_040);
    assert!(context.device().integrated);
    assert_eq!(context.device().compute_capability, (8, 7));
    let (stream, other, event) = (
        Stream::new(&context).unwrap(),
        Stream::new(&context).unwrap(),
        Event::new(&context).unwrap(),
    );
    assert!(
        event.is_complete().unwrap(),
        "an event that was never recorded is complete"
    );
    let (mut from, to) = (
        HostMemory::new(&context, 4).unwrap(),
        HostMemory::new(&context, 4).unwrap(),
    );
    let device = DeviceMemory::new(&context, 4).unwrap();
    from.bytes_mut().copy_from_slice(&[1, 2, 3, 4]);
    for wait in [WaitMode::Block, WaitMode::Spin] {
        // SAFETY: all memories exist until the waits below, and nothing accesses them before.
        unsafe {
            stream.copy_to_device(&device, &from, 4).unwrap();
            assert_eq!(fake.launch(&stream, device.address()), 0);
            event.record(&stream).unwrap();
            other.wait_for(&event).unwrap();
            other.copy_to_host(&to, &device, 3).unwrap();
            event.record(&other).unwrap();
        }
        event.wait(wait).unwrap();
        assert!(event.is_complete().unwrap());
        assert_eq!(to.bytes(), [2, 2, 3, 0]);
    }
    // Shared memory needs no copy: the kernel changes the host's bytes.
    assert_eq!(fake.launch(&stream, to.device_address()), 0);
    stream.synchronize().unwrap();
    assert_eq!(to.bytes(), [3, 2, 3, 0]);

    std::thread::scope(|scope| {
        scope.spawn(|| stream.synchronize().unwrap()).join().unwrap();
    });
    let before = fake.live();
    drop((stream, other, event, from, to, device, context));
    assert_eq!((before, fake.live()), (7, 0));
}

#[test]
fn memory_is_cleared_and_copied_on_the_device() {
    let fake = FakeDriver::new("");
    let context = fake.context();
    let stream = Stream::new(&context).unwrap();
    let (mut from, to) = (
        HostMemory::new(&context, 12).unwrap(),
        HostMemory::new(&context, 12).unwrap(),
    );
    let (one, other) = (
        DeviceMemory::new(&context, 12).unwrap(),
        DeviceMemory::new(&context, 12).unwrap(),
    );
    from.bytes_mut()
        .copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    // Two rows of two bytes, behind the first byte of each six.
    let rows = RowCopy {
        width: 2,
        rows: 2,
        source_pitch: 3,
        target_offset: 1,
        target_pitch: 6,
    };
    // SAFETY: all memories exist until the wait below, and nothing accesses them before.
    unsafe {
        stream.copy_to_device(&one, &from, 12).unwrap();
        stream.clear(&other, 0..12).unwrap();
        stream.copy_rows(&other, &one, &rows).unwrap();
        stream.copy_on_device(&other, &one, 10..12).unwrap();
        stream.clear(&other, 11..12).unwrap();
        stream.copy_to_host(&to, &other, 12).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(to.bytes(), [0, 1, 2, 0, 0, 0, 0, 4, 5, 0, 11, 0]);
    for range in [8..13, 13..13] {
        let beyond = std::panic::AssertUnwindSafe(|| {
            // SAFETY: nothing is copied.
            let _ = unsafe { stream.copy_on_device(&other, &one, range.clone()) };
        });
        assert!(std::panic::catch_unwind(beyond).is_err());
    }
}

#[test]
fn a_graph_repeats_the_captured_work() {
    let fake = FakeDriver::new("");
    let context = fake.context();
    let stream = Stream::new(&context).unwrap();
    let mut host = HostMemory::new(&context, 1).unwrap();
    let device = DeviceMemory::new(&context, 1).unwrap();
    // SAFETY: all memories exist to the end of the test, which accesses them only between launches.
    let graph = Graph::capture(&stream, || unsafe {
        stream.copy_to_device(&device, &host, 1)?;
        fake.launch(&stream, device.address());
        stream.copy_to_host(&host, &device, 1)
    })
    .unwrap();
    assert_eq!(graph.nodes(), 3);
    stream.synchronize().unwrap();
    assert_eq!(host.bytes(), [0], "captured work is not executed");
    for start in [5, 9] {
        host.bytes_mut()[0] = start;
        // SAFETY: as above.
        unsafe { graph.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(host.bytes(), [start + 1]);
    }

    let unsupported = Graph::capture(&stream, || HostMemory::new(&context, 1).map(drop));
    let unsupported = unsupported.map(drop).unwrap_err().to_string();
    assert!(
        unsupported.contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"),
        "{unsupported}"
    );
    let failed = Graph::capture(&stream, || Err::<(), _>("no more"))
        .map(drop)
        .unwrap_err();
    assert_eq!(failed.to_string(), "no more");
    // SAFETY: as above.
    unsafe { graph.launch(&stream) }.unwrap();
    stream.synchronize().unwrap();
    drop((graph, stream, host, device, context));
    assert_eq!(fake.live(), 0);
}

#[test]
fn an_unusable_driver_gives_one_clear_error() {
    let refused = |faults: &str| {
        FakeDriver::new(faults)
            .driver()
            .and_then(|d| d.context(0))
            .map(drop)
            .unwrap_err()
    };
    assert_eq!(
        refused("version=10020").to_string(),
        "the CUDA driver is for CUDA 10.2, but at least 11.4 is needed"
    );
    let no_device = refused("no-device");
    assert_eq!(no_device.to_string(), "the CUDA driver could not be initialised");
    let reason = std::error::Error::source(&no_device).unwrap().to_string();
    assert_eq!(
        reason,
        "cuInit failed: CUDA_ERROR_NO_DEVICE (100), no CUDA-capable device is detected"
    );
    let fake = FakeDriver::new("");
    let devices = FakeDriver::new("devices=3,unlike")
        .driver()
        .unwrap()
        .devices()
        .unwrap();
    let described: Vec<_> = devices
        .iter()
        .map(|device| (device.name.as_str(), device.multiprocessors, device.memory_bytes))
        .collect();
    let like = ("fake GPU", 16, 1 << 30);
    assert_eq!(described, [like, ("another fake GPU", 16, 1 << 30), like]);
    let second = fake.driver().unwrap().context(1).map(drop).unwrap_err();
    assert_eq!(
        second.to_string(),
        "there is no CUDA device 1: the driver reports 1 devices, counted from 0"
    );

    let nowhere = Driver::open_file(&fake.directory.path().join("nowhere.so")).map(drop);
    assert!(matches!(nowhere, Err(DriverOpenError::NotFound { reason }) if reason.contains("nowhere.so")));
    let old = compile(&fake.directory, "old.so", &["-DFAKE_WITHOUT_GRAPHS"]);
    let old = Driver::open_file(&old).map(drop).unwrap_err().to_string();
    assert!(
        old.ends_with("is older than CUDA 11.4: it has no cuGraphLaunch"),
        "{old}"
    );
}

#[test]
fn out_of_memory_is_an_error_and_all_memory_is_freed() {
    let fake = FakeDriver::new("memory=1000");
    let context = fake.context();
    let first = DeviceMemory::new(&context, 900).unwrap();
    assert_eq!(context.memory().unwrap(), (100, 1000));
    let full: CudaError = HostMemory::new(&context, 200).map(drop).unwrap_err();
    assert!(full.is_out_of_memory() && !full.is_sticky());
    assert_eq!(
        full.to_string(),
        "cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory"
    );
    drop(first);
    drop(HostMemory::new(&context, 1000).unwrap());
    drop(context);
    assert_eq!(fake.live(), 0);
}

#[test]
fn a_kernel_failure_is_reported_later_and_is_sticky() {
    for (faults, name) in [
        (
            "late=2",
            "CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure",
        ),
        (
            "lost=2",
            "CUDA_ERROR_ECC_UNCORRECTABLE (214), uncorrectable ECC error encountered",
        ),
        // A driver of JetPack 7 returns codes that CUDA 11.4 does not have.
        (
            "lost=2,code=226",
            "unknown to this driver (226), unknown to this driver",
        ),
    ] {
        let fake = FakeDriver::new(faults);
        let context = fake.context();
        let (stream, event) = (Stream::new(&context).unwrap(), Event::new(&context).unwrap());
        let memory = HostMemory::new(&context, 1).unwrap();
        for _ in 0..2 {
            assert_eq!(fake.launch(&stream, memory.device_address()), 0, "{faults}");
        }
        let error = event
            .record(&stream)
            .and_then(|()| event.wait(WaitMode::Block))
            .unwrap_err();
        assert!(error.is_sticky(), "{error}");
        assert!(error.to_string().ends_with(name), "{error}");
        let next_error = DeviceMemory::new(&context, 1).map(drop).unwrap_err();
        assert_eq!(next_error.code, error.code);
        drop((stream, event, memory, context));
        assert_eq!(fake.live(), 0, "{faults}");
    }
}
