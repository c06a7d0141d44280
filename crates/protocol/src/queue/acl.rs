//! A queue's stored access policies, as the Queue service reads them.

use crate::common::StoredPolicy;
use crate::common::acl;
use crate::common::xml::invalid_document;
use crate::{ErrorCode, ServiceError};

use super::KIND;

/// Reads the policies that replace those of a queue. To this service, a wrong value makes the whole document invalid.
pub fn read_acl(body: &[u8]) -> Result<Vec<StoredPolicy>, ServiceError> {
    acl::read_acl(body, KIND.policy_letters).map_err(|error| match error.code {
        ErrorCode::InvalidXmlNodeValue => invalid_document(error),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_makes_the_document_invalid() {
        let read = |fields: &str| {
            let body = format!(
                "<SignedIdentifiers><SignedIdentifier><Id>i</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
            );
            read_acl(body.as_bytes()).map(|policies| policies.len())
        };
        assert_eq!(read("<Permission>raup</Permission>").unwrap(), 1);
        for bad in
            ["<Permission>pr</Permission>", "<Permission>d</Permission>", "<Start>soon</Start>", "<x/>"]
        {
            let error = read(bad).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidXmlDocument);
            let elements: Vec<_> = error.elements().collect();
            assert_eq!(elements, [("LineNumber", "0"), ("LinePosition", "0"), ("Reason", "")]);
        }
        assert!(read_acl(b"").unwrap().is_empty());
    }
}
