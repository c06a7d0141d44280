//! Panics as results, for work on a file that may be damaged: opening it, and reading all of it. redb panics where
//! the file is not what it expects. For us that is an ordinary result, and nobody wants a backtrace. Reading an open
//! file should never panic, because its blocks are checked before redb sees them. If it does, the backtrace is printed.
//!
//! Promises: a panic inside is caught and prints nothing; panics elsewhere are reported as usual.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The work panicked: its input is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Panicked;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does the work; returns `Panicked` if it panics.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    stay_quiet();
    let was_guarded = IS_GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    outcome.map_err(|_| Panicked)
}

/// Installs a panic hook in front of the present one, once.
fn stay_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                told(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_outcome() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        assert_eq!(catch_panic(|| -> u8 { panic!("quietly") }), Err(Panicked));
        assert_eq!(catch_panic(|| catch_panic(|| -> u8 { panic!("quietly") })), Ok(Err(Panicked)));
        assert!(!IS_GUARDED.get());
    }
}
