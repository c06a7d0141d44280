//! Find Blobs by Tags, by walking the names of containers.
//!
//! There is no index. A page takes as long as a walk may take, however many containers and blobs there are, and its marker says where
//! to go on, so a search always ends after a number of pages that is proportional to the rows. Rows are looked at in place. An index
//! would be rows of another partition, which change with every write of a blob with tags: two commits in the place of one, and a
//! second thing that a check, a backup and a restore have to keep right, for a question that is asked seldom.

use engine::{Budget, Flow, OwnedKey, Share};
use protocol::ServiceError;
use protocol::blob::ContainerName;
use protocol::blob::list_parameters::{FindBlobsParameters, FindMarker};
use protocol::blob::tag_expression::TagExpression;
use protocol::common::AccountName;

use crate::api::{FoundBlob, FoundPage};
use crate::container_deletion::DELETED_MARK;
use crate::record::{BASE_ROW, BlobRecord, read_moment_row};
use crate::service::{BlobCore, BlobService, damaged_row};
use crate::walk::{BlobWalker, WALK_TIME_MAX, WalkStep};

/// Names that are read before they are searched.
const CONTAINER_COUNT_MAX: usize = 100;

impl BlobService {
    /// In one container, or in all of the account.
    pub async fn find_blobs(
        &self,
        account: &AccountName,
        container: Option<&ContainerName>,
        parameters: &FindBlobsParameters,
        share: Share,
    ) -> Result<FoundPage, ServiceError> {
        let mut page = FoundPage { blobs: Vec::new(), next: None };
        let marker = parameters.marker.as_ref();
        if let Some(container) = container {
            let table = self.inner.find(account, container).await?;
            let start = marker.map(|marker| &*marker.blob);
            self.inner.find_in(table, container.as_str(), start, parameters, share, &mut page).await?;
            return Ok(page);
        }
        let only = parameters.expression.container();
        let mut from = marker.map(|marker| marker.container.clone()).unwrap_or_default();
        let began = self.inner.clock.monotonic();
        loop {
            let names = self.inner.container_names(account, &from).await?;
            let Some(last) = names.last().cloned() else { return Ok(page) };
            for name in names {
                if name.contains(DELETED_MARK) || only.is_some_and(|only| only != name) {
                    continue;
                }
                if self.inner.clock.monotonic().saturating_sub(began) >= WALK_TIME_MAX {
                    page.next = Some(FindMarker { container: name, blob: String::new() });
                    return Ok(page);
                }
                let Some(table) = self.inner.catalogue.id_of(account, &name).await? else { continue };
                let start = marker.filter(|marker| marker.container == name).map(|marker| &*marker.blob);
                self.inner.find_in(table, &name, start, parameters, share, &mut page).await?;
                if page.next.is_some() {
                    return Ok(page);
                }
            }
            // No name lies between this one and itself with one more of the lowest characters.
            from = [&*last, "\0"].concat();
        }
    }
}

impl BlobCore {
    /// Some names of containers, from there on.
    async fn container_names(&self, account: &AccountName, from: &str) -> Result<Vec<String>, ServiceError> {
        let mut names = Vec::new();
        let mut visit = |name: &str, _: &[u8]| {
            if names.len() == CONTAINER_COUNT_MAX {
                return Flow::Stop;
            }
            names.push(name.to_owned());
            Flow::Continue
        };
        self.catalogue.list(account, Some(from), Budget::UNBOUNDED, &mut visit).await?;
        Ok(names)
    }

    async fn find_in(
        &self,
        table: engine::TableId,
        container: &str,
        start: Option<&str>,
        parameters: &FindBlobsParameters,
        share: Share,
        page: &mut FoundPage,
    ) -> Result<(), ServiceError> {
        let start = start.map(|name| OwnedKey { partition: name.into(), row: "".into() });
        let mut walker = FindWalker {
            container,
            expression: &parameters.expression,
            count_max: parameters.page_count(),
            page,
            is_damaged: false,
        };
        let next = self.walk(table, (start.as_ref(), None), "", share, &mut walker).await?;
        if walker.is_damaged {
            return Err(damaged_row());
        }
        page.next =
            next.map(|key| FindMarker { container: container.to_owned(), blob: key.partition.into() });
        Ok(())
    }
}

struct FindWalker<'a> {
    container: &'a str,
    expression: &'a TagExpression,
    count_max: usize,
    page: &'a mut FoundPage,
    is_damaged: bool,
}

impl BlobWalker for FindWalker<'_> {
    fn see(&mut self, name: &str, row: &str, value: &[u8]) -> WalkStep {
        if row != BASE_ROW {
            return if read_moment_row(row).is_some() { WalkStep::PassMoments } else { WalkStep::PassBlob };
        }
        let Some(record) = BlobRecord::decode_borrowed(value) else {
            self.is_damaged = true;
            return WalkStep::Stop;
        };
        let Some(live) = record.live() else { return WalkStep::PassBlob };
        if live.tags.is_empty() || !self.expression.matches(&live.tags, Some(self.container)) {
            return WalkStep::PassBlob;
        }
        if self.page.blobs.len() >= self.count_max {
            return WalkStep::Stop;
        }
        let tags = live.tags.clone();
        self.page.blobs.push(FoundBlob { container: self.container.to_owned(), name: name.to_owned(), tags });
        WalkStep::PassBlob
    }
}
