//! Everything that a service keeps for one account: counted before an account takes the name over, and purged.
//!
//! Leaves to others: who may ask for it. It is no operation of any service.

use engine::{Budget, Flow};
use protocol::ServiceError;
use protocol::common::AccountName;

use crate::Catalogue;

/// How many names are read before they are used.
const NAME_COUNT_MAX: usize = 1000;

/// What an account has in one service.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AccountContent {
    pub container_count: u64,
    /// Whether it has set its service properties.
    pub has_properties: bool,
}

impl AccountContent {
    pub fn is_empty(self) -> bool {
        self == AccountContent::default()
    }
}

impl Catalogue {
    pub async fn account_content(&self, account: &AccountName) -> Result<AccountContent, ServiceError> {
        let mut container_count = 0;
        let mut count = |_: &str, _: &[u8]| {
            container_count += 1;
            Flow::Continue
        };
        self.list(account, None, Budget::UNBOUNDED, &mut count).await?;
        Ok(AccountContent { container_count, has_properties: self.has_properties(account).await? })
    }

    /// Deletes all containers of the account, with their content and policies, and its service properties. Returns what was
    /// deleted. After a failure, what was not reached is still there, and purging again continues.
    pub async fn purge_account(&self, account: &AccountName) -> Result<AccountContent, ServiceError> {
        let has_properties = self.has_properties(account).await?;
        if has_properties {
            self.delete_properties(account).await?;
        }
        let mut container_count = 0;
        loop {
            let names = self.some_names(account).await?;
            if names.is_empty() {
                return Ok(AccountContent { container_count, has_properties });
            }
            for name in names {
                // Another may have deleted it meanwhile.
                container_count += u64::from(self.delete(account, &name).await?.is_some());
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
        self.list(account, None, Budget::UNBOUNDED, &mut take).await?;
        Ok(names)
    }
}
