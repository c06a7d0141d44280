//! `scale-out`: two front ends on a cluster of three PostgreSQL nodes, under load, while nodes, agents, front ends
//! and etcd die, freeze and are cut off.
//!
//! A ledger knows every acknowledged write: entities, batches, tables (`writer.rs`), messages (`messages.rs`). After
//! each fault everything is read through both front ends and compared. Meanwhile concurrent histories are checked for
//! linearizability (`linear.rs`), so no read may be older than what was acknowledged before it began. `faults.rs` has
//! the faults, `ground.rs` what all clients share, `front_ends.rs` the servers.

mod faults;
mod front_ends;
mod ground;
mod linear;
mod messages;
mod writer;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;

use fastrand::Rng;
use lexopt::Parser;
use testkit::cluster::{Cluster, Place, Reads};
use testkit::{Request, Stopwatch};

use self::faults::{FAULTS, Fault};
use self::front_ends::FrontEnds;
use self::ground::{Client, FRONT_END_COUNT, Ground, Outages, Reply, seconds};
use self::linear::Histories;
use self::messages::Messages;
use self::writer::Writer;
use crate::Error;
use crate::options::{self, Value};
use crate::summary;

const HELP: &str = "\
two front ends on three PostgreSQL nodes under Patroni, while parts of them die, freeze and are cut off

  --server PATH      The server's binary
  --only FAULTS      Only these, with commas between: leader-killed, leader-frozen, leader-cut-off, agent-frozen,
                     standby-killed, standbys-frozen, front-end-killed, etcd-restarted
  --rounds N         How often each of them comes [default: 10 for leader-killed, 1 for the others]
  --reads WORD       How front ends prove that a read is not old: lease (the leader's key in etcd) or barrier (a
                     commit that a standby confirms) [default: lease]
  --writers N        How many clients write entities at once [default: 8]
  --seed S           Seed of the requests [default: a new one]";

const WRITER_COUNT: usize = 8;
const PUTTER_COUNT: usize = 2;
const TAKER_COUNT: usize = 2;
/// Set for this program when it has a network namespace of its own.
const OWN_NETWORK: &str = "LAZULITE_TRIAL_NETWORK";

struct Settings {
    server: PathBuf,
    only: String,
    rounds: Option<usize>,
    reads: String,
    writers: usize,
    seed: u64,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        only: String::new(),
        rounds: None,
        reads: "lease".to_owned(),
        writers: WRITER_COUNT,
        seed: fastrand::u64(..),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("only", &mut settings.only),
        ("rounds", &mut settings.rounds),
        ("reads", &mut settings.reads),
        ("writers", &mut settings.writers),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary of the front ends".into());
    }
    let chosen = choose(&settings)?;
    let reads = match settings.reads.as_str() {
        "lease" => Reads::Lease,
        "barrier" => Reads::Barrier,
        other => return Err(format!("--reads is lease or barrier, not {other:?}").into()),
    };
    if let Some(held) = in_own_network()? {
        return Ok(held);
    }
    let place = if std::env::var_os(OWN_NETWORK).is_some() { Place::Namespaces } else { Place::Loopback };
    let watch = Stopwatch::start();
    let cluster = match Cluster::start(place) {
        Ok(cluster) => cluster,
        Err(reason) if reason.contains("not installed") => {
            println!("SKIPPED: {reason}");
            return Ok(true);
        }
        Err(reason) => return Err(reason.into()),
    };
    println!("scale-out: a cluster of three after {:.1} s", watch.elapsed().as_secs_f64());
    Trial::new(&settings, cluster, reads)?.run(&chosen)
}

/// The faults with how often each comes.
fn choose(settings: &Settings) -> Result<Vec<(&'static str, Fault)>, Error> {
    let names: Vec<&str> = settings.only.split(',').filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| !FAULTS.iter().any(|(known, ..)| known == *name)) {
        return Err(format!("there is no fault {unknown:?}; --help lists them").into());
    }
    let chosen = FAULTS.iter().filter(|(name, ..)| names.is_empty() || names.contains(name));
    let repeated = chosen.flat_map(|(name, fault, count, _)| {
        std::iter::repeat_n((*name, *fault), settings.rounds.unwrap_or(*count))
    });
    Ok(repeated.collect())
}

