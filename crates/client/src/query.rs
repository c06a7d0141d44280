//! Queries: which rows, which of their properties, how many, and in which pieces they arrive.
//!
//! Promises: nothing is sent before a result is asked for; a query that was told to refuse scans sends none. Leaves to
//! others: the filter's text and its plan (`filter`, `plan`), and fetching (`page`).

use std::marker::PhantomData;

use crate::page::{Continuation, Entities, PAGE_SIZE_MAX, Page, Pages, Source};
use crate::sealing::check_projection;
use crate::{Column, Entity, EntityError, Error, Filter, Keys, Plan, Property, Row, TableClient};

/// A query of one table. Made by [`TableClient::query`].
///
/// Rows come in the order of their keys: first PartitionKey, then RowKey. The service has no other order.
///
/// ```no_run
/// use lazulite_client::{Entity, Error, TableClient};
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     age: i32,
/// }
///
/// async fn veterans(employees: &TableClient) -> Result<Vec<Employee>, Error> {
///     employees
///         .query::<Employee>()
///         .filter(Employee::department().eq("Sales") & Employee::age().ge(50))
///         .top(10)
///         .all()
///         .await
/// }
/// ```
#[must_use = "a query does nothing until its results are asked for"]
pub struct Query<E, R = E> {
    table: TableClient,
    filter: Option<Filter<E>>,
    partition_key: Option<String>,
    top: Option<usize>,
    page_size: Option<usize>,
    from: Option<Continuation>,
    refuses_scans: bool,
    explains: bool,
    /// What is wrong with the query; it is said instead of the first result.
    refusal: Option<Error>,
    row: PhantomData<fn() -> R>,
}

impl<E: Entity> Query<E> {
    pub(crate) fn new(table: TableClient) -> Query<E> {
        Query {
            table,
            filter: None,
            partition_key: None,
            top: None,
            page_size: None,
            from: None,
            refuses_scans: false,
            explains: false,
            refusal: None,
            row: PhantomData,
        }
    }
}

impl<E: Entity, R: Entity> Query<E, R> {
    /// Only rows that fulfil this condition. A second filter narrows the first.
    pub fn filter(mut self, filter: Filter<E>) -> Query<E, R> {
        self.filter = Some(match self.filter.take() {
            Some(earlier) => earlier & filter,
            None => filter,
        });
        self
    }

    /// Only rows of this partition: short for a filter on PartitionKey.
    pub fn partition(mut self, partition_key: &str) -> Query<E, R> {
        self.partition_key = Some(partition_key.to_owned());
        self
    }

    /// Reads the rows as another struct, whose properties alone are fetched.
    ///
    /// Refused, when the results are asked for, if the other struct takes a property for plain that `E` encrypts.
    ///
    /// ```no_run
    /// # use lazulite_client::{Entity, Error, TableClient};
    /// # #[derive(Entity)]
    /// # struct Employee { #[entity(partition_key)] department: String, #[entity(row_key)] id: String, age: i32 }
    /// #[derive(Entity)]
    /// struct EmployeeAge {
    ///     #[entity(partition_key)]
    ///     department: String,
    ///     #[entity(row_key)]
    ///     id: String,
    ///     age: i32,
    /// }
    ///
    /// # async fn f(employees: &TableClient) -> Result<(), Error> {
    /// let ages = employees.query::<Employee>().partition("Sales").select::<EmployeeAge>().all().await?;
    /// # Ok(()) }
    /// ```
    pub fn select<P: Entity>(mut self) -> Query<E, P> {
        self.refusal = self.refusal.or_else(|| check_projection::<E, P>().err());
        self.read_as()
    }

    /// At most this many rows in all.
    pub fn top(mut self, count: usize) -> Query<E, R> {
        self.top = Some(count);
        self
    }

    /// At most this many rows in one answer, 1 to 1,000. Without it the service decides: 1,000, or fewer if it has to
    /// look for long.
    pub fn page_size(mut self, count: usize) -> Query<E, R> {
        if !(1..=PAGE_SIZE_MAX).contains(&count) {
            let reason = format!("a page has 1 to {PAGE_SIZE_MAX} rows, not {count}");
            self.refusal.get_or_insert(Error::Refused(reason));
        }
        self.page_size = Some(count);
        self
    }

    /// Goes on where a page of the same query said that the next one begins.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(people: &TableClient, stored: &str) -> Result<(), Error> {
    /// let page = people.query::<DynamicEntity>().resume(stored.parse()?).page().await?;
    /// let to_store = page.continuation.map(|next| next.to_string());
    /// # Ok(()) }
    /// ```
    pub fn resume(mut self, from: Continuation) -> Query<E, R> {
        self.from = Some(from);
        self
    }

