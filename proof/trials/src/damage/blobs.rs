//! Blobs in a damaged store: each has its bytes, or its request gets an error or an answer that ends too early.

use std::io::ErrorKind;

use testkit::Request;

use super::Class;
use crate::Error;
use crate::blob::body::{Body, describe};
use crate::blob::door::{self, BlobDoor};
use crate::blob::state::{BlobState, element};
use crate::blob::writer::{BlobWriter, BodySizes, Workplace};
use crate::queue::recorded::Stop;
use crate::victim::Victim;

const WRITER_COUNT: usize = 2;
const STEP_COUNT: usize = 90;
const SIZES: BodySizes =
    BodySizes { long_bytes_max: 700 * 1024, long_percent: 5, page_blob_bytes: 96 * 1024 };

/// Containers and what is in them.
pub struct KnownBlobs(Vec<(String, BlobState)>);

impl KnownBlobs {
    /// Writes blobs. The writers take turns, so that the same seed makes the same store.
    pub fn make(server: &Victim, seed: u64) -> Result<KnownBlobs, Error> {
        let mut known = Vec::new();
        for number in 0..WRITER_COUNT {
            let mut writer = BlobWriter::new(number, seed, SIZES);
            let door = BlobDoor::new(server.blob_addr());
            let mut place = Workplace { door, board: None, position: &|| 0 };
            match writer.run(&mut place, STEP_COUNT) {
                Ok(()) => writer.compare(&mut place)?,
                Err(Stop::Cut(error)) => return Err(error.into()),
                Err(Stop::Broken(what)) => return Err(what.into()),
            }
            known.push((writer.container(), writer.known));
        }
        Ok(KnownBlobs(known))
    }

    /// Reads everything, and tells what is not right.
    pub fn read(&self, server: &Victim, note: &mut dyn FnMut(Class, String)) {
        let mut door = BlobDoor::new(server.blob_addr());
        for (container, state) in &self.0 {
            match door.ask(&door::list(container)) {
                Ok(listed) if listed.status == 200 => {
                    let names =
                        listed.text().split("<Blob>").skip(1).filter_map(|entry| element(entry, "Name"));
                    let names: std::collections::BTreeSet<&str> = names.collect();
                    if !names.iter().copied().eq(state.blobs.keys().map(String::as_str)) {
                        note(Class::LostRows, format!("the list of {container} has {names:?}"));
                    }
                }
                Ok(listed) if listed.status >= 500 => note(Class::Errors, format!("the list of {container}")),
                Ok(listed) => note(Class::LostRows, format!("the list of {container} is {listed:?}")),
                Err(error) => note(Class::Hang, format!("the list of {container}: {error}")),
            }
            for (blob, stored) in &state.blobs {
                let path = format!("/{container}/{blob}");
                if let Some(body) = &stored.body {
                    let (class, words) = read(&mut door, &path, body);
                    note(class, words);
                }
                for taken in &stored.snapshots {
                    let (class, words) =
                        read(&mut door, &door::snapshot_path(&path, &taken.moment), &taken.body);
                    note(class, words);
                }
            }
        }
        let (container, _) = &self.0[0];
        match door.ask(&door::put(&format!("/{container}/after"), &[1; 30_000])) {
            Ok(response) if response.status == 201 || response.status >= 500 => {}
            Ok(response) => note(Class::WrongData, format!("a new blob gets {response:?}")),
            Err(error) => note(Class::Hang, format!("a new blob is not answered: {error}")),
        }
    }
}

fn read(door: &mut BlobDoor, path: &str, expected: &Body) -> (Class, String) {
    let response = match door.ask(&Request::get(path)) {
        Ok(response) => response,
        // The head was sent already, so the answer can only be cut short.
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return (Class::Errors, format!("{path} is cut short"));
        }
        Err(error) => return (Class::Hang, format!("{path}: {error}")),
    };
    match response.status {
        200 if response.body == **expected => (Class::Right, String::new()),
        200 => (
            Class::WrongData,
            format!("{path} is {} instead of {}", describe(&response.body), describe(expected)),
        ),
        404 => (Class::LostRows, format!("{path} is answered with 404")),
        500.. => (Class::Errors, format!("{path} is answered with {}", response.status)),
        status => (Class::WrongData, format!("{path} is answered with {status}")),
    }
}
