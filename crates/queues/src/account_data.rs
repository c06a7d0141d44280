//! Everything that the service keeps for one account: counted before an account takes the name over, and purged.
//!
//! Leaves to others: who may ask for it. It is no operation of the service.

use engine::{Budget, Flow};
use protocol::ServiceError;
use protocol::common::AccountName;

use crate::service::QueueService;

/// How many names are read before they are used.
const NAME_COUNT_MAX: usize = 1000;

/// What an account has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AccountQueues {
    pub queue_count: u64,
    /// Whether it has set its service properties.
    pub has_properties: bool,
}

impl AccountQueues {
    pub fn is_empty(self) -> bool {
        self == AccountQueues::default()
    }
}

impl QueueService {
    pub async fn account_data(&self, account: &AccountName) -> Result<AccountQueues, ServiceError> {
        let mut queue_count = 0;
        let mut count = |_: &str, _: &[u8]| {
            queue_count += 1;
            Flow::Continue
        };
        self.catalogue.list(account, None, Budget::UNBOUNDED, &mut count).await?;
        Ok(AccountQueues { queue_count, has_properties: self.catalogue.has_properties(account).await? })
    }

    /// Deletes all queues of the account, with their messages and policies, and its service properties. Returns what
    /// was deleted. After a failure, what was not reached is still there, and purging again continues.
    pub async fn purge_account(&self, account: &AccountName) -> Result<AccountQueues, ServiceError> {
        let has_properties = self.catalogue.has_properties(account).await?;
        if has_properties {
            self.catalogue.delete_properties(account).await?;
        }
        let mut queue_count = 0;
        loop {
            let names = self.some_names(account).await?;
            if names.is_empty() {
                return Ok(AccountQueues { queue_count, has_properties });
            }
            for name in names {
                // Another may have deleted it meanwhile.
                if let Some(id) = self.catalogue.delete(account, &name).await? {
                    self.live().await?.fronts.forget(id);
                    queue_count += 1;
                }
            }
        }
    }

    async fn some_names(&self, account: &AccountName) -> Result<Vec<String>, ServiceError> {
        let mut names = Vec::new();
        let mut take = |name: &str, _: &[u8]| {
            if names.len() == NAME_COUNT_MAX {
                return Flow::Stop;
            }
            names.push(name.to_owned());
            Flow::Continue
        };
        self.catalogue.list(account, None, Budget::UNBOUNDED, &mut take).await?;
        Ok(names)
    }
}
