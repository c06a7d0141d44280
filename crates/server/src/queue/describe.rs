//! What a request to the Queue service is called in metrics and logs, and what its head names.

use observe::{Named, Operation as Observed};
use protocol::queue::operation::{MessageAction, MessagesAction, QueueAction, QueueOperation};
use protocol::service::ServiceOperation;

pub fn describe<'r>(operation: &'r QueueOperation<'_>) -> (Observed, Named<'r>) {
    let (observed, queue) = match operation {
        QueueOperation::Service(operation) => {
            let observed = match operation {
                ServiceOperation::GetProperties => Observed::GetQueueServiceProperties,
                ServiceOperation::SetProperties => Observed::SetQueueServiceProperties,
                ServiceOperation::GetStats => Observed::GetQueueServiceStats,
            };
            (observed, "")
        }
        QueueOperation::ListQueues => (Observed::ListQueues, ""),
        QueueOperation::Queue { queue, action } => (of_queue(*action), &**queue),
        QueueOperation::Messages { queue, action } => {
            let observed = match action {
                MessagesAction::Put => Observed::PutMessage,
                MessagesAction::Get => Observed::GetMessages,
                MessagesAction::Peek => Observed::PeekMessages,
                MessagesAction::Clear => Observed::ClearMessages,
            };
            (observed, &**queue)
        }
        QueueOperation::Message { queue, action, .. } => {
            let observed = match action {
                MessageAction::Update => Observed::UpdateMessage,
                MessageAction::Delete => Observed::DeleteMessage,
            };
            (observed, &**queue)
        }
    };
    (observed, Named { container: queue, ..Named::default() })
}

fn of_queue(action: QueueAction) -> Observed {
    match action {
        QueueAction::Create => Observed::CreateQueue,
        QueueAction::Delete => Observed::DeleteQueue,
        QueueAction::GetMetadata => Observed::GetQueueMetadata,
        QueueAction::SetMetadata => Observed::SetQueueMetadata,
        QueueAction::GetAcl => Observed::GetQueueAcl,
        QueueAction::SetAcl => Observed::SetQueueAcl,
    }
}
