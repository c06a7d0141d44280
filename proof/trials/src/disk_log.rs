//! Reads the log of file operations that the preloaded shim writes. The shim's `log.rs` describes the format.

use std::path::Path;

use crate::Error;

/// One operation. `end` is the length of the log including it, which gives its place in time.
#[derive(Clone, Debug)]
pub struct Record {
    pub end: u64,
    pub operation: Operation,
}

/// Files and directories are named by inode number; paths are absolute.
#[derive(Clone, Debug)]
pub enum Operation {
    Create {
        inode: u64,
        path: String,
    },
    MakeDirectory {
        inode: u64,
        path: String,
    },
    Write {
        inode: u64,
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLength {
        inode: u64,
        length: u64,
    },
    /// The length of the file stays.
    Punch {
        inode: u64,
        offset: u64,
        length: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    SyncBegin {
        inode: u64,
        token: u64,
    },
    SyncEnd {
        token: u64,
    },
}

/// All complete records and their total length. A killed process may leave half a record behind.
pub fn read(path: &Path) -> Result<(Vec<Record>, u64), Error> {
    let bytes = std::fs::read(path)?;
    let mut records = Vec::new();
    let mut rest = &bytes[..];
    while let Some((size, after)) = rest.split_first_chunk::<4>() {
        let size = u32::from_le_bytes(*size) as usize;
        let Some((record, after)) = after.split_at_checked(size) else { break };
        rest = after;
        let operation = operation(record)?;
        records.push(Record { end: (bytes.len() - rest.len()) as u64, operation });
    }
    let end = (bytes.len() - rest.len()) as u64;
    Ok((records, end))
}

fn operation(record: &[u8]) -> Result<Operation, Error> {
    let mut fields = Fields(record);
    Ok(match fields.take::<1>()?[0] {
        1 => Operation::Create { inode: fields.number()?, path: fields.path()? },
        2 => Operation::MakeDirectory { inode: fields.number()?, path: fields.path()? },
        3 => {
            let (inode, offset) = (fields.number()?, fields.number()?);
            Operation::Write { inode, offset, bytes: fields.0.to_vec() }
        }
        4 => Operation::SetLength { inode: fields.number()?, length: fields.number()? },
        5 => Operation::Rename { from: fields.path()?, to: fields.path()? },
        6 => Operation::Link { from: fields.path()?, to: fields.path()? },
        7 => Operation::Unlink { path: fields.path()? },
        8 => Operation::SyncBegin { inode: fields.number()?, token: fields.number()? },
        9 => Operation::SyncEnd { token: fields.number()? },
        10 => {
            return Err(
                format!("the server made a change that the shim cannot record: {}", fields.path()?).into()
            );
        }
        11 => {
            Operation::Punch { inode: fields.number()?, offset: fields.number()?, length: fields.number()? }
        }
        kind => return Err(format!("the log of file operations has a record of kind {kind}").into()),
    })
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or("a record of the log is too short")?;
        self.0 = rest;
        Ok(*head)
    }

    fn number(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn path(&mut self) -> Result<String, Error> {
        let length = u16::from_le_bytes(self.take()?) as usize;
        let (path, rest) = self.0.split_at_checked(length).ok_or("a path of the log is too short")?;
        self.0 = rest;
        Ok(String::from_utf8(path.to_vec())?)
    }
}
