//! The note in a store that is being filled: by a move, or by a restore into an engine.
//!
//! Promises: while the note is there, no server starts on the store, and no command takes it for complete. It holds how far
//! the work is, for whoever goes on with it.

use bytes::Bytes;
use catalogue::Setting;
use engine::{Commit, CommitError, Effect, Engine, Expect, Op, OwnedKey, ReadError, Row, TableId};

pub async fn read(engine: &dyn Engine) -> Result<Option<Row>, String> {
    let found = engine.get(TableId::SETTINGS, Setting::Unfinished.key().as_key()).await;
    found.map_err(|error: ReadError| error.to_string())
}

/// An error if the store is not complete.
pub async fn refuse(engine: &dyn Engine, name: &str) -> Result<(), String> {
    match read(engine).await? {
        None => Ok(()),
        Some(_) => Err(format!(
            "{name} is not complete: 'lazulite move' or 'lazulite restore' into it did not finish. Run the move again, or \
             begin anew with an empty one"
        )),
    }
}

pub async fn write(engine: &dyn Engine, expect: Expect, note: Bytes) -> Result<(), String> {
    change(engine, expect, Effect::Put(note)).await
}

pub async fn remove(engine: &dyn Engine) -> Result<(), String> {
    change(engine, Expect::Any, Effect::Delete).await
}

async fn change(engine: &dyn Engine, expect: Expect, effect: Effect) -> Result<(), String> {
    let OwnedKey { partition, row } = Setting::Unfinished.key();
    let commit = Commit::one(TableId::SETTINGS, &partition, Op { row, expect, effect });
    match engine.commit(commit).await {
        Ok(_) => Ok(()),
        Err(CommitError::Precondition { .. }) => Err("somebody else is filling it at this moment".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
