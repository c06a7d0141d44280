//! What the Queue service contributes to authentication: its `ServiceKind`, its roles and its service SAS.

use crate::auth::sas::text;
use crate::auth::{KeyBounds, MalformedSas, RoleSet, ServiceKind, ServiceScope, SharedKeyForm};
use crate::common::percent::percent_decode;
use crate::common::query::Query;
use crate::common::version::VersionOrder;

/// Storage Queue Data Reader: peeks at messages and reads metadata.
pub const READER: RoleSet = RoleSet(1);
/// Storage Queue Data Contributor: everything about queues and messages.
pub const CONTRIBUTOR: RoleSet = RoleSet(2);
/// Storage Queue Data Message Processor: peeks at, receives and deletes messages.
pub(super) const MESSAGE_PROCESSOR: RoleSet = RoleSet(4);
/// Storage Queue Data Message Sender: adds messages.
pub(crate) const MESSAGE_SENDER: RoleSet = RoleSet(8);

pub const KIND: ServiceKind = ServiceKind {
    name: "Queue",
    label: "queue",
    site_label: None,
    letter: "q",
    port: 10001,
    server_header: "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0",
    version_default: "2026-06-06",
    version_order: VersionOrder::HeaderFirst,
    ignores_parameter_case: true,
    shared_key: SharedKeyForm::Full,
    policy_letters: "raup",
    roles: &[
        ("Storage Queue Data Reader", "19e7f393-937e-4f77-808e-94535e297925", READER),
        ("Storage Queue Data Contributor", "974c5e8b-45b9-4653-ba55-5f855dd0fb88", CONTRIBUTOR),
        ("Storage Queue Data Message Processor", "8a0f0c08-91a1-4084-bc3d-661d67233fed", MESSAGE_PROCESSOR),
        ("Storage Queue Data Message Sender", "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a", MESSAGE_SENDER),
    ],
    role_of_basic_tokens: CONTRIBUTOR,
    read_service_scope: read_scope,
};

/// The queue that the path names. `sr` is not signed, so it is ignored.
fn read_scope(query: &Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas> {
    let queue = path.split('/').next().unwrap_or_default();
    let queue = percent_decode(queue).ok_or(MalformedSas("the path is not percent-encoded UTF-8"))?;
    if queue.is_empty() {
        return Err(MalformedSas("the path names no queue"));
    }
    Ok(ServiceScope {
        label: KIND.label,
        resource: queue.into_owned(),
        policy: text(query, "si")?.into_owned(),
        parameters: Vec::new(),
        bounds: KeyBounds::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{AccountKey, Grant, LetterSet, SasToken};

    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// The test vectors of the queue specification, section 3.3.
    #[test]
    fn the_published_vectors_verify() {
        let keys = [AccountKey::from_base64(KEY).unwrap()];
        let check = |terms: &str, path: &str, signature: &str| {
            let text = format!("{terms}&sig={signature}");
            let query = Query::split(&text);
            let token = SasToken::read(&query, path, &KIND).unwrap().unwrap();
            assert!(token.verify("devstoreaccount1", &keys), "{terms}");
            assert!(!token.verify("other", &keys));
        };
        let times = "st=2026-06-26T00:00:00Z&se=2026-06-27T00:00:00Z&spr=https,http";
        check(
            &format!("sp=raup&{times}&sv=2025-11-05"),
            "myqueue/messages",
            "dCum2mVwnSJC9T5iMWNNWWTyPKDXWoCbeS232RQM9fY=",
        );
        check("si=policy1&sv=2025-11-05", "myqueue", "iKf1xqV25nUo4NqAlzLRbkw0AuJ55FU/TKRZYjR4FzE=");
        check(
            &format!("sp=rwdlacup&ss=bqt&srt=sco&{times}&sv=2025-11-05"),
            "",
            "3VJA/uG9rOHlfE2Jf/eioLCQpcvfuveXNsLbJfrnbbM=",
        );
        check(
            &format!("sp=rwdlacup&ss=bqt&srt=sco&{times}&sv=2019-12-12"),
            "",
            "uFVYLkqR1YKxoUKQV6KXSsAGB5nvYFORoJrDIzSQOe4=",
        );
    }

    #[test]
    fn a_signature_is_for_the_queue_that_the_path_names() {
        let text = format!("sv=2025-11-05&sp=r&se=2030-01-01&sig={}%3D", "A".repeat(43));
        let query = Query::split(&text);
        let token = SasToken::read(&query, "my%2Dqueue/messages/1", &KIND).unwrap().unwrap();
        let now = crate::common::DateTime::parse("2025-06-01T12:00:00Z").unwrap();
        let connection = crate::auth::Connection { peer: [127, 0, 0, 1].into(), is_https: false };
        let expected = Grant::ServiceSas {
            resource: "my-queue".into(),
            permissions: LetterSet::parse("r"),
            bounds: KeyBounds::default(),
        };
        assert_eq!(token.grant(&[], now, &connection).unwrap(), expected);
        assert!(SasToken::read(&query, "", &KIND).is_err());
    }
}
