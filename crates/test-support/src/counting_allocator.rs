//! The system allocator with counters per thread, for tests of code that must not allocate.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The allocator. A test binary names it as its `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Returns the bytes that the calling thread has allocated and not freed. Negative if it has freed memory of other
/// threads.
#[must_use]
pub fn held() -> i64 {
    HELD.get()
}

fn hold(allocated: usize, freed: usize) {
    let change = allocated.cast_signed() as i64 - freed.cast_signed() as i64;
    // The counter of an exiting thread may be gone.
    let _ = HELD.try_with(|held| held.set(held.get() + change));
}

/// Returns the calling thread's number of allocations and reallocations so far.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

fn count() {
    // The counter of an exiting thread may be gone.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is passed to the system allocator unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size(), 0);
        // SAFETY: by this function's own contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: by this function's own contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        hold(size, layout.size());
        // SAFETY: by this function's own contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