    /// Refuses to send a query that would read more the more the table holds: see [`Plan::is_scan`]. The error names
    /// the plan and the remedy. A query of a whole partition, by [`Query::partition`] and no filter, is what it says,
    /// and allowed.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(people: &TableClient) {
    /// let everybody = people.query::<DynamicEntity>().refuse_scans().all().await;
    /// assert!(matches!(everybody, Err(Error::Refused(_))));
    /// # }
    /// ```
    pub fn refuse_scans(mut self) -> Query<E, R> {
        self.refuses_scans = true;
        self
    }

    /// Asks the server how it finds the rows: see [`Page::explanation`]. Only Lazulite tells; other servers ignore it.
    pub fn explain(mut self) -> Query<E, R> {
        self.explains = true;
        self
    }

    /// How the service will find the rows: by a point, a range or a scan. It follows from the filter alone.
    pub fn plan(&self) -> Plan {
        self.whole_filter().map_or(Plan::TableScan, |filter| filter.plan())
    }

    /// The filter, with the partition.
    fn whole_filter(&self) -> Option<Filter<E>> {
        let partition =
            self.partition_key.as_deref().map(|key| Column::<E, String>::named("PartitionKey").eq(key));
        match (partition, self.filter.clone()) {
            (Some(partition), Some(filter)) => Some(partition & filter),
            (one, other) => one.or(other),
        }
    }

    /// The entities, page after page.
    pub fn stream(self) -> Entities<R> {
        Entities::new(self.pages())
    }

    /// The pages, one request each.
    pub fn pages(mut self) -> Pages<R> {
        let mut refusal = self.refusal.take();
        let is_partition_alone = self.partition_key.is_some() && self.filter.is_none();
        if self.refuses_scans && !is_partition_alone {
            refusal = refusal.or_else(|| refuse_scan(self.plan()));
        }
        let select = self.table.columns::<R>().unwrap_or_else(|error| {
            refusal.get_or_insert(error);
            None
        });
        let filter = self.whole_filter().map(|filter| filter.to_string());
        let source = Source {
            table: self.table,
            filter,
            select,
            page_size: self.page_size,
            wanted: self.top,
            explains: self.explains,
        };
        Pages::new(source, self.from, refusal)
    }

    /// The first page alone: one request.
    pub async fn page(self) -> Result<Page<R>, Error> {
        let empty = Page { entities: Vec::new(), continuation: None, explanation: None, body_bytes: 0 };
        self.pages().next().await.unwrap_or(Ok(empty))
    }

    /// All entities, in memory. For a large result prefer [`Query::stream`].
    pub async fn all(self) -> Result<Vec<R>, Error> {
        let mut pages = self.pages();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            let mut entities = page?.entities;
            if all.is_empty() {
                all = entities;
            } else {
                all.append(&mut entities);
            }
        }
        Ok(all)
    }

    /// The first entity, or `None` when there is none.
    pub async fn first(self) -> Result<Option<R>, Error> {
        self.top(1).stream().next().await.transpose()
    }

    /// How many rows there are. The service cannot count, so this fetches all of them, with nothing but their RowKeys.
    pub async fn count(self) -> Result<u64, Error> {
        let mut pages = self.read_as::<Counted>().pages();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            count += page?.entities.len() as u64;
        }
        Ok(count)
    }

    fn read_as<P>(self) -> Query<E, P> {
        Query {
            table: self.table,
            filter: self.filter,
            partition_key: self.partition_key,
            top: self.top,
            page_size: self.page_size,
            from: self.from,
            refuses_scans: self.refuses_scans,
            explains: self.explains,
            refusal: self.refusal,
            row: PhantomData,
        }
    }
}

/// What is wrong with a plan, if it is a scan.
fn refuse_scan(plan: Plan) -> Option<Error> {
    let remedy = match plan {
        Plan::Point | Plan::RowRange => return None,
        Plan::PartitionScan => {
            "it reads a whole partition to find some of its rows: add a condition on RowKey, or keep an index of the \
             property as rows of their own"
        }
        Plan::PartitionRange => {
            "it reads whole partitions: compare PartitionKey with eq, and RowKey too if you can"
        }
        Plan::TableScan => {
            "it reads the whole table: add a condition on PartitionKey, or keep an index of the property as rows of \
             their own"
        }
    };
    Some(Error::Refused(format!("this query is a {plan}, and it was told to refuse scans: {remedy}")))
}

/// A row of which only its existence counts.
struct Counted;

impl Entity for Counted {
    const COLUMNS: Option<&'static [&'static str]> = Some(&["RowKey"]);

    fn keys(&self) -> Result<Keys<'_>, EntityError> {
        Err(EntityError { property: "".into(), reason: "a counted row has no keys".into() })
    }

    fn write<'a>(&'a self, _out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        Ok(())
    }

    fn read(_row: Row<'_>) -> Result<Counted, EntityError> {
        Ok(Counted)
    }
}
