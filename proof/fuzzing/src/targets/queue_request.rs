//! Requests to the Queue service: the operation, its parameters, receipts and ids.
//!
//! An input is the head of a request as it arrives, without headers.

use protocol::auth::{Grant, RoleSet};
use protocol::common::AccountName;
use protocol::common::query::Query;
use protocol::queue::operation::{MessageAction, MessagesAction, QueueAction, QueueOperation};
use protocol::queue::parameters::{
    GetParameters, ListParameters, PutParameters, UpdateParameters, read_message_count, read_receipt,
};
use protocol::queue::{KIND, MessageId, PopReceipt, QueueName};

use crate::golden::distinct;
use crate::{ACCOUNT, Golden, Outcome, Target, as_text};

const VERSION: &str = "2025-11-05";

pub const TARGET: Target = Target {
    name: "queue_request",
    run,
    input_bytes_max: 128 * 1024,
    tokens: &[
        b"GET ",
        b"POST ",
        b"PUT ",
        b"DELETE ",
        b"HEAD ",
        b"OPTIONS ",
        b"/",
        b"//",
        b"messages",
        b"/messages/",
        b"?",
        b"&",
        b"=",
        b"%",
        b"%2",
        b"%2F",
        b"%2B",
        b"%00",
        b"%FF",
        b"%C3%A9",
        b"+",
        b"-1",
        b"0",
        b"604800",
        b"604801",
        b"9007199254740991",
        b"18446744073709551616",
        b"visibilitytimeout=",
        b"messagettl=",
        b"numofmessages=",
        b"peekonly=true",
        b"popreceipt=",
        b"comp=metadata",
        b"comp=acl",
        b"comp=list",
        b"restype=service",
        b"prefix=",
        b"marker=",
        b"maxresults=",
        b"include=metadata",
        b"timeout=30",
        b"AgAAAAMAAAAAAAAAHFrsOFDq2AE=",
        b"08df437a792aa59008df437a78924ff8",
        b"d8611c43-075a-43f0-b70f-42f477cbfda7",
        b"\xC3\xA9",
    ],
    seeds,
};

fn seeds(_: &Golden) -> Vec<Vec<u8>> {
    const ONE: &str = "/queue/messages/d8611c43-075a-43f0-b70f-42f477cbfda7";
    let receipt = "popreceipt=08df437a792aa59008df437a78924ff8";
    let heads = [
        "GET /?comp=list&prefix=a&marker=/devstoreaccount1/b&maxresults=7&include=metadata".to_owned(),
        "GET /?restype=service&comp=properties".to_owned(),
        "GET /?restype=service&comp=stats".to_owned(),
        "PUT /queue".to_owned(),
        "DELETE /queue".to_owned(),
        "HEAD /queue?comp=metadata".to_owned(),
        "PUT /queue?comp=acl".to_owned(),
        "POST /queue/messages?visibilitytimeout=10&messagettl=-1&timeout=30".to_owned(),
        "GET /queue/messages?numofmessages=32&visibilitytimeout=30".to_owned(),
        "GET /queue/messages?peekonly=true&numofmessages=5".to_owned(),
        "DELETE /queue/messages".to_owned(),
        format!("PUT {ONE}?{receipt}&visibilitytimeout=0"),
        format!("DELETE {ONE}?{receipt}"),
        format!("DELETE {ONE}?popreceipt=AgAAAAMAAAAAAAAAHFrsOFDq2AE%3D"),
    ];
    distinct(heads.into_iter().map(String::into_bytes))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let text = as_text(input)?;
    check_names(text);
    let (method, target) = text.split_once(' ').unwrap_or((text, ""));
    let target = target.strip_suffix(" HTTP/1.1").unwrap_or(target);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/').unwrap_or(path);
    let query = Query::split(query).with_lower_names();
    let operation = QueueOperation::read(method, path, &query, VERSION)?;
    assert!(Grant::Everything.authorize(&KIND, &operation.need()).is_ok());
    assert!(Grant::Roles(RoleSet::NONE).authorize(&KIND, &operation.need()).is_err());
    Ok(Outcome::Accepted(read_parameters(&operation, &query)?))
}

