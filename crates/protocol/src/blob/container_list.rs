//! List Containers: its parameters, and `EnumerationResults`, its answer.

use crate::common::list::{
    Items, NameMarker, PAGE_COUNT_USUAL, ROOT, read_count_max, read_include, read_text, write_head,
    write_metadata,
};
use crate::common::query::{Query, invalid_parameter};
use crate::common::xml_write::XmlWriter;
use crate::common::{AccountName, DateTime, Metadata};
use crate::{ErrorCode, ServiceError};

use super::etag::BlobETag;
use super::lease::Lease;
use super::properties::PublicAccess;
use super::versions;

/// Bytes of a container without metadata, and of what surrounds the list.
const CONTAINER_BYTES_USUAL: usize = 640;
const CAPACITY_BYTES: usize = 512;
/// The encryption scope of containers that set none.
pub const ENCRYPTION_SCOPE_USUAL: &str = "$account-encryption-key";

/// The parameters of List Containers. Those that were sent are repeated in the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListContainersParameters {
    pub prefix: Option<String>,
    marker: Option<NameMarker>,
    count_max: Option<usize>,
    pub include_metadata: bool,
    pub include_deleted: bool,
    pub include_system: bool,
}

impl ListContainersParameters {
    pub fn read(query: &Query<'_>, account: &AccountName) -> Result<ListContainersParameters, ServiceError> {
        let marker = read_text(query, "marker")?.filter(|marker| !marker.is_empty());
        let marker = marker
            .map(|marker| NameMarker::read(marker, account).ok_or(ErrorCode::OutOfRangeInput))
            .transpose()?;
        let mut parameters = ListContainersParameters {
            prefix: read_text(query, "prefix")?,
            marker,
            count_max: read_count_max(query)?,
            include_metadata: false,
            include_deleted: false,
            include_system: false,
        };
        for list in read_include(query)? {
            for word in list.split(',').filter(|word| !word.is_empty()) {
                match &*word.trim().to_ascii_lowercase() {
                    "metadata" => parameters.include_metadata = true,
                    "deleted" => parameters.include_deleted = true,
                    "system" => parameters.include_system = true,
                    _ => return Err(invalid_parameter("include", &list, "")),
                }
            }
        }
        Ok(parameters)
    }

    /// The page begins with this name, or with the next one that there is.
    pub fn first_name(&self) -> Option<&str> {
        self.marker.as_ref().map(NameMarker::name)
    }

    /// How many containers a page has at most.
    pub fn page_count(&self) -> usize {
        self.count_max.unwrap_or(PAGE_COUNT_USUAL)
    }
}

/// A container in a list.
#[derive(Clone, Copy, Debug)]
pub struct ListedContainer<'a> {
    pub name: &'a str,
    pub last_modified: DateTime,
    pub etag: BlobETag,
    /// As it is now.
    pub lease: Lease,
    pub public_access: Option<PublicAccess>,
    pub metadata: &'a Metadata,
    /// `None`: [`ENCRYPTION_SCOPE_USUAL`].
    pub default_encryption_scope: Option<&'a str>,
    pub deny_encryption_scope_override: bool,
    /// If it is softly deleted.
    pub deleted: Option<DeletedContainer<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct DeletedContainer<'a> {
    /// What Restore Container wants to know.
    pub version: &'a str,
    pub time: DateTime,
    pub remaining_days: u16,
}

pub struct ContainerListWriter<'a> {
    items: Items,
    account: &'a AccountName,
    /// The base for the URL of each container, which old versions show.
    url_base: Option<&'a str>,
    has_public_access: bool,
    include_metadata: bool,
}

