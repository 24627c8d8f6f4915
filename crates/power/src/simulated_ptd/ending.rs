//! How a simulated PTDaemon ends, or does not.

use std::{process, thread, time::Duration};

use regatta_catalogue::round::SIMULATION_MARK;

use super::console::Console;

/// The exit code of a simulated crash.
const CRASHED: i32 = 70;

/// Ends the process as a crash does.
pub(super) fn crash(console: Console) -> ! {
    console.print(&format!("{SIMULATION_MARK}: simulated crash"));
    process::exit(CRASHED)
}

/// Waits until the process is ended, as a hung program does.
pub(super) fn hang() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
