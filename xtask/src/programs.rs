//! `cargo xtask programs`: programs that others wrote, with many files and one large file. The gate runs a slice of it.
//!
//! What they do is in `tests/programs`. This passes on how much.

use crate::process;
use crate::suites;

/// How many files, and the size of the large one, of the full run.
const FULL: [(&str, &str); 2] = [("LAZULITE_PROGRAM_FILES", "10000"), ("LAZULITE_PROGRAM_LARGE_MIB", "5120")];

pub fn run(arguments: &[String]) -> Result<bool, String> {
    let is_slice = match arguments {
        [] => false,
        [word] if word == "--slice" => true,
        _ => return Err("programs takes no argument but --slice, for as much as the gate runs".to_owned()),
    };
    println!("==> building the server");
    if !process::build_release_programs()? {
        return Ok(false);
    }
    let variables = if is_slice { &[][..] } else { &FULL };
    match suites::run_alone("programs", &process::release_program("lazulite")?, variables)? {
        Ok(ran) => {
            let counts = &ran.counts;
            println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
            Ok(counts.failed == 0)
        }
        Err(missing) => {
            println!("SKIPPED programs: {missing}");
            Ok(true)
        }
    }
}
