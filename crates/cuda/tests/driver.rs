//! The wrapper over a twin of CUDA's driver (agent/tests/twins/cuda_driver.c): what is given is done in order, what goes wrong
//! is an error with the driver's name for it, and what was taken is given back.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

use std::{
    ffi::{CString, c_char, c_void},
    path::{Path, PathBuf},
    process::Command,
};

use libloading::Library;
use regatta_cuda::{
    Context, CudaError, DeviceMemory, Driver, Event, Graph, HostMemory, OpenError, Stream, Wait,
};
use tempfile::TempDir;

/// A twin of its own for each test, so that tests of one process do not meet.
struct Twin {
    directory: TempDir,
    library: Library,
}

impl Twin {
    fn new(faults: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = compile(&directory, "libcuda.so.1", &[]);
        // SAFETY: the twin runs nothing but reads its environment when it is loaded.
        let library = unsafe { Library::new(file) }.unwrap();
        let twin = Self { directory, library };
        let list = CString::new(faults).unwrap();
        // SAFETY: the twin's own function and type; it reads the list during the call.
        unsafe {
            let set = twin
                .library
                .get::<extern "C" fn(*const c_char)>(b"twin_cuda_faults")
                .unwrap();
            set(list.as_ptr());
        }
        twin
    }

    fn driver(&self) -> Result<Driver, OpenError> {
        Driver::open_file(&self.directory.path().join("libcuda.so.1"))
    }

    fn context(&self) -> Context {
        self.driver().unwrap().context(0).unwrap()
    }

    /// What nobody has given back.
    fn live(&self) -> i64 {
        // SAFETY: the twin's own function and type.
        unsafe {
            self.library
                .get::<extern "C" fn() -> i64>(b"twin_cuda_live")
                .unwrap()()
        }
    }

