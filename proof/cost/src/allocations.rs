//! Counts allocations with an allocator of its own: how often memory is requested or resized.
//!
//! Leaves to others: what is run while it counts (`paths.rs`).

#![allow(
    unsafe_code,
    reason = "the allocator's interface is unsafe; every call goes unchanged to the system's allocator"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::paths::{self, Path};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: it only counts; the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

/// How often one repetition of the path allocates: as with instructions, the difference between few and many
/// repetitions.
pub fn count(path: &Path) -> u64 {
    let of = |repetitions: u64| {
        let before = COUNT.load(Ordering::Relaxed);
        paths::run(path, repetitions);
        COUNT.load(Ordering::Relaxed) - before
    };
    // A first run makes the allocations that happen once per process.
    of(1);
    let (few, many) = (of(path.repetitions), of(2 * path.repetitions));
    (many.saturating_sub(few) + path.repetitions / 2) / path.repetitions
}
