//! Reads the options of a trial: a list of names with the values that they set, and `--help`.
//!
//! Promises: an option that is not given keeps its value; one that is not listed is refused. Leaves to each trial: its
//! options, their defaults, and whether they make sense together.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt as _};

use crate::Error;

/// A value that an option can set.
pub trait Value {
    fn set(&mut self, given: OsString) -> Result<(), lexopt::Error>;
}

/// Returns false if help was requested: it has been printed, and there is nothing to run.
pub fn read(parser: &mut Parser, help: &str, known: &mut [(&str, &mut dyn Value)]) -> Result<bool, Error> {
    while let Some(argument) = parser.next()? {
        let Arg::Long(name) = argument else { return Err(argument.unexpected().into()) };
        if name == "help" {
            println!("{help}");
            return Ok(false);
        }
        let Some((_, value)) = known.iter_mut().find(|(known, _)| *known == name) else {
            return Err(argument.unexpected().into());
        };
        value.set(parser.value()?)?;
    }
    Ok(true)
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Value for $number {
            fn set(&mut self, given: OsString) -> Result<(), lexopt::Error> {
                *self = given.parse()?;
                Ok(())
            }
        }
    )*};
}

numbers! { usize u64 f64 }

impl Value for String {
    fn set(&mut self, given: OsString) -> Result<(), lexopt::Error> {
        *self = given.string()?;
        Ok(())
    }
}

/// Takes any bytes, because a path need not be valid text.
impl Value for PathBuf {
    fn set(&mut self, given: OsString) -> Result<(), lexopt::Error> {
        *self = given.into();
        Ok(())
    }
}

impl<T: Value + Default> Value for Option<T> {
    fn set(&mut self, given: OsString) -> Result<(), lexopt::Error> {
        self.get_or_insert_default().set(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the options after these arguments, and whether there is something to run.
    #[track_caller]
    fn check(arguments: &[&str], expected: Result<(bool, usize, Option<u64>, &str), &str>) {
        let (mut rounds, mut only, mut server) = (200usize, None::<u64>, PathBuf::from("usual"));
        let mut parser = Parser::from_args(arguments);
        let known: &mut [(&str, &mut dyn Value)] =
            &mut [("rounds", &mut rounds), ("only", &mut only), ("server", &mut server)];
        let found = read(&mut parser, "help", known).map_err(|error| error.to_string());
        let server = server.to_str().unwrap();
        let found = found.as_ref().map(|goes_on| (*goes_on, rounds, only, server)).map_err(String::as_str);
        assert_eq!(found, expected, "{arguments:?}");
    }

    #[test]
    fn options_set_what_they_name_and_nothing_else() {
        check(&[], Ok((true, 200, None, "usual")));
        check(&["--rounds", "5"], Ok((true, 5, None, "usual")));
        check(&["--only=7", "--server", "a b", "--rounds=1"], Ok((true, 1, Some(7), "a b")));
        check(&["--rounds", "5", "--rounds", "6"], Ok((true, 6, None, "usual")));
        check(&["--server", ""], Ok((true, 200, None, "")));
        check(&["--help", "--nonsense"], Ok((false, 200, None, "usual")));
    }

    #[test]
    fn what_is_not_listed_or_does_not_fit_is_refused() {
        check(&["--nonsense"], Err("invalid option '--nonsense'"));
        check(&["-h"], Err("invalid option '-h'"));
        check(&["5"], Err("unexpected argument \"5\""));
        check(&["--rounds"], Err("missing argument for option '--rounds'"));
        check(&["--rounds", "five"], Err("cannot parse argument \"five\": invalid digit found in string"));
    }
}
