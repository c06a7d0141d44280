//! The help text. The guide shows it, too.

pub const HELP: &str = "\
Lazulite: a server that speaks the Azure Table, Queue and Blob Storage protocols, on your own machine.

Usage: lazulite [serve] [OPTIONS]
       lazulite account add|list|rotate|remove|purge [NAME] [OPTIONS]
       lazulite sas --account NAME --permissions LETTERS --expiry TIME [OPTIONS]
       lazulite backup FILE [OPTIONS]
       lazulite restore FILE [OPTIONS]
       lazulite check [OPTIONS]
       lazulite move --from STORE --to STORE [OPTIONS]
       lazulite engine schema
       lazulite bench [OPTIONS]
       lazulite advise [OPTIONS]

Options of serve:
  -l, --location DIR        Where the data is kept [default: lazulite-data]
      --engine URL          Keep the data in PostgreSQL instead: postgres://USER@HOST:PORT,HOST:PORT/DATABASE. A URL
                            with a password belongs into LAZULITE_ENGINE or the configuration file, where other
                            users of the machine do not see it
      --in-memory           Keep everything in memory, nothing on disk
      --services LIST       Which services to start: table, queue, blob [default: all; with --engine, blob
                            only if there are --contents]
      --table-host HOST     Address of the Table service [default: 127.0.0.1]
      --table-port PORT     Its port, 0 for any free one [default: 10002]
      --queue-host HOST     Address of the Queue service [default: 127.0.0.1]
      --queue-port PORT     Its port, 0 for any free one [default: 10001]
      --blob-host HOST      Address of the Blob service [default: 127.0.0.1]
      --blob-port PORT      Its port, 0 for any free one [default: 10000]
      --contents PLACE      Keep the contents of blobs elsewhere than in the data directory: s3://BUCKET/PREFIX,
                            gs://BUCKET/PREFIX or azure://ACCOUNT/CONTAINER/PREFIX, with ?endpoint=URL and
                            ?region=NAME where it needs them; credentials come from the environment.
                            With --engine, the Blob service needs it
      --blob-versions       Keep what writes and deletions of blobs replace, as versions
      --container-retention DAYS
                            Deleted containers can be restored for so many days [default: not at all]
      --rehydrate-after SECONDS
                            Blobs leave the archive so many seconds after they were asked to [default: never]
      --copy-from ADDRESS   Allow copies from this server, as http://HOST:PORT or https://*.DOMAIN (may be
                            repeated) [default: only from this server]
      --host-suffix SUFFIX  Serve http://ACCOUNT.SUFFIX too (may be repeated)
      --profile NAME        emulator (for developers; the default) or server (for everybody else)
      --config FILE         Read settings from a TOML file; flags and environment win over it
      --cert FILE           Serve HTTPS with this certificate: PEM with --key, or PFX with --pwd
      --key FILE            The certificate's key (PEM)
      --pwd PASSWORD        The password of the PFX file
      --https               Serve HTTPS with a certificate of a local authority, made in the data directory
      --oauth basic         Accept bearer tokens without checking who signed them (emulator profile, loopback)
      --behind-tls-proxy    In the server profile: a proxy in front terminates TLS
      --allow-well-known-key
                            Accept the emulator's published key on an address that others can reach
      --admin-host HOST     Address of the admin port: explorer, metrics, health [default: 127.0.0.1]
      --admin-port PORT     Its port, 0 for any free one [default: 10003, if nobody else has it]
      --no-admin            Open no admin port
      --log FORMAT          The log on standard error: text or json [default: text]
      --log-level LEVEL     error, warn, info or debug [default: warn]
      --access-log[=1/N]    Log every request, or one in N
      --slow-ms NUMBER      Log requests that take so many milliseconds, with their plan and filter's shape
      --throttle[=partition=N,account=N]
                            Enforce the published scalability targets: 503 ServerBusy above so many entities a
                            second in a partition, or messages in a queue [default: 2000], above a quarter as
                            many requests to a blob, and above so many to an account [default: 20000]
      --fail-on-scan[=TABLES]
                            For tests: answer queries that scan with 400 and what to do about it, in all
                            tables or in those of a list
      --prices FILE         A TOML file with prices, for what a month would cost on the real service
  -s, --silent              Print nothing but the lines that say where the services listen, and errors
  -h, --help                Print this help
  -V, --version             Print the version

