//! The system's allocator with a count for each thread, so that tests can say where nothing is allocated. In tests only.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that the calling thread has taken and not given back; less than none where it gives back what others took.
pub(crate) fn held() -> i64 {
    HELD.get()
}

fn hold(taken: usize, given_back: usize) {
    let change = taken.cast_signed() as i64 - given_back.cast_signed() as i64;
    // A thread that is ending may have no count any more.
    let _ = HELD.try_with(|held| held.set(held.get() + change));
}

/// Allocations and reallocations that the calling thread has made so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

fn count() {
    // A thread that is ending may have no count any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
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