impl<'a> ContainerListWriter<'a> {
    /// `base` is the account's URL without a trailing slash, and `container_count` how many containers are to come.
    pub fn begin(
        base: &'a str,
        account: &'a AccountName,
        parameters: &ListContainersParameters,
        version: &str,
        container_count: usize,
    ) -> ContainerListWriter<'a> {
        let capacity = CAPACITY_BYTES + container_count * CONTAINER_BYTES_USUAL;
        let mut out = XmlWriter::begin_unmarked(capacity);
        let is_old = version < versions::ENDPOINT_IN_LIST;
        if is_old {
            out.start_with(ROOT, "AccountName", base);
        } else {
            out.start_with(ROOT, "ServiceEndpoint", &[base, "/"].concat());
        }
        let marker = parameters.marker.as_ref().map(|marker| &*marker.text);
        write_head(parameters.prefix.as_deref(), marker, parameters.count_max, &mut out);
        ContainerListWriter {
            items: Items::new(out, "Containers", CAPACITY_BYTES),
            account,
            url_base: is_old.then_some(base),
            has_public_access: version >= versions::LARGE_BLOCKS,
            include_metadata: parameters.include_metadata,
        }
    }

    /// Adds a container, unless `admit` refuses an answer of that many bytes. Tells whether it did.
    pub fn push(&mut self, container: &ListedContainer<'_>, admit: impl FnOnce(usize) -> bool) -> bool {
        let (url_base, has_public_access, include_metadata) =
            (self.url_base, self.has_public_access, self.include_metadata);
        let write = |out: &mut XmlWriter| {
            out.start("Container");
            out.leaf("Name", container.name);
            if let Some(base) = url_base {
                out.leaf("Url", &[base, "/", container.name].concat());
            }
            if let Some(deleted) = &container.deleted {
                out.leaf("Deleted", "true");
                out.leaf("Version", deleted.version);
            }
            write_properties(container, has_public_access, out);
            if include_metadata {
                write_metadata(container.metadata, out);
            }
            out.end("Container");
        };
        self.items.push(write, admit)
    }

    /// `next` is the first name of the next page, if there is one.
    pub fn finish(self, next: Option<&str>) -> Vec<u8> {
        self.items.finish(next.map(|name| NameMarker::write(self.account, name)).as_deref())
    }
}

