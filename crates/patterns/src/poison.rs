//! The ends of a message: deleted when its work is done, or set aside when nobody can do it.

use lazulite_client::{Error, Message, PutOptions, QueueClient};

/// Deletes a message. Returns `false` if it is gone, or if somebody else took it meanwhile and will delete it.
pub(crate) async fn delete(queue: &QueueClient, message: &Message) -> Result<bool, Error> {
    match queue.delete(message).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves a message to the poison queue, where a person looks at it. A worker that dies between the two steps leaves it
/// in both, and it is moved again.
pub(crate) async fn set_aside(
    queue: &QueueClient,
    poison: &QueueClient,
    message: &Message,
) -> Result<(), Error> {
    poison.put(&message.text, PutOptions::new().forever()).await?;
    delete(queue, message).await.map(|_| ())
}
