//! Stored access policies: terms that a table or a queue keeps under a name, for signatures that refer to it.
//!
//! A signature that names a policy ends with it: changing or removing the policy revokes every such signature at once.

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use protocol::auth::ServiceKind;
use protocol::common::StoredPolicy;
use protocol::common::acl::{read_acl, write_acl};
use protocol::common::xml_write::without_mark;

use crate::account::{XML, table_name, unreadable};
use crate::pipeline::{Call, Pipeline, Repeat};
use crate::{Error, TableServiceClient};

/// How many policies a table or a queue may have.
pub const POLICY_COUNT_MAX: usize = 5;

impl TableServiceClient {
    /// The stored access policies of a table. Only an account key may ask.
    pub async fn table_policies(&self, table: &str) -> Result<Vec<StoredPolicy>, Error> {
        read_policies(self.pipeline(), table_name(table)?.as_str(), &protocol::table::KIND).await
    }

    /// Replaces all stored access policies of a table. An empty list removes them.
    ///
    /// ```no_run
    /// use lazulite_client::{DateTime, Error, StoredPolicy, TableServiceClient};
    ///
    /// # async fn example(tables: &TableServiceClient) -> Result<(), Error> {
    /// let readers = StoredPolicy {
    ///     id: "readers".to_owned(),
    ///     expiry: DateTime::parse("2030-01-01T00:00:00Z"),
    ///     permission: Some("r".to_owned()),
    ///     ..StoredPolicy::default()
    /// };
    /// tables.set_table_policies("people", &[readers]).await
    /// # }
    /// ```
    pub async fn set_table_policies(&self, table: &str, policies: &[StoredPolicy]) -> Result<(), Error> {
        write_policies(self.pipeline(), table_name(table)?.as_str(), policies).await
    }
}

/// The policies of a table or a queue. `path` is its name.
pub(crate) async fn read_policies(
    pipeline: &Pipeline,
    path: &str,
    kind: &ServiceKind,
) -> Result<Vec<StoredPolicy>, Error> {
    let answer = pipeline.call(acl_call(Method::GET, path)).await?;
    read_acl(&answer.body, kind.policy_letters).map_err(unreadable)
}

/// Replaces the policies of a table or a queue. `path` is its name.
pub(crate) async fn write_policies(
    pipeline: &Pipeline,
    path: &str,
    policies: &[StoredPolicy],
) -> Result<(), Error> {
    if policies.len() > POLICY_COUNT_MAX {
        return Err(Error::Refused(format!(
            "{path} may have at most {POLICY_COUNT_MAX} stored policies, and these are {}",
            policies.len()
        )));
    }
    let mut call = acl_call(Method::PUT, path);
    call.headers.push((CONTENT_TYPE, XML.to_owned()));
    call.body = Bytes::from(without_mark(write_acl(policies)));
    pipeline.call(call).await.map(drop)
}

fn acl_call(method: Method, path: &str) -> Call {
    let mut call = Call::new(method, path, Repeat::Freely);
    call.query.push(("comp", "acl".to_owned()));
    call.headers.push((ACCEPT, XML.to_owned()));
    call
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DateTime;
    use crate::pipeline::tests::{EMULATOR, FakeTransport, Reply, builder};

    #[tokio::test(start_paused = true)]
    async fn policies_are_written_and_read_back() {
        let policies = vec![
            StoredPolicy {
                id: "readers & co".to_owned(),
                start: DateTime::parse("2021-01-01T00:00:00Z"),
                expiry: DateTime::parse("2030-01-01T00:00:00Z"),
                permission: Some("ra".to_owned()),
            },
            StoredPolicy { id: "bare".to_owned(), ..StoredPolicy::default() },
        ];
        let document = String::from_utf8(write_acl(&policies)).unwrap();
        let transport = FakeTransport::new([
            Reply::Answer(204, &[], String::new()),
            Reply::Answer(200, &[], document.clone()),
            Reply::Answer(200, &[], "<x/>".to_owned()),
        ]);
        let tables = builder(EMULATOR, transport.clone()).tables().unwrap();
        tables.set_table_policies("people", &policies).await.unwrap();
        assert_eq!(tables.table_policies("people").await.unwrap(), policies);
        assert!(matches!(tables.table_policies("people").await, Err(Error::Unreadable(_))));
        let six = vec![StoredPolicy::default(); 6];
        assert!(matches!(tables.set_table_policies("people", &six).await, Err(Error::Refused(_))));
        let seen = transport.seen();
        assert_eq!(seen[0].url, "http://127.0.0.1:10002/devstoreaccount1/people?comp=acl");
        assert_eq!(seen[0].body, document.strip_prefix('\u{FEFF}').unwrap());
        assert_eq!((seen.len(), seen[1].method.as_str()), (3, "GET"));
    }
}
