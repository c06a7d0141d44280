//! The tree of files that tidy reads: every text file of the repository, by its path from the root.
//!
//! Promises: paths have forward slashes on every system; what a build or a package manager leaves behind is not in
//! the tree; each Rust file is read into tokens once. Rules look only at this value, so their tests need no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rust_source::RustSource;

/// Folders that no commit holds.
const NOT_OURS: [&str; 6] = ["target", "node_modules", "lazulite-data", "__pycache__", "corpus", "artifacts"];
/// Folders that a commit does hold, although their names start with a dot.
const HIDDEN_BUT_OURS: [&str; 2] = [".ci", ".cargo"];

pub struct Tree {
    /// Path to text. A file that is not UTF-8 has no text, but it is there.
    files: BTreeMap<String, String>,
    rust: BTreeMap<String, RustSource>,
    test_files: BTreeSet<String>,
}

impl Tree {
    pub fn load(root: &Path) -> Result<Tree, String> {
        let mut files = BTreeMap::new();
        collect(root, "", &mut files)?;
        Ok(Tree::new(files))
    }

    fn new(files: BTreeMap<String, String>) -> Tree {
        let is_rust = |path: &&String| path.ends_with(".rs");
        let rust: BTreeMap<String, RustSource> =
            files.keys().filter(is_rust).map(|path| (path.clone(), RustSource::read(&files[path]))).collect();
        let mut test_files = BTreeSet::new();
        for (path, source) in &rust {
            for name in &source.test_modules {
                let module = format!("{}/{name}", children_folder(path));
                let is_inside = |path: &&String| {
                    **path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))
                };
                test_files.extend(rust.keys().filter(is_inside).cloned());
            }
        }
        // Folders of tests, examples and benches stand beside `src`, never in it.
        test_files.extend(rust.keys().filter(|path| !path.contains("src/")).cloned());
        Tree { files, rust, test_files }
    }

    /// A tree in memory, for the tests of the rules.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// A file or a folder.
    pub fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path)
            || path.is_empty()
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &RustSource)> {
        self.rust.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// Rust files below `crates/*/src` that are not tests.
    pub fn product_files(&self) -> impl Iterator<Item = (&str, &RustSource)> {
        self.sources("crates")
    }

    /// Rust files below `src` in `place` that are not tests. `place` is a file, or any folder above or below `src`.
    pub fn sources(&self, place: &str) -> impl Iterator<Item = (&str, &RustSource)> {
        self.rust_files().filter(move |(path, _)| is_within(path, place) && !self.is_test(path))
    }

    pub fn is_test(&self, path: &str) -> bool {
        self.test_files.contains(path)
    }

    /// The crates in `folder`, `crates` or `proof`, by the names of their folders.
    pub fn crates_in(&self, folder: &str) -> BTreeSet<&str> {
        let manifests = self.files.keys().filter_map(|path| {
            let name = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some(name)
        });
        manifests.collect()
    }
}

/// Is `path` the file `place`, or a file somewhere below the folder `place`?
pub fn is_within(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folder in which the modules lie that a file declares: `src` for `src/lib.rs`, `src/a` for `src/a.rs`.
fn children_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    }
}

/// The module that a file is, from the root of its crate: `["front", "cors"]` for `src/front/cors.rs`.
pub fn module_of(path: &str) -> Vec<String> {
    let Some((_, inside)) = path.split_once("src/") else { return Vec::new() };
    let module = inside.trim_end_matches(".rs");
    let mut names: Vec<String> = module.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|name| matches!(name.as_str(), "lib" | "main" | "mod")) {
        names.pop();
    }
    names
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<(), String> {
    let cannot = |error| format!("cannot read {}: {error}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_dir() {
            let is_hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&name.as_str());
            if !is_hidden && !NOT_OURS.contains(&name.as_str()) {
                collect(&entry.path(), &path, files)?;
            }
        } else if kind.is_file() {
            let bytes =
                std::fs::read(entry.path()).map_err(|error| format!("cannot read {path}: {error}"))?;
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_not_product_files() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod x;\n#[cfg(test)]\nmod y;"),
            ("crates/a/src/x.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/a/src/x/tests.rs", ""),
            ("crates/a/src/x/tests/deeper.rs", ""),
            ("crates/a/src/y/mod.rs", ""),
            ("crates/a/tests/it/main.rs", ""),
            ("proof/b/src/main.rs", ""),
        ]);
        let product: Vec<&str> = tree.product_files().map(|(path, _)| path).collect();
        assert_eq!(product, ["crates/a/src/lib.rs", "crates/a/src/x.rs"]);
        let proof: Vec<&str> = tree.sources("proof/b").map(|(path, _)| path).collect();
        assert_eq!(proof, ["proof/b/src/main.rs"]);
    }

    #[test]
    fn files_folders_and_crates_are_found() {
        let tree =
            Tree::of(&[("crates/a/Cargo.toml", ""), ("crates/a/fuzz/Cargo.toml", ""), ("crates/b.md", "")]);
        assert!(tree.holds("crates/a") && tree.holds("crates/a/") && tree.holds("crates/b.md"));
        assert!(!tree.holds("crates/b") && !tree.holds("crate"));
        assert_eq!(tree.crates_in("crates"), BTreeSet::from(["a"]));
    }

    #[test]
    fn a_file_knows_its_module() {
        let check = |path, expected: &[&str]| assert_eq!(module_of(path), expected, "{path}");
        check("crates/a/src/lib.rs", &[]);
        check("crates/a/src/x.rs", &["x"]);
        check("crates/a/src/x/mod.rs", &["x"]);
        check("crates/a/src/x/y.rs", &["x", "y"]);
    }
}
