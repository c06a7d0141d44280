//! The first versions of what the Blob service has not always had.

/// Lists name the service's endpoint, and no longer the URL of each blob.
pub(super) const ENDPOINT_IN_LIST: &str = "2013-08-15";
/// Blocks of 100 MiB, blobs of 256 MiB in one request, and the public access of containers in lists.
pub(super) const LARGE_BLOCKS: &str = "2016-05-31";
/// Whoever may delete a blob may break its lease.
pub(super) const DELETE_BREAKS_LEASES: &str = "2017-07-29";
/// Soft delete; errors have their code in a header.
pub const ERROR_CODE_HEADER: &str = "2017-07-29";
/// A snapshot needs a signature of its own: `sr=bs`.
pub(super) const SNAPSHOT_SAS: &str = "2018-11-09";
/// From here on, writes of parts of a blob return the MD5 only to callers that have sent it.
pub const MD5_IF_SENT: &str = "2019-02-02";
/// Blocks of 4000 MiB, blobs of 5000 MiB in one request, tags, versions.
pub(super) const HUGE_BLOCKS: &str = "2019-12-12";
/// Names that XML cannot hold are percent-encoded in lists.
pub(super) const ENCODED_NAMES: &str = "2021-02-12";
/// Appended blocks of 100 MiB.
pub(super) const LARGE_APPENDS: &str = "2022-11-02";
/// The permission to create is enough for the blocks of a new blob.
pub(super) const CREATE_COVERS_BLOCKS: &str = "2026-06-06";
/// The tier that chooses among others by itself.
pub(super) const SMART_TIER: &str = "2026-06-06";
/// Get Blob shows the tier.
pub(crate) const TIER_ON_GET: &str = "2026-10-06";
