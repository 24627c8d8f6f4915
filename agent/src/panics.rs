//! What a caught panic said. Panics are caught at the edges of engines and of the SUT (design, section 7).

use std::any::Any;

/// The panic's message, where it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