/// Reads what belongs to the operation, and checks its bounds. Returns the operation's name.
fn read_parameters(operation: &QueueOperation<'_>, query: &Query<'_>) -> Result<&'static str, Outcome> {
    const VISIBILITY_SECONDS_MAX: u64 = 604_800;
    Ok(match operation {
        QueueOperation::Service(_) => "service",
        QueueOperation::ListQueues => {
            let account = AccountName::parse(ACCOUNT).expect("a valid name");
            let list = ListParameters::read(query, &account)?;
            assert!((1..=5_000).contains(&list.page_count()), "{list:?}");
            "ListQueues"
        }
        QueueOperation::Queue { queue, action } => {
            QueueName::parse(queue)?;
            match action {
                QueueAction::Create => "CreateQueue",
                QueueAction::Delete => "DeleteQueue",
                QueueAction::GetMetadata => "GetMetadata",
                QueueAction::SetMetadata => "SetMetadata",
                QueueAction::GetAcl => "GetAcl",
                QueueAction::SetAcl => "SetAcl",
            }
        }
        QueueOperation::Messages { queue, action } => {
            QueueName::parse(queue)?;
            match action {
                MessagesAction::Put => {
                    let put = PutParameters::read(query, VERSION)?;
                    assert!(put.visibility.as_secs() <= VISIBILITY_SECONDS_MAX, "{put:?}");
                    assert!(put.time_to_live.is_none_or(|live| live > put.visibility), "{put:?}");
                    "PutMessage"
                }
                MessagesAction::Get => {
                    let get = GetParameters::read(query, VERSION)?;
                    assert!((1..=32).contains(&get.count_max), "{get:?}");
                    assert!((1..=VISIBILITY_SECONDS_MAX).contains(&get.visibility.as_secs()), "{get:?}");
                    "GetMessages"
                }
                MessagesAction::Peek => {
                    assert!((1..=32).contains(&read_message_count(query)?));
                    "PeekMessages"
                }
                MessagesAction::Clear => "ClearMessages",
            }
        }
        QueueOperation::Message { queue, action, .. } => {
            QueueName::parse(queue)?;
            match action {
                MessageAction::Update => {
                    let update = UpdateParameters::read(query)?;
                    assert!(update.visibility.as_secs() <= VISIBILITY_SECONDS_MAX, "{update:?}");
                    "UpdateMessage"
                }
                MessageAction::Delete => {
                    read_receipt(query)?;
                    "DeleteMessage"
                }
            }
        }
    })
}

/// Names, ids and receipts read as they are written.
fn check_names(text: &str) {
    for word in text.split([' ', '/', '?', '&', '=']) {
        if let Some(id) = MessageId::parse(word) {
            assert_eq!(id.to_string(), word.to_ascii_lowercase());
        }
        if let Some(Some(receipt)) = PopReceipt::parse(word) {
            assert_eq!(receipt.to_string(), word.to_ascii_lowercase());
        }
        if let Ok(name) = QueueName::parse(word) {
            assert!((3..=63).contains(&name.as_str().len()), "{word}");
        }
    }
    let bytes = text.as_bytes();
    if let Some(chunk) = bytes.first_chunk::<16>() {
        let id = MessageId(u128::from_be_bytes(*chunk));
        assert_eq!(MessageId::parse(&id.to_string()), Some(id));
        let [high, low] = [(id.0 >> 64) as u64, id.0 as u64];
        let receipt = PopReceipt { visible_ticks: high, version_ticks: low };
        assert_eq!(PopReceipt::parse(&receipt.to_string()), Some(Some(receipt)));
    }
}
