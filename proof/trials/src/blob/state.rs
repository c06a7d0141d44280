//! What a writer has stored: as it knows it, and as the service tells it. Both compare.

use std::collections::BTreeMap;
use std::fmt;

use super::body::{Body, describe};
use super::door::{self, BlobDoor};

/// One container.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BlobState {
    pub has_container: bool,
    pub blobs: BTreeMap<String, StoredBlob>,
}

/// A blob with everything that belongs to its name.
#[derive(Clone, Default)]
pub struct StoredBlob {
    /// `None` if there are only staged blocks.
    pub body: Option<Body>,
    /// `None` if nobody has heard it.
    pub etag: Option<String>,
    /// Oldest first.
    pub snapshots: Vec<TakenSnapshot>,
    /// Identifiers and lengths, in the order of the content.
    pub committed: Vec<(String, usize)>,
    pub staged: BTreeMap<String, usize>,
}

/// Snapshots compare by their content: the moment of one that was open at a kill is not known.
#[derive(Clone)]
pub struct TakenSnapshot {
    pub moment: String,
    pub body: Body,
    pub committed: Vec<(String, usize)>,
}

impl PartialEq for TakenSnapshot {
    fn eq(&self, other: &TakenSnapshot) -> bool {
        self.body == other.body && self.committed == other.committed
    }
}

impl PartialEq for StoredBlob {
    fn eq(&self, other: &StoredBlob) -> bool {
        let is_same_etag = match (&self.etag, &other.etag) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        is_same_etag
            && self.body == other.body
            && self.committed == other.committed
            && self.staged == other.staged
            && self.snapshots == other.snapshots
    }
}

impl Eq for StoredBlob {}

impl fmt::Debug for StoredBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map_or("no content".to_owned(), |body| describe(body));
        write!(f, "{body}, ETag {:?}", self.etag)?;
        for taken in &self.snapshots {
            write!(f, "; snapshot {} of {}", taken.moment, describe(&taken.body))?;
        }
        write!(f, "; committed {:?}; staged {:?}", self.committed, self.staged)
    }
}

impl BlobState {
    /// What differs, in words.
    pub fn difference(&self, found: &BlobState) -> String {
        let mut text = format!("has container: {} and {}", self.has_container, found.has_container);
        for name in self.blobs.keys().chain(found.blobs.keys().filter(|name| !self.blobs.contains_key(*name)))
        {
            let (known, found) = (self.blobs.get(name), found.blobs.get(name));
            if known != found {
                text.push_str(&format!("\n{name}: known is {known:?}\n{name}: there is {found:?}"));
            }
        }
        text
    }

    /// Reads everything in a container.
    pub fn read(door: &mut BlobDoor, container: &str) -> Result<BlobState, String> {
        let listed = ask(door, &door::list(container))?;
        match listed.status {
            200 => {}
            404 => return Ok(BlobState::default()),
            _ => return Err(format!("the list of {container} is answered with {listed:?}")),
        }
        let mut state = BlobState { has_container: true, blobs: BTreeMap::new() };
        for entry in listed.text().split("<Blob>").skip(1) {
            let name = element(entry, "Name").ok_or_else(|| format!("no name in {entry}"))?;
            let path = format!("/{container}/{name}");
            let has_blocks = element(entry, "BlobType") == Some("BlockBlob");
            let blob = state.blobs.entry(name.to_owned()).or_default();
            if let Some(moment) = element(entry, "Snapshot") {
                let path = door::snapshot_path(&path, moment);
                let body = read_body(door, &path)?;
                let body = body.ok_or_else(|| format!("{path} is listed, but not there"))?;
                let committed = if has_blocks { read_blocks(door, &path)?.0 } else { Vec::new() };
                blob.snapshots.push(TakenSnapshot { moment: moment.to_owned(), body, committed });
                continue;
            }
            blob.body = read_body(door, &path)?;
            blob.etag = element(entry, "Etag").filter(|_| blob.body.is_some()).map(unquoted);
            if has_blocks {
                (blob.committed, blob.staged) = read_blocks(door, &path)?;
            }
        }
        Ok(state)
    }
}

fn ask(door: &mut BlobDoor, request: &testkit::Request) -> Result<testkit::Response, String> {
    door.ask(request).map_err(|error| format!("{request:?} is not answered: {error}"))
}

/// The body, or `None` if there is no such blob.
pub fn read_body(door: &mut BlobDoor, path: &str) -> Result<Option<Body>, String> {
    let response = ask(door, &testkit::Request::get(path))?;
    match response.status {
        200 => Ok(Some(Body::new(response.body))),
        404 => Ok(None),
        _ => Err(format!("{path} is answered with {response:?}")),
    }
}

type Blocks = (Vec<(String, usize)>, BTreeMap<String, usize>);

fn read_blocks(door: &mut BlobDoor, path: &str) -> Result<Blocks, String> {
    let response = ask(door, &door::block_list(path))?;
    if response.status != 200 {
        return Err(format!("the block list of {path} is answered with {response:?}"));
    }
    let text = response.text();
    let within = |list: &str| -> Vec<(String, usize)> {
        let blocks = element(text, list).unwrap_or_default();
        let block =
            |entry: &str| Some((element(entry, "Name")?.to_owned(), element(entry, "Size")?.parse().ok()?));
        blocks.split("<Block>").filter_map(block).collect()
    };
    Ok((within("CommittedBlocks"), within("UncommittedBlocks").into_iter().collect()))
}

/// The inside of the first element of this name.
pub fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}

/// An ETag as lists show it.
pub fn unquoted(etag: &str) -> String {
    etag.trim_matches('"').replace("&quot;", "")
}