    /// Gives a kernel that adds 1 to the byte at `address`.
    fn launch(&self, stream: &Stream, address: u64) -> u32 {
        type Launch =
            extern "C" fn(*mut c_void, extern "C" fn(*mut Increment), *const Increment, usize) -> u32;
        type Resolve = extern "C" fn(u64, usize) -> *mut u8;
        // SAFETY: the twin's own functions and types.
        let (launch, resolve) = unsafe {
            (
                *self.library.get::<Launch>(b"twin_cuda_launch").unwrap(),
                *self.library.get::<Resolve>(b"twin_cuda_resolve").unwrap(),
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
    // SAFETY: the twin hands over a copy of what was launched; an address that it resolves is one byte at least.
    unsafe {
        let place = ((*argument).resolve)((*argument).address, 1);
        if !place.is_null() {
            *place += 1;
        }
    }
}

fn compile(directory: &TempDir, name: &str, flags: &[&str]) -> PathBuf {
    let file = directory.path().join(name);
    // As in agent/tests/support/twins.rs: a board needs no compiler.
    if let Some(made) = std::env::var_os("REGATTA_TWINS") {
        let made = Path::new(&made).join(format!("cuda_driver{}.so", flags.concat()));
        assert!(
            std::fs::copy(&made, &file).is_ok(),
            "{} is missing",
            made.display()
        );
        return file;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agent/tests/twins/cuda_driver.c");
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
fn what_a_stream_is_given_is_done_in_order() {
    let twin = Twin::new("slow=2000");
    let context = twin.context();
    assert_eq!(context.driver().version(), 11_040);
    assert!(context.device().integrated);
    assert_eq!(context.device().compute_capability, (8, 7));
    let (stream, other, event) = (
        Stream::new(&context).unwrap(),
        Stream::new(&context).unwrap(),
        Event::new(&context).unwrap(),
    );
    assert!(
        event.is_reached().unwrap(),
        "an event that was never set holds up nobody"
    );
    let (mut from, to) = (
        HostMemory::new(&context, 4).unwrap(),
        HostMemory::new(&context, 4).unwrap(),
    );
    let device = DeviceMemory::new(&context, 4).unwrap();
    from.bytes_mut().copy_from_slice(&[1, 2, 3, 4]);
    for wait in [Wait::Block, Wait::Spin] {
        // SAFETY: all memories live until the waits below, and nobody touches them before.
        unsafe {
            stream.copy_to_device(&device, &from, 4).unwrap();
            assert_eq!(twin.launch(&stream, device.address()), 0);
            event.record(&stream).unwrap();
            other.wait_for(&event).unwrap();
            other.copy_to_host(&to, &device, 3).unwrap();
            event.record(&other).unwrap();
        }
        event.wait(wait).unwrap();
        assert!(event.is_reached().unwrap());
        assert_eq!(to.bytes(), [2, 2, 3, 0]);
    }
    // Memory that is shared needs no copy: the kernel works where the host looks.
    assert_eq!(twin.launch(&stream, to.device_address()), 0);
    stream.synchronize().unwrap();
    assert_eq!(to.bytes(), [3, 2, 3, 0]);

    std::thread::scope(|scope| {
        scope.spawn(|| stream.synchronize().unwrap()).join().unwrap();
    });
    let before = twin.live();
    drop((stream, other, event, from, to, device, context));
    assert_eq!((before, twin.live()), (7, 0));
}

#[test]
fn a_graph_does_again_what_was_kept() {
    let twin = Twin::new("");
    let context = twin.context();
    let stream = Stream::new(&context).unwrap();
    let mut host = HostMemory::new(&context, 1).unwrap();
    let device = DeviceMemory::new(&context, 1).unwrap();
    // SAFETY: all memories live to the end of the test and are touched between launches only.
    let graph = Graph::capture(&stream, || unsafe {
        stream.copy_to_device(&device, &host, 1)?;
        twin.launch(&stream, device.address());
        stream.copy_to_host(&host, &device, 1)
    })
    .unwrap();
    assert_eq!(graph.nodes(), 3);
    stream.synchronize().unwrap();
    assert_eq!(host.bytes(), [0], "what is captured is not done");
    for start in [5, 9] {
        host.bytes_mut()[0] = start;
        // SAFETY: as above.
        unsafe { graph.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(host.bytes(), [start + 1]);
    }

    let spoilt = Graph::capture(&stream, || HostMemory::new(&context, 1).map(drop));
    let spoilt = spoilt.map(drop).unwrap_err().to_string();
    assert!(
        spoilt.contains("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)"),
        "{spoilt}"
    );
    let given_up = Graph::capture(&stream, || Err::<(), _>("no more"))
        .map(drop)
        .unwrap_err();
    assert_eq!(given_up.to_string(), "no more");
    // SAFETY: as above.
    unsafe { graph.launch(&stream) }.unwrap();
    stream.synchronize().unwrap();
    drop((graph, stream, host, device, context));
    assert_eq!(twin.live(), 0);
}

#[test]
fn a_driver_that_cannot_be_used_is_one_clear_error() {
    let refused = |faults: &str| {
        Twin::new(faults)
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
    assert_eq!(no_device.to_string(), "the CUDA driver does not start");
    let reason = std::error::Error::source(&no_device).unwrap().to_string();
    assert_eq!(
        reason,
        "cuInit failed: CUDA_ERROR_NO_DEVICE (100), no CUDA-capable device is detected"
    );
    let twin = Twin::new("");
    let devices = Twin::new("devices=3,unlike").driver().unwrap().devices().unwrap();
    let told: Vec<_> = devices
        .iter()
        .map(|device| (device.name.as_str(), device.multiprocessors, device.memory_bytes))
        .collect();
    let like = ("twin of a GPU", 16, 1 << 30);
    assert_eq!(told, [like, ("another twin", 16, 1 << 30), like]);
    let second = twin.driver().unwrap().context(1).map(drop).unwrap_err();
    assert_eq!(
        second.to_string(),
        "the CUDA driver finds 1 devices here, so there is no device 1"
    );

    let nowhere = Driver::open_file(&twin.directory.path().join("nowhere.so")).map(drop);
    assert!(matches!(nowhere, Err(OpenError::NotFound { reason }) if reason.contains("nowhere.so")));
    let old = compile(&twin.directory, "old.so", &["-DTWIN_WITHOUT_GRAPHS"]);
    let old = Driver::open_file(&old).map(drop).unwrap_err().to_string();
    assert!(
        old.ends_with("is older than CUDA 11.4: it lacks cuGraphLaunch"),
        "{old}"
    );
}

#[test]
fn memory_that_runs_out_is_told_and_what_there_was_is_given_back() {
    let twin = Twin::new("memory=1000");
    let context = twin.context();
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
    assert_eq!(twin.live(), 0);
}

#[test]
fn a_kernel_that_fails_is_told_later_and_the_device_stays_lost() {
    for (faults, name) in [
        (
            "late=2",
            "CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure",
        ),
        (
            "lost=2",
            "CUDA_ERROR_ECC_UNCORRECTABLE (214), uncorrectable ECC error encountered",
        ),
        // A driver of JetPack 7 knows results that CUDA 11.4 did not.
        (
            "lost=2,code=226",
            "unknown to this driver (226), unknown to this driver",
        ),
    ] {
        let twin = Twin::new(faults);
        let context = twin.context();
        let (stream, event) = (Stream::new(&context).unwrap(), Event::new(&context).unwrap());
        let memory = HostMemory::new(&context, 1).unwrap();
        for _ in 0..2 {
            assert_eq!(twin.launch(&stream, memory.device_address()), 0, "{faults}");
        }
        let told = event
            .record(&stream)
            .and_then(|()| event.wait(Wait::Block))
            .unwrap_err();
        assert!(told.is_sticky(), "{told}");
        assert!(told.to_string().ends_with(name), "{told}");
        let again = DeviceMemory::new(&context, 1).map(drop).unwrap_err();
        assert_eq!(again.code, told.code);
        drop((stream, event, memory, context));
        assert_eq!(twin.live(), 0, "{faults}");
    }
}
