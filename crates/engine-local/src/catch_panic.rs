//! Request on a file that may be damaged: opening it, and looking at all of it. redb asserts what it expects, so that may
//! end in a panic: here that is an ordinary outcome, for which nobody wants a backtrace. Reading an open file needs no
//! guard: its blocks are checked before redb sees them.
//!
//! Promises: a panic inside is caught and says nothing; panics elsewhere are told as ever.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The work ended in a panic: what it worked on is not what it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Panicked;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does the work; a panic in it is `Panicked`.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    stay_quiet();
    let was_guarded = IS_GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    outcome.map_err(|_| Panicked)
}

/// Puts a hook before the one that is there, once.
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
