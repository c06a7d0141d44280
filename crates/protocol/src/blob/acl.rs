//! A container's stored access policies and its public access, as the Blob service reads them.

use crate::ServiceError;
use crate::common::{StoredPolicy, acl};

use super::KIND;
use super::header_list::Headers;
use super::properties::{PUBLIC_ACCESS, PublicAccess};

/// What Set Container ACL replaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContainerAcl {
    /// `None`: the container is private. Requests that do not say make it so.
    pub public_access: Option<PublicAccess>,
    pub policies: Vec<StoredPolicy>,
}

impl ContainerAcl {
    pub fn read(headers: &Headers<'_>, body: &[u8]) -> Result<ContainerAcl, ServiceError> {
        let public_access = PublicAccess::read(headers, PUBLIC_ACCESS)?;
        // Clients write the letters in different orders.
        let is_permission = |text: &str| text.chars().all(|letter| KIND.policy_letters.contains(letter));
        Ok(ContainerAcl { public_access, policies: acl::read_acl_by(body, is_permission)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::common::acl::write_acl;
    use crate::common::xml_write::without_mark;

    fn read(access: &'static str, body: &str) -> Result<ContainerAcl, ErrorCode> {
        let headers = [("x-ms-blob-public-access", access)].into_iter().collect();
        ContainerAcl::read(&headers, body.as_bytes()).map_err(|error| error.code)
    }

    fn policy(fields: &str) -> String {
        format!(
            "<SignedIdentifiers><SignedIdentifier><Id>policy1</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
    }

    /// The examples of sections 14.4 and 14.5.
    #[test]
    fn policies_and_public_access_are_read_together() {
        let sent = policy("<Expiry>2026-06-27T00:00:00Z</Expiry><Permission>r</Permission>");
        let acl = read("blob", &sent).unwrap();
        assert_eq!((acl.public_access, acl.policies.len()), (Some(PublicAccess::Blob), 1));
        let full = "<Start>2026-06-26T00:00:00.0000000Z</Start><Expiry>2026-06-27T00:00:00.0000000Z</Expiry><Permission>rwd</Permission>";
        let acl = read("container", &policy(full)).unwrap();
        let written = String::from_utf8(without_mark(write_acl(&acl.policies))).unwrap();
        assert_eq!(written, format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>{}", policy(full)));
        assert_eq!(read("", ""), Ok(ContainerAcl::default()));
        assert!(without_mark(write_acl(&[])).ends_with(b"<SignedIdentifiers />"));
    }

    #[test]
    fn letters_come_in_any_order_but_not_any_letters() {
        for letters in ["racwdxyltfmeopi", "racwdxltmeiyf", "dwr"] {
            let acl = read("", &policy(&format!("<Permission>{letters}</Permission>"))).unwrap();
            assert_eq!(acl.policies[0].permission.as_deref(), Some(letters));
        }
        assert_eq!(read("", &policy("<Permission>rz</Permission>")), Err(ErrorCode::InvalidXmlNodeValue));
        assert_eq!(read("", &policy("<Start>soon</Start>")), Err(ErrorCode::InvalidXmlNodeValue));
        assert_eq!(read("everybody", ""), Err(ErrorCode::InvalidHeaderValue));
        let six: String =
            (0..6).map(|id| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>")).collect();
        let six = format!("<SignedIdentifiers>{six}</SignedIdentifiers>");
        assert_eq!(read("", &six), Err(ErrorCode::InvalidXmlDocument));
    }
}
