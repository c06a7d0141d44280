//! `cargo xtask tidy`: checks that the tree is as `ARCHITECTURE.md` says, so that the map cannot lie.
//!
//! Owns: the list of rules, and how findings are printed: `path:line: what is wrong, and what to do`. A rule is a function
//! from the tree and its map to findings, in a file of its own with tests that show how it fails. Nothing here needs a
//! compiler or a network, and a whole run takes about a second.

mod architecture;
mod documents;
mod modules;
mod names;
mod paths;
mod places;
mod public;
mod rooms;
mod rust_source;
mod traces;
mod tree;
mod words;

use std::fmt;

use crate::counts::Counts;
use crate::process;
use architecture::Map;
use tree::Tree;

const HELP: &str = "\
Usage: cargo xtask tidy [--public]

Checks the tree against ARCHITECTURE.md and prints every difference.

  --public    print the public items that are named nowhere outside their crate
";

type Rule = fn(&House) -> Vec<Finding>;

/// Name and check, in the order in which they are printed.
const RULES: [(&str, Rule); 14] = [
    ("the map can be read, and shows every crate", rooms::map),
    ("words that a room never contains", rooms::never_words),
    ("paths that a room never names", rooms::never_paths),
    ("rooms use what the map says, and only downwards", rooms::uses),
    ("one place for each", places::check),
    ("every module opens with its doc", modules::docs),
    ("no file is too long", modules::length),
    ("no unfinished work", modules::unfinished),
    ("one type for each name", names::check),
    ("nothing is public for nobody", public::check),
    ("links lead somewhere", documents::links),
    ("files on the map are there", documents::mapped_files),
    ("files that pages and comments name are there", documents::named_files),
    ("the tree speaks of the product alone", traces::check),
];

/// The tree and its map: everything that a rule looks at.
pub struct House {
    tree: Tree,
    map: Map,
}

impl House {
    fn new(tree: Tree) -> House {
        let map = Map::read(&tree);
        House { tree, map }
    }
}

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    path: String,
    line: usize,
    /// What is wrong, and what to do.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

pub fn run(arguments: &[String]) -> Result<bool, String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(check()?.failed == 0),
        ["--public"] => {
            public::list(&Tree::load(&process::root())?);
            Ok(true)
        }
        ["--help" | "-h"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => Err(format!("unknown arguments\n\n{HELP}")),
    }
}

/// Checks every rule and prints what it finds; a rule without findings has passed.
pub fn check() -> Result<Counts, String> {
    let house = House::new(Tree::load(&process::root())?);
    let mut counts = Counts::default();
    let mut summary = Vec::new();
    for (name, rule) in RULES {
        let mut findings = rule(&house);
        findings.sort();
        findings.dedup();
        for finding in &findings {
            println!("{finding}");
        }
        counts += if findings.is_empty() { Counts::ONE_PASSED } else { Counts::ONE_FAILED };
        summary.push((name, findings.len()));
    }
    println!();
    for (name, count) in &summary {
        println!("{count:>5}  {name}");
    }
    let total: usize = summary.iter().map(|(_, count)| count).sum();
    println!("{total:>5}  findings in {} files", house.tree.files().count());
    Ok(counts)
}
