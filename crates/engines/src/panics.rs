//! Messages of caught panics. Panics are caught at the boundaries of engines and of the SUT.

use std::any::Any;

/// Returns the panic's message, or `no message`.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
