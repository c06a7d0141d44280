//! The file that makes a directory a store: its format and its id, for people and for us.
//!
//! ```text
//! lazulite store, format 4
//! id 0123456789abcdef
//! ```
//!
//! Promises: it is replaced as a whole, durably. A later format keeps the first line, so that this version can say which
//! format it has met. Up to format 3 there was only the first line.

use std::io;
use std::path::Path;

use crate::OpenError;
use crate::directory_files::{self, StoreFiles};
use crate::store_id::StoreId;

/// The name of the file; it is written last.
pub const MARKER: &str = "LAZULITE";
/// Its name while it is written.
pub(crate) const MARKER_NEW: &str = "LAZULITE.new";
const FORMAT_START: &str = "lazulite store, format ";
const ID_START: &str = "id ";
/// Much more than a marker has.
const BYTES_MAX: usize = 4096;

pub(crate) const FORMAT: u32 = 4;
/// Stores from this format on are upgraded when they are opened.
pub(crate) const FORMAT_MIN: u32 = 2;
/// Since this format every file carries the store's id.
const FORMAT_WITH_ID: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marker {
    pub(crate) format: u32,
    /// `None` in older formats.
    pub(crate) id: Option<StoreId>,
}

/// `None` if there is no marker. `path` is for messages alone.
pub(crate) fn read(files: &dyn StoreFiles, path: &Path) -> Result<Option<Marker>, OpenError> {
    let text = match files.read(MARKER, BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: path.join(MARKER), source }),
    };
    let damaged =
        |what: &str| OpenError::Damaged { path: path.to_owned(), cause: format!("{MARKER} {what}") };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let format = first.strip_prefix(FORMAT_START).and_then(|number| number.parse::<u32>().ok());
    match format {
        Some(format) if format > FORMAT => Err(OpenError::NewerFormat { path: path.to_owned(), format }),
        Some(format @ FORMAT_WITH_ID..) => {
            let id = lines.next().and_then(|line| StoreId::parse(line.trim_end().strip_prefix(ID_START)?));
            let id = id.ok_or_else(|| damaged("does not name the store's id"))?;
            Ok(Some(Marker { format, id: Some(id) }))
        }
        Some(format @ FORMAT_MIN..) => Ok(Some(Marker { format, id: None })),
        Some(format @ 1..) => Err(OpenError::OlderFormat { path: path.to_owned(), format }),
        _ => Err(damaged("does not name a store format")),
    }
}

/// Makes the directory a complete store of the present format.
pub(crate) fn write(files: &dyn StoreFiles, id: StoreId) -> io::Result<()> {
    let text = format!("{FORMAT_START}{FORMAT}\n{ID_START}{id}\n");
    directory_files::replace(files, MARKER, MARKER_NEW, text.as_bytes())
}