Options of account (a running server notices within a second):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --engine URL          Or the engine of several servers; or LAZULITE_ENGINE, or --config FILE. Accounts there are
                            sealed with the key in LAZULITE_ACCOUNTS_KEY, the same for all servers
      --key 1|2             rotate: which key [default: 1]
      --with-data           add: take over what the store has under this name; without it, that is a reason
                            to refuse. After remove, purge deletes them

Options of sas (prints the token; what it grants is said on standard error):
      --account NAME        Whose first key signs: from LAZULITE_ACCOUNTS, the data directory (-l) or engine
                            (--engine, --config), or the emulator's [default: devstoreaccount1]
      --table NAME          A service SAS for this table
      --queue NAME          A service SAS for this queue
      --container NAME      A service SAS for this container; without any of the three an account SAS
      --blob NAME           For one blob of the container
      --permissions LETTERS raud for a table, raup for a queue, racwdxyltfi for a container or blob,
                            rwdxylacuptfi for an account
      --expiry TIME         As 2030-01-01T00:00:00Z
      --start TIME, --ip ADDRESS[-ADDRESS], --protocol https|https,http, --sas-version DATE
      --policy ID (with --table, --queue or --container)
      --start-pk KEY, --start-rk KEY, --end-pk KEY, --end-rk KEY (with --table)
      --services LETTERS [default: tqb], --resource-types LETTERS [default: sco] (for an account)

Options of backup, restore and check (all work while a server runs on the directory, or without one):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --engine URL          Or the engine of several servers; or LAZULITE_ENGINE, or --config FILE
      --rate MIB            backup: read at most so many MiB a second, 0 for any number [default: 50]
      --table NAME          restore: only this table, into a store
      --queue NAME          restore: only this queue
      --container NAME      restore: only this container of blobs; without any of them all, into an empty directory
      --as NEWNAME          restore: give the table, queue or container this name
      --account NAME        restore: whose table, queue or container, when accounts share the name
      --contents PLACE      restore: of everything, put the contents of blobs there; needed with --engine
      --backup FILE         check: look at this backup file instead of a store
Exit codes: 0 done and sound, 1 could not be done, 2 damage found (check).

Options of move (copies a store that nobody uses, and its accounts; an interrupted move goes on when it is repeated):
      --from STORE          A data directory, the URL of an engine, or the word 'engine' for the one that LAZULITE_ENGINE
                            or the configuration file names
      --to STORE            The same; must be empty
      --config FILE         The configuration file
'engine schema' prints the statements that create what servers need in PostgreSQL, for those who run them themselves.

Options of bench (measures any http endpoint, in a table or queue of its own that it deletes at the end):
      --connection-string TEXT
                            What to measure, as SDKs are told; or --url, and --account and --key
                            [default: the emulator's account at http://127.0.0.1:10002, queues at 10001]
      --workload NAME       May be repeated: read, read-miss, insert, upsert, merge, hot-merge, batch, page,
                            any-of, filter, scan, mix; of queues put-message, take (one message, and delete
                            it), take-32, peek [default: a few for tables]
      --connections N       Connections that are kept busy [default: 16]
      --seconds S           Length of each measurement, after a warm-up of a fifth of it [default: 5]
      --rate R              Send so many requests a second, whatever the server does; latency counts from when
                            a request was due [default: the next request follows an answer]
      --entities N          Entities in the table, or messages in the queue, before it is measured
                            [default: 10000]

Options of advise (what a running server has learnt about the design of its tables, and what to change):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --url URL             The server's admin port instead [default, without a directory: http://127.0.0.1:10003]
      --token TOKEN         The token of the admin port, if it needs one
      --json                Print the findings as JSON

The spellings --tableHost, --tablePort, --inMemoryPersistence and so on work too.

Accounts come from the environment variable LAZULITE_ACCOUNTS (or AZURITE_ACCOUNTS), as
name:key1[:key2];name:key1[:key2];... with keys in Base64, from the configuration file, and from
'lazulite account add'. Without the first two, the emulator profile has devstoreaccount1 with the
key that every Azure emulator has: it protects nothing.
";
