//! `cargo xtask screenshots [DIRECTORY]`: pictures of every view of the explorer, from a real browser and a real server.

use std::path::PathBuf;
use std::process::Command;

use crate::process;
use crate::server::Server;
use crate::set_up;
use crate::suites;
use crate::toolchains;

/// Where the pictures land if nobody says otherwise, under the target directory.
const FOLDER: &str = "screenshots";

pub fn run(arguments: &[String]) -> Result<bool, String> {
    let folder = match arguments {
        [] => process::target_directory()?.join(FOLDER),
        [folder] if !folder.starts_with('-') => std::path::absolute(PathBuf::from(folder))
            .map_err(|error| format!("'{folder}' is not a folder: {error}"))?,
        _ => return Err("usage: cargo xtask screenshots [DIRECTORY]".to_owned()),
    };
    let npm = toolchains::node()?;
    toolchains::browser()?;
    let tests = process::root().join("tests").join("browser");
    set_up::npm_packages("browser", npm, &tests)?;
    println!("==> building the server");
    if !process::build_release_programs()? {
        return Ok(false);
    }
    let binary = process::release_program("lazulite")?;
    let server = Server::start(&binary, &suites::directory()?.join("screenshots-server"))?;
    let mut command = Command::new("node");
    command.arg("screenshots.mjs").arg(&folder).current_dir(tests);
    server.describe(&mut command);
    let finished = process::run(&mut command)?;
    server.stop()?;
    if finished.succeeded {
        println!("the pictures are in {}", folder.display());
    }
    Ok(finished.succeeded)
}
