//! Every operation that a request can be, by the names that the services' documentation uses.
//!
//! A closed set: an operation is a small number, so counters for all of them stand in an array, and no name that a
//! stranger chooses becomes the label of a metric.

/// A storage service, as metrics name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    Table,
    Queue,
    Blob,
    /// A service that has no operations of its own here.
    Other,
}

macro_rules! operations {
    ($($service:ident { $($variant:ident $name:literal)* })*) => {
        /// What a request asks for.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Operation { $($($variant),*),* }

        impl Operation {
            pub const ALL: &'static [Operation] = &[$($(Operation::$variant),*),*];

            pub fn service(self) -> Service {
                match self { $($(Operation::$variant => Service::$service),*),* }
            }

            /// As the documentation of the service calls it.
            pub fn name(self) -> &'static str {
                match self { $($(Operation::$variant => $name),*),* }
            }
        }
    };
}

operations! {
    Table {
        // A request that was refused before it was clear what it asks for.
        TableUnread "Unknown"
        TablePreflight "Preflight Table Request"
        GetTableServiceProperties "Get Table Service Properties"
        SetTableServiceProperties "Set Table Service Properties"
        GetTableServiceStats "Get Table Service Stats"
        GetTableAcl "Get Table ACL"
        SetTableAcl "Set Table ACL"
        QueryTables "Query Tables"
        CreateTable "Create Table"
        GetTable "Get Table"
        DeleteTable "Delete Table"
        QueryEntities "Query Entities"
        GetEntity "Get Entity"
        InsertEntity "Insert Entity"
        UpdateEntity "Update Entity"
        InsertOrReplaceEntity "Insert Or Replace Entity"
        MergeEntity "Merge Entity"
        InsertOrMergeEntity "Insert Or Merge Entity"
        DeleteEntity "Delete Entity"
        EntityGroupTransaction "Entity Group Transaction"
    }
    Queue {
        QueueUnread "Unknown"
        QueuePreflight "Preflight Queue Request"
        GetQueueServiceProperties "Get Queue Service Properties"
        SetQueueServiceProperties "Set Queue Service Properties"
        GetQueueServiceStats "Get Queue Service Stats"
        ListQueues "List Queues"
        CreateQueue "Create Queue"
        DeleteQueue "Delete Queue"
        GetQueueMetadata "Get Queue Metadata"
        SetQueueMetadata "Set Queue Metadata"
        GetQueueAcl "Get Queue ACL"
        SetQueueAcl "Set Queue ACL"
        PutMessage "Put Message"
        GetMessages "Get Messages"
        PeekMessages "Peek Messages"
        ClearMessages "Clear Messages"
        UpdateMessage "Update Message"
        DeleteMessage "Delete Message"
    }
    Blob {
        BlobUnread "Unknown"
        BlobPreflight "Preflight Blob Request"
        GetBlobServiceProperties "Get Blob Service Properties"
        SetBlobServiceProperties "Set Blob Service Properties"
        GetBlobServiceStats "Get Blob Service Stats"
        GetAccountInformation "Get Account Information"
        GetUserDelegationKey "Get User Delegation Key"
        ListContainers "List Containers"
        FindBlobsByTags "Find Blobs by Tags"
        BlobBatch "Blob Batch"
        CreateContainer "Create Container"
        GetContainerProperties "Get Container Properties"
        GetContainerMetadata "Get Container Metadata"
        SetContainerMetadata "Set Container Metadata"
        GetContainerAcl "Get Container ACL"
        SetContainerAcl "Set Container ACL"
        DeleteContainer "Delete Container"
        LeaseContainer "Lease Container"
        RestoreContainer "Restore Container"
        ListBlobs "List Blobs"
        FindBlobsByTagsInContainer "Find Blobs by Tags in Container"
        PutBlob "Put Blob"
        PutBlobFromUrl "Put Blob From URL"
        GetBlob "Get Blob"
        GetBlobProperties "Get Blob Properties"
        SetBlobProperties "Set Blob Properties"
        GetBlobMetadata "Get Blob Metadata"
        SetBlobMetadata "Set Blob Metadata"
        GetBlobTags "Get Blob Tags"
        SetBlobTags "Set Blob Tags"
        LeaseBlob "Lease Blob"
        SnapshotBlob "Snapshot Blob"
        CopyBlob "Copy Blob"
        CopyBlobFromUrl "Copy Blob From URL"
        AbortCopyBlob "Abort Copy Blob"
        DeleteBlob "Delete Blob"
        UndeleteBlob "Undelete Blob"
        SetBlobTier "Set Blob Tier"
        PutBlock "Put Block"
        PutBlockFromUrl "Put Block From URL"
        PutBlockList "Put Block List"
        GetBlockList "Get Block List"
        PutPage "Put Page"
        PutPageFromUrl "Put Page From URL"
        GetPageRanges "Get Page Ranges"
        AppendBlock "Append Block"
        AppendBlockFromUrl "Append Block From URL"
        SealAppendBlob "Append Blob Seal"
    }
    Other {
        OtherUnread "Unknown"
        OtherPreflight "Preflight Request"
    }
}

impl Operation {
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Service {
    pub const ALL: [Service; 4] = [Service::Table, Service::Queue, Service::Blob, Service::Other];

    /// As a label of a metric.
    pub fn label(self) -> &'static str {
        match self {
            Service::Table => "table",
            Service::Queue => "queue",
            Service::Blob => "blob",
            Service::Other => "other",
        }
    }

    /// The operation of a request that was refused before it was clear what it asks for.
    pub fn unread(self) -> Operation {
        match self {
            Service::Table => Operation::TableUnread,
            Service::Queue => Operation::QueueUnread,
            Service::Blob => Operation::BlobUnread,
            Service::Other => Operation::OtherUnread,
        }
    }

    pub fn preflight(self) -> Operation {
        match self {
            Service::Table => Operation::TablePreflight,
            Service::Queue => Operation::QueuePreflight,
            Service::Blob => Operation::BlobPreflight,
            Service::Other => Operation::OtherPreflight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_operation_has_its_own_index_and_its_own_name_within_its_service() {
        let names: HashSet<_> =
            Operation::ALL.iter().map(|operation| (operation.service(), operation.name())).collect();
        assert_eq!(names.len(), Operation::ALL.len());
        for (index, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(operation.index(), index);
        }
        for service in Service::ALL {
            assert_eq!((service.unread().service(), service.preflight().service()), (service, service));
        }
    }
}