fn write_properties(container: &ListedContainer<'_>, has_public_access: bool, out: &mut XmlWriter) {
    out.start("Properties");
    out.http_date("Last-Modified", container.last_modified);
    out.leaf("Etag", &container.etag.quoted());
    out.leaf("LeaseStatus", container.lease.status());
    out.leaf("LeaseState", container.lease.state());
    if let Some(duration) = container.lease.duration() {
        out.leaf("LeaseDuration", duration);
    }
    if let Some(access) = container.public_access.filter(|_| has_public_access) {
        out.leaf("PublicAccess", access.as_str());
    }
    let flag = |value: bool| if value { "true" } else { "false" };
    out.leaf("DefaultEncryptionScope", container.default_encryption_scope.unwrap_or(ENCRYPTION_SCOPE_USUAL));
    out.leaf("DenyEncryptionScopeOverride", flag(container.deny_encryption_scope_override));
    out.leaf("HasImmutabilityPolicy", "false");
    out.leaf("HasLegalHold", "false");
    out.leaf("ImmutableStorageWithVersioningEnabled", "false");
    if let Some(deleted) = &container.deleted {
        out.http_date("DeletedTime", deleted.time);
        out.leaf("RemainingRetentionDays", &deleted.remaining_days.to_string());
    }
    out.end("Properties");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::guid::Guid;

    use super::super::lease::LeaseDuration;

    const BASE: &str = "https://acct.blob.core.windows.net";

    fn container<'a>(name: &'a str, metadata: &'a Metadata) -> ListedContainer<'a> {
        ListedContainer {
            name,
            last_modified: DateTime::parse("2023-01-27T22:15:18.5Z").unwrap(),
            etag: BlobETag(0x8DB_00B3_F91F_C8A3),
            lease: Lease::Available,
            public_access: None,
            metadata,
            default_encryption_scope: None,
            deny_encryption_scope_override: false,
            deleted: None,
        }
    }

    fn list(version: &str, query: &str, containers: &[ListedContainer<'_>], next: Option<&str>) -> String {
        let account = AccountName::parse("acct").unwrap();
        let parameters = ListContainersParameters::read(&Query::split(query), &account).unwrap();
        let mut writer = ContainerListWriter::begin(BASE, &account, &parameters, version, containers.len());
        for container in containers {
            assert!(!writer.push(container, |_| false));
            assert!(writer.push(container, |_| true));
        }
        String::from_utf8(writer.finish(next)).unwrap()
    }

    /// The example of section 13.1.
    #[test]
    fn a_page_is_that_of_the_service() {
        let metadata = Metadata::read([("key", "val")]).unwrap();
        let page = list(
            "2021-12-02",
            "comp=list&prefix=cont&maxresults=1&include=metadata",
            &[container("container1", &metadata)],
            Some("container2"),
        );
        assert_eq!(
            page,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\"><Prefix>cont</Prefix><MaxResults>1</MaxResults><Containers><Container><Name>container1</Name><Properties><Last-Modified>Fri, 27 Jan 2023 22:15:18 GMT</Last-Modified><Etag>\"0x8DB00B3F91FC8A3\"</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold><ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled></Properties><Metadata><key>val</key></Metadata></Container></Containers><NextMarker>/acct/container2</NextMarker></EnumerationResults>"
        );
        let empty = list("2021-12-02", "marker=%2Facct%2Fcontainer2", &[], None);
        assert!(
            empty.ends_with(
                "<Marker>/acct/container2</Marker><Containers /><NextMarker /></EnumerationResults>"
            )
        );
    }

    #[test]
    fn leases_public_access_and_deletion_are_shown() {
        let metadata = Metadata::default();
        let duration = LeaseDuration::Fixed(15);
        let leased = ListedContainer {
            lease: Lease::Leased { id: Guid([1; 16]), duration, until: None },
            public_access: Some(PublicAccess::Blob),
            deleted: Some(DeletedContainer {
                version: "01D",
                time: DateTime::parse("2023-01-28T00:00:00Z").unwrap(),
                remaining_days: 6,
            }),
            ..container("abc", &metadata)
        };
        let page = list("2021-12-02", "include=deleted,metadata&include=system", &[leased], None);
        for expected in [
            "<Name>abc</Name><Deleted>true</Deleted><Version>01D</Version><Properties>",
            "<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>fixed</LeaseDuration><PublicAccess>blob</PublicAccess><Default",
            "<DeletedTime>Sat, 28 Jan 2023 00:00:00 GMT</DeletedTime><RemainingRetentionDays>6</RemainingRetentionDays></Properties><Metadata /></Container>",
        ] {
            assert!(page.contains(expected), "{page}\n{expected}");
        }
        let old = list("2012-02-12", "", &[leased], None);
        assert!(old.contains(&format!("<EnumerationResults AccountName=\"{BASE}\"><Containers>")), "{old}");
        assert!(old.contains(&format!("<Url>{BASE}/abc</Url>")) && !old.contains("PublicAccess"));
    }

    #[test]
    fn parameters_are_checked() {
        let account = AccountName::parse("acct").unwrap();
        let read = |query| {
            ListContainersParameters::read(&Query::split(query), &account).map_err(|error| error.code)
        };
        let all = read("include=metadata,Deleted,system&maxresults=9999&marker=abc").unwrap();
        assert!(all.include_metadata && all.include_deleted && all.include_system);
        assert_eq!((all.page_count(), all.first_name()), (5000, Some("abc")));
        assert_eq!(read("maxresults=0"), Err(ErrorCode::OutOfRangeQueryParameterValue));
        assert_eq!(read("include=x"), Err(ErrorCode::InvalidQueryParameterValue));
        assert_eq!(read("marker=/other/abc"), Err(ErrorCode::OutOfRangeInput));
    }
}