/// Runs this program again in a network namespace of its own, where that is permitted: what it sets up there vanishes
/// with it. `None`: it goes on here.
fn in_own_network() -> Result<Option<bool>, Error> {
    if std::env::var_os(OWN_NETWORK).is_some() {
        return Ok(None);
    }
    let is_permitted =
        Command::new("unshare").args(["--net", "ip", "link", "add", "x", "type", "bridge"]).output();
    if !is_permitted.is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let mut again = Command::new("unshare");
    again.arg("--net").arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(OWN_NETWORK, "1");
    Ok(Some(again.status()?.success()))
}

struct Trial<'a> {
    settings: &'a Settings,
    cluster: Cluster,
    front_ends: FrontEnds,
    ground: Ground,
    writers: Vec<Writer>,
    messages: Messages,
    histories: Histories,
    /// Of each fault, in the order they came.
    outages: Vec<(&'static str, Outages)>,
    random: Rng,
}

impl<'a> Trial<'a> {
    fn new(settings: &'a Settings, cluster: Cluster, reads: Reads) -> Result<Trial<'a>, Error> {
        let mut front_ends = FrontEnds::new(&settings.server, &cluster.front_end_url(reads));
        let ground = Ground::new();
        front_ends.start_all(&ground)?;
        let mut client = Client::new(&ground);
        for table in [writer::TABLE, linear::TABLE] {
            let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
            match client.table(0, &request) {
                Reply::Heard(response) if response.status == 201 => {}
                Reply::Heard(response) => return Err(format!("no table: {response:?}").into()),
                Reply::NotDone | Reply::Unknown => {
                    return Err("no table: the front end does not answer".into());
                }
            }
        }
        messages::create(&mut client)?;
        let writers = (0..settings.writers).map(|number| Writer::new(number, settings.seed)).collect();
        drop(client);
        Ok(Trial {
            settings,
            cluster,
            front_ends,
            ground,
            writers,
            messages: Messages::default(),
            histories: Histories::default(),
            outages: Vec::new(),
            random: Rng::with_seed(settings.seed),
        })
    }

    fn run(mut self, chosen: &[(&'static str, Fault)]) -> Result<bool, Error> {
        println!(
            "scale-out: {} faults, {} writers, reads proven by a {}, seed {}",
            chosen.len(),
            self.writers.len(),
            self.settings.reads,
            self.settings.seed
        );
        let watch = Stopwatch::start();
        let mut broken = Vec::new();
        let mut done = 0;
        for (name, fault) in chosen {
            if let Some(reason) = fault.is_missing(&self.cluster) {
                println!("  {name:<16} SKIPPED: {reason}");
                continue;
            }
            let fault_watch = Stopwatch::start();
            let (unknown, refused) = self.unanswered();
            let outcome = self.under_load(*fault).and_then(|()| self.check());
            let (unknown, refused) = (self.unanswered().0 - unknown, self.unanswered().1 - refused);
            let outages = self.ground.outages();
            println!(
                "  {name:<16} {:>5.1} s; {outages}; {unknown} unknown, {refused} refused",
                fault_watch.elapsed().as_secs_f64(),
            );
            self.outages.push((*name, outages));
            if let Err(what) = outcome {
                broken.push(format!("{name}: {what}"));
                break;
            }
            done += 1;
        }
        if broken.is_empty() {
            broken.extend(self.messages.drain(&self.ground).err());
        }
        broken.extend(self.front_ends.finish().err());
        self.report(done, watch.elapsed(), &broken);
        Ok(summary::verdict("scale-out", &broken))
    }

    fn unanswered(&self) -> (u64, u64) {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.ground.unknown_count), count(&self.ground.refused_count))
    }

    /// The fault happens while all clients work.
    fn under_load(&mut self, fault: Fault) -> Result<(), String> {
        let Trial { ground, writers, messages, histories, random, cluster, front_ends, .. } = self;
        let (ground, messages) = (&*ground, &*messages);
        ground.stopping.store(false, Ordering::SeqCst);
        let happened = std::thread::scope(|scope| {
            for writer in writers.iter_mut() {
                scope.spawn(move || writer.run(ground));
            }
            for seed in std::iter::repeat_with(|| random.u64(..)).take(PUTTER_COUNT) {
                scope.spawn(move || messages.put(ground, seed));
            }
            for seed in std::iter::repeat_with(|| random.u64(..)).take(TAKER_COUNT) {
                scope.spawn(move || messages.take(ground, seed));
            }
            let histories_random = random.fork();
            scope.spawn(move || histories.run(ground, histories_random));
            let happened = fault.happen(ground, cluster, front_ends);
            ground.stopping.store(true, Ordering::SeqCst);
            happened
        });
        match ground.broken().into_iter().next() {
            Some(what) => Err(what),
            None => happened,
        }
    }

    /// Compares everything, through every front end.
    fn check(&mut self) -> Result<(), String> {
        let mut client = Client::new(&self.ground);
        let tables = (0..FRONT_END_COUNT).map(|front_end| writer::list_tables(&mut client, front_end));
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        self.writers.iter_mut().try_for_each(|writer| writer.check(&mut client, &tables))
    }

    /// The shortest, the middle and the longest outage of each fault. Of two front ends, the one that was worse off
    /// counts.
    fn report_outages(&self) {
        for (name, ..) in FAULTS {
            let mine: Vec<Outages> = self
                .outages
                .iter()
                .filter(|(other, _)| *other == name)
                .map(|(_, outages)| *outages)
                .collect();
            if mine.is_empty() {
                continue;
            }
            let spread = |times: fn(&Outages) -> [u64; FRONT_END_COUNT]| {
                let mut worst: Vec<u64> =
                    mine.iter().map(|outages| times(outages).into_iter().max().unwrap_or_default()).collect();
                worst.sort_unstable();
                [worst[0], worst[worst.len() / 2], worst[worst.len() - 1]].map(seconds).join(" / ")
            };
            let (writes, reads) = (spread(|outages| outages.writes), spread(|outages| outages.reads));
            println!(
                "  {name:<16} {:>2} x; least / median / most s without a write {writes}, without a read {reads}",
                mine.len()
            );
        }
    }

    fn report(&mut self, done: usize, took: std::time::Duration, broken: &[String]) {
        summary::head("scale-out", &format!("{done} faults"), took, self.settings.seed);
        let (counts, messages) = (writer::total(&self.writers), self.messages.counts());
        let sizes = self.writers.iter().map(Writer::sizes);
        let (rows, open) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        self.report_outages();
        summary::line(counts.writes, &format!("writes acknowledged, {} of them batches", counts.batches));
        summary::line(counts.tables, "tables created or dropped");
        summary::line(messages.puts, &format!("messages put, {} deleted", messages.deletes));
        summary::line(counts.reads, "reads compared under load");
        summary::line(self.histories.history_count, "histories checked");
        summary::line(self.histories.operation_count, "operations in them");
        summary::line(self.histories.undecided_count, "searches given up");
        summary::line(counts.applied, "requests with an unknown outcome had happened, as a whole");
        summary::line(open, "requests with an unknown outcome had not happened");
        summary::line(messages.drained, "messages left over, all found");
        summary::line(rows, "rows at the end");
        summary::broken(broken);
        if !broken.is_empty() {
            let kept = self.cluster.keep();
            let _ = std::fs::write(kept.join("front-ends.log"), self.front_ends.words());
            println!("Data and logs are kept in {}.", kept.display());
        }
    }
}
