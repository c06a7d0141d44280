// The patterns of table design in short: what each does, how its keys look, and when it fits. The pages under
// docs/patterns have the whole story; a test compares titles and sketches with them.

/** By the name of the page, without its ending. */
export const PATTERNS = {
  compound_key: {
    title: "Compound key",
    text: "Put the related entities of an entity into its partition, under RowKeys that begin with its own.",
    sketch: `
before   Employees  Sales    000123                          after   Sales   000123         employee
         Reviews    000123   2011                                    Sales   000123!2011    review
         Reviews    000123   2012                                    Sales   000123!2012    review
                                                                             ^ RowKey ge '000123' and lt '000123"'`,
    when:
      "Use it if the related entities are read together with their owner, or must change together with " +
      "it in a transaction.",
  },
  data_series: {
    title: "Data series",
    text: "Store a whole series in one entity, a property for each value, instead of an entity for each " + "value.",
    sketch: `
before   000123  00   Messages: 4      after   000123  2026-01-31   Hour00: 4  Hour01: 0  ...  Hour23: 7
         000123  01   Messages: 0                                   ^ merge changes one property
         ...          24 entities`,
    when:
      "Use it if a series is read as a whole, has a known bound below 252 values, and its values arrive " +
      "one at a time.",
  },
  denormalisation: {
    title: "Denormalisation",
    text: "Keep a copy of what is always read together in one entity.",
    sketch: `
before   Departments  Sales  department    ManagerId: 000014        after   Sales  department   ManagerId, ManagerName,
         Employees    Sales  000014        FirstName, EmailAddress                              ManagerEmail`,
    when:
      "Use it if nearly every reader of one entity asks for the other one next, and the copied " +
      "properties change seldom.",
  },
  eventually_consistent: {
    title: "Eventually consistent transactions",
    text:
      "Move an entity between tables, or do any two things that no transaction covers, through a queue: " +
      "a message says what to do, and a worker does it in steps that can be repeated.",
    sketch: `
client ──▶ queue: "archive Sales 000456"            with the outbox: in the same commit as a change of the employee
worker     1 take the message (hidden for a while, not gone)
           2 read    Current  Sales 000456          absent: somebody has done it, go to 5
           3 upsert  Archive  Sales 000456          the same however often it happens
           4 delete  Current  Sales 000456          only the version that was copied (If-Match), else back to 2
           5 delete the message`,
    when:
      "Two partitions, two tables or two systems must agree in the end, and a reader may see the steps " +
      "between. If no reader may see them, lay out the keys so that one partition holds everything and " +
      "use a transaction.",
  },
  heterogeneous_tables: {
    title: "Heterogeneous tables",
    text:
      "Keep entities of several kinds in one table, so that one query reads them and one transaction " +
      "writes them.",
    sketch: `
before   Departments  Sales       after   Sales   department       Kind: Department   Budget
         Employees    Sales  ...          Sales   empid_000004     Kind: Employee     FirstName ...
                                          Sales   empid_000009     Kind: Employee     FirstName ...`,
    when: "Use it for kinds that belong together: a department and its employees, an order and its lines.",
  },
  high_volume_delete: {
    title: "High-volume delete",
    text: "Put what will be deleted together into a table of its own, and delete the table.",
    sketch: `
before   Logins          user  time ...    find all old ones, delete them in transactions of at most 100
after    Logins20260101  user  time ...    DELETE the table: one request
         Logins20260102  user  time ...`,
    when: "Use it for data that ages: logins, events, sessions, measurements by day or month.",
  },
  index_entities: {
    title: "Index entities",
    text: "Keep a list of keys for each value of a property that many entities share, such as a last name.",
    sketch: `
same partition                                      other table (for all departments)
Sales   000152       LastName: Jones                Names   Jones   Employees: Sales!000152, Support!000310
Sales   000223       LastName: Jones                        ^ maintained by a worker, through a queue or the outbox
Sales   name!Jones   Employees: 000152, 000223
        ^ one transaction writes employee and list, under the ETag of the list`,
    when:
      "Many entities have the same value, so that the value cannot be a key by itself, and a query by " +
      "that value must not scan. The lists stay small: a list is one entity of at most 1 MiB, and one " +
      "property of at most 32,768 characters.",
  },
  inheritance: {
    title: "Inheritance",
    text:
      "Managers and engineers are employees with properties of their own. Store them in one table: the " +
      "property Kind says which one a row is, and an enum of structs reads them.",
    sketch: `
a table per kind    Managers  Sales  000004    Engineers  Sales  000009     a query per kind, merged by the client
one table           Sales  000004  Kind: Manager    FirstName  LastName  Reports
                    Sales  000009  Kind: Engineer   FirstName  LastName  Language
                           ^ one order, one query, one transaction`,
    when: "Use it if the kinds share their keys and most of their properties, and are listed together.",
  },
  inter_partition_index: {
    title: "Inter-partition secondary index",
    text:
      "Store a second copy of an entity in another partition or another table, keyed by another " +
      "property. No transaction spans partitions, so a worker maintains the copy: the change and a " +
      "message that announces it are written first, and the worker makes the copy match.",
    sketch: `
            one step (outbox), or message first and then a claim (queue)
client ──────┬──────────────▶ Employees   Sales    000223        primary
             └──────────────▶ queue       {keys, places before and after}
                                 │
worker ◀─────────────────────────┘
   1 read primary   2 write or delete the copy at each place   3 read primary again, repeat if it changed
   4 delete the message
                └───────────▶ EmployeesByEmail   jonesj000223@contoso.com   copy`,
    when:
      "Entities are looked up by a second property across all partitions. Readers of the index tolerate " +
      "a copy that is late by as long as the queue is.",
  },
  intra_partition_index: {
    title: "Intra-partition secondary index",
    text:
      "Store a second copy of an entity in the same partition, under a RowKey made of another property. " +
      "One transaction writes both copies, so they never differ.",
    sketch: `
table Employees
PartitionKey  RowKey                            properties
Sales         email_jonesj000223@contoso.com    FirstName LastName Age EmailAddress EmployeeId   <- copy
Sales         empid_000223                      FirstName LastName Age EmailAddress EmployeeId   <- primary
              ^ the prefix says which index      ^ one transaction writes both rows`,
    when:
      "Entities are looked up by one more unique property, or listed in another order, within a " +
      "partition. All copies together stay below what one partition can take.",
  },
  joins: {
    title: "Joins in the client",
    text:
      "The service has no joins. A program that joins must ask for everything it needs in few requests, " +
      "not for one entity at a time.",
    sketch: `
before   read the list of reviews, then one point read per employee         1 + n requests
after    read the list of reviews, then points joined by \`or\`, 7 at a time   1 + n/7 requests`,
    when: "Use it for joins that are rare or small. For a join that every request needs, denormalise.",
  },
  large_entities: {
    title: "Large entities",
    text:
      "Store a payload that is larger than an entity in chunks: rows of the same partition, written in " +
      "order, and the head last.",
    sketch: `
000123  photo                     head: Generation g2, Length, Chunks, Checksum     written last: from here on g2 is read
000123  photo!chunk!g1!000000     chunks of the payload before                      deleted after the head
000123  photo!chunk!g2!000000     15 properties of 64 KiB
000123  photo!chunk!g2!000001`,
    when:
      "Use it for payloads of a few MiB that belong to an entity: photos, documents, reports. For " +
      "larger ones use a Blob service.",
  },
  log_data: {
    title: "Anti-pattern: log data",
    text:
      "Logs are written all the time and read by a range of time, for all sources. Neither obvious key " +
      "does both well.",
    sketch: `
by hour      PartitionKey = hour            all inserts in one partition; a range of time is a row range
by source    PartitionKey = source          inserts spread; a range of time is a scan of the table
remedy       PartitionKey = hour!bucket     inserts spread over 8 partitions; a range of time is 8 row ranges`,
    when:
      "A reader merges the answers of all buckets. The number of buckets is fixed for an hour: write it " +
      "down with the hour if it ever changes.",
  },
  log_tail: {
    title: "Log tail",
    text: "Make the newest entity the first one of its partition: the RowKey counts down.",
    sketch: `
time of the claim        chronological key      inverted ticks
2026-01-01T00:00:00Z     0639028224000000000    2516350751999999999   ▲ last
2026-01-02T00:00:00Z     0639029088000000000    2516349887999999999   │
2026-01-03T00:00:00Z     0639029952000000000    2516349023999999999   │ first: $top=1`,
    when: 'Use it for "the last ten of": claims, logins, versions, messages of one owner.',
  },
  one_to_many: {
    title: "One to many",
    text: "A department has many employees. Three layouts, by what is read together.",
    sketch: `
two tables         Departments  Sales   department        Employees  Sales  000004 ...     two requests, no transaction
one partition      Sales  department                      Sales  empid_000004 ...          one request, transactions
denormalised       Employees  Sales  000004   DepartmentName, Budget ...                   one request, no second kind`,
    when:
      "Two tables: the many are far more than a partition should hold, or are used without the one. One " +
      "partition: both are read or changed together. See heterogeneous tables. Denormalised: the one is " +
      "small and hardly changes. A change of it touches every one of the many.",
  },
  one_to_one: {
    title: "One to one",
    text:
      "An employee has one contract. Keep both in one entity unless one half is large and seldom read, " +
      "or needs other permissions.",
    sketch: `
two tables      Employees  Sales  000123        Contracts  Sales  000123        two requests
one entity      Employees  Sales  000123        with ContractSalary, ContractStart
two rows        Employees  Sales  000123        Sales  000123!contract          one range, or one point of either`,
    when:
      "One entity: both halves are usually read together. A projection leaves the other half out. Two " +
      "rows of one partition: one half is large. A transaction still changes both. Two tables: the " +
      "halves have different readers; a SAS is for one table.",
  },
  prepend_append: {
    title: "Anti-pattern: prepend and append",
    text:
      "Keys that grow with time send every insert to the same partition, the last one (or, with " +
      "inverted ticks, the first one).",
    sketch: `
symptom   PartitionKey = hour           2026-01-31T15 ◀── every insert of this hour
remedy    PartitionKey = department!id  Sales!000123  ◀── inserts spread over all employees
          RowKey       = time           Sales!000456  ◀──`,
    when:
      "A question about all employees in one hour must now ask every partition. If that is the usual " +
      "question, use buckets: log data.",
  },
  wide_entities: {
    title: "Wide entities",
    text: "Split an entity of more than 252 properties over several rows, and read them back as one.",
    sketch: `
000123  2026!wide!000   Day001 ... Day250   WideVersion: v   WideRows: 2      one transaction writes all rows,
000123  2026!wide!001   Day251 ... Day365   WideVersion: v                    one query reads them`,
    when:
      "Use it for objects with hundreds of properties that change together. An object that grows " +
      "without a bound is a list: give its items rows of their own.",
  },
};

/** The name of a pattern from the ways in which it may be written: docs/patterns/log_tail.md, log_tail, log-tail. */
export function patternName(text) {
  return String(text)
    .replace(/^.*\//, "")
    .replace(/[.]md.*$/, "")
    .replaceAll("-", "_");
}

/** The pattern of that name, which may come from the address; undefined if there is none. */
export function patternNamed(name) {
  return Object.hasOwn(PATTERNS, name) ? PATTERNS[name] : undefined;
}
