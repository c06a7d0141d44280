//! Failures: catches a panic, minimises its input, writes it to a file, and reports it with the commands that repeat
//! it.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use fuzzing::{Outcome, Target};

/// The most runs that minimising an input may take.
const MINIMISE_RUN_COUNT_MAX: usize = 5_000;
/// The most bytes of an input that a report shows; the file has all of them.
const SHOWN_BYTES_MAX: usize = 240;

thread_local! {
    static LAST_PANIC: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panic {
    pub message: String,
    /// File and line.
    pub place: String,
}

/// Stores panics instead of printing them: the default hook would print each one, even the thousands of a minimisation.
pub fn keep_panics_quiet() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            (None, None) => "a panic without a message".to_owned(),
        };
        let place =
            info.location().map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
        LAST_PANIC.with(|last| *last.borrow_mut() = Some(Panic { message, place }));
    }));
}

/// Calls the target with the input.
pub fn attempt(target: &Target, input: &[u8]) -> Result<Outcome, Panic> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|_| {
        let unknown = || Panic { message: "an unrecorded panic".to_owned(), place: String::new() };
        LAST_PANIC.with(|last| last.borrow_mut().take()).unwrap_or_else(unknown)
    })
}

/// A smaller input that panics at the same place. Removes pieces, long ones first, while the panic remains.
pub fn minimise(target: &Target, input: &[u8], panic: &Panic) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let mut run_count = 0;
    let mut piece_len = smallest.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut is_smaller = false;
        while at < smallest.len() && run_count < MINIMISE_RUN_COUNT_MAX {
            let end = (at + piece_len).min(smallest.len());
            let candidate = [&smallest[..at], &smallest[end..]].concat();
            run_count += 1;
            if attempt(target, &candidate).is_err_and(|found| found.place == panic.place) {
                smallest = candidate;
                is_smaller = true;
            } else {
                at = end;
            }
        }
        if run_count >= MINIMISE_RUN_COUNT_MAX || (piece_len == 1 && !is_smaller) {
            return smallest;
        }
        if !is_smaller {
            piece_len = piece_len.div_ceil(2).max(1).min(piece_len - 1).max(1);
        }
    }
}

/// Describes what happened and how to repeat it.
pub fn report(target: &Target, input: &[u8], what: &str, repeat: &str) -> String {
    let shown = &input[..input.len().min(SHOWN_BYTES_MAX)];
    let more = if input.len() > shown.len() { " ..." } else { "" };
    let mut text = format!(
        "\n{}: {what}\n  input ({} bytes): {}{more}\n",
        target.name,
        input.len(),
        shown.escape_ascii()
    );
    match save(target, input) {
        Ok(path) => text.push_str(&format!(
            "  this input alone: cargo xtask fuzz --target {} --input {}\n",
            target.name,
            path.display()
        )),
        Err(error) => text.push_str(&format!("  the input could not be written to a file: {error}\n")),
    }
    text + &format!("  the whole run:    {repeat}\n")
}

fn save(target: &Target, input: &[u8]) -> std::io::Result<PathBuf> {
    let folder = std::env::temp_dir().join("lazulite-fuzz");
    std::fs::create_dir_all(&folder)?;
    let sum = input
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    let path = folder.join(format!("{}-{sum:016x}", target.name));
    std::fs::write(&path, input)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRITTLE: Target = Target {
        name: "brittle",
        run: |input| {
            assert!(!input.windows(2).any(|pair| pair == b"()"), "brackets");
            Outcome::Accepted("fine")
        },
        input_bytes_max: 100,
        tokens: &[],
        seeds: |_| Vec::new(),
    };

    #[test]
    fn a_panic_is_caught_and_its_input_made_small() {
        keep_panics_quiet();
        let found = attempt(&BRITTLE, b"a long text with () in it");
        let _ = panic::take_hook();
        let found = found.unwrap_err();
        assert_eq!(found.message, "brackets");
        keep_panics_quiet();
        let smallest = minimise(&BRITTLE, b"a long text with () in it", &found);
        let _ = panic::take_hook();
        assert_eq!(smallest, b"()");
        assert_eq!(attempt(&BRITTLE, b"(a)"), Ok(Outcome::Accepted("fine")));
    }
}
