//! The server's memory while a hundred clients upload long blobs at the same time.
//!
//! Promises: all uploads run to their end, on a server and a directory of their own, which is removed at once.

use loadgen::{Error, blob, clock};

use super::{CONTAINER, UPLOAD_COUNT, transfer};
use crate::results::{Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

/// A client needs little.
const STACK_BYTES: usize = 256 * 1024;

pub fn run(programs: &Programs, data: &DataDirectory, bytes: u64, run: &mut Run) -> Result<(), Error> {
    eprintln!("{UPLOAD_COUNT} uploads of {} MiB at the same time", bytes >> 20);
    let directory = data.0.join("uploads");
    let system = System::start(SystemKind::Durable, programs, &directory)?;
    blob::create(&system.blob_endpoint, CONTAINER)?;
    let pattern = transfer::pattern();
    let start = clock::now();
    std::thread::scope(|scope| {
        let (system, pattern) = (&system, &pattern);
        let upload = |index: usize| {
            let work = move || transfer::put(system, &format!("upload-{index}"), bytes, pattern);
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)
        };
        let threads = (0..UPLOAD_COUNT).map(upload).collect::<Result<Vec<_>, _>>()?;
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<(), Error>(())
    })?;
    let took = clock::now().duration_since(start).as_secs_f64();
    let rate = (bytes * UPLOAD_COUNT as u64) as f64 / took;
    let peak = system.memory_bytes("VmHWM:");
    eprintln!("    peak {} MiB, {:.0} MiB/s", peak.unwrap_or_default() >> 20, rate / f64::from(1 << 20));
    for (name, figure) in [(fact::UPLOADS_IDLE_BYTES, system.idle_bytes), (fact::UPLOADS_PEAK_BYTES, peak)] {
        run.facts.extend(figure.map(|figure| (name.to_owned(), figure as f64)));
    }
    run.facts.insert(fact::UPLOADS_BYTES_PER_SECOND.to_owned(), rate);
    run.notes.push(format!("The {UPLOAD_COUNT} uploads had {} MiB each.", bytes >> 20));
    system.stop()?;
    std::fs::remove_dir_all(&directory)
        .map_err(|error| format!("cannot remove {}: {error}", directory.display()).into())
}
