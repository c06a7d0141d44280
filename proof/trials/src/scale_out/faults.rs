//! The faults of the trial, one after another, each under load: what is broken, for how long, and how it is mended.
//!
//! An error is a broken promise: writes that are not acknowledged again, or a cluster that does not become whole.

use std::time::Duration;

use testkit::cluster::{Cluster, NODE_COUNT};

use super::front_ends::FrontEnds;
use super::ground::{FRONT_END_COUNT, Ground};

/// How long a node is frozen or cut off: longer than a leader may be silent.
const FROZEN: Duration = Duration::from_secs(15);
/// Longer than a front end waits for a statement. By then it looks for another leader, while PostgreSQL on the old
/// one still answers those that do not.
const AGENT_FROZEN: Duration = Duration::from_secs(40);
const NEW_LEADER_WITHIN: Duration = Duration::from_secs(60);
const WRITES_WITHIN: Duration = Duration::from_secs(60);
const FOLLOWS_WITHIN: Duration = Duration::from_secs(60);
const WHOLE_WITHIN: Duration = Duration::from_secs(180);
/// A while of load before and after each fault.
const CALM: Duration = Duration::from_secs(2);
/// What PostgreSQL logs when somebody stops waiting for a standby, or cancels a statement.
const CANCELLED: [&str; 2] =
    ["canceling wait for synchronous replication", "canceling statement due to user request"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    LeaderKilled,
    LeaderFrozen,
    LeaderCutOff,
    AgentFrozen,
    StandbyKilled,
    StandbysFrozen,
    FrontEndKilled,
    EtcdRestarted,
}

/// Name, fault, how often it comes by default, and what happens.
pub const FAULTS: [(&str, Fault, usize, &str); 8] = [
    ("leader-killed", Fault::LeaderKilled, 10, "kill -9 of the leader's node"),
    ("leader-frozen", Fault::LeaderFrozen, 1, "the leader's node frozen for 15 s, then thawed"),
    (
        "leader-cut-off",
        Fault::LeaderCutOff,
        1,
        "the leader cut off from the other nodes, not from front ends",
    ),
    ("agent-frozen", Fault::AgentFrozen, 1, "the leader's Patroni agent alone frozen for 40 s"),
    ("standby-killed", Fault::StandbyKilled, 1, "kill -9 of the synchronous standby's node"),
    ("standbys-frozen", Fault::StandbysFrozen, 1, "both standbys frozen for 15 s"),
    ("front-end-killed", Fault::FrontEndKilled, 1, "kill -9 of a front end"),
    ("etcd-restarted", Fault::EtcdRestarted, 1, "etcd killed and started again"),
];

impl Fault {
    /// Why it cannot happen here, if it cannot.
    pub fn is_missing(self, cluster: &Cluster) -> Option<&'static str> {
        let needs_network = self == Fault::LeaderCutOff && !cluster.can_cut_off();
        needs_network.then_some("this user may not make network namespaces")
    }

    /// Breaks and mends, while others write.
    pub fn happen(
        self,
        ground: &Ground,
        cluster: &mut Cluster,
        front_ends: &mut FrontEnds,
    ) -> Result<(), String> {
        ground.wait_for_writes(WRITES_WITHIN)?;
        std::thread::sleep(CALM);
        ground.begin_outages();
        let leader = cluster.leader().ok_or("there is no leader before the fault")?;
        match self {
            Fault::LeaderKilled => {
                cluster.kill(leader);
                cluster.wait_for_leader(&[leader], NEW_LEADER_WITHIN)?;
                ground.wait_for_writes(WRITES_WITHIN)?;
                cluster.revive(leader)?;
            }
            Fault::LeaderFrozen => {
                cluster.freeze(leader);
                std::thread::sleep(FROZEN);
                cluster.wait_for_leader(&[leader], NEW_LEADER_WITHIN)?;
                cluster.thaw(leader);
            }
            Fault::AgentFrozen => {
                cluster.freeze_agent(leader);
                std::thread::sleep(AGENT_FROZEN);
                cluster.wait_for_leader(&[leader], NEW_LEADER_WITHIN)?;
                cluster.thaw(leader);
            }
            Fault::LeaderCutOff => {
                cluster.cut_off(leader)?;
                std::thread::sleep(FROZEN);
                cluster.wait_for_leader(&[leader], NEW_LEADER_WITHIN)?;
                cluster.join(leader)?;
            }
            Fault::StandbyKilled => {
                let members = cluster.members();
                let standby = members.iter().find(|member| member.role == "sync_standby");
                let standby = standby.map_or((leader + 1) % NODE_COUNT, |member| member.node);
                cluster.kill(standby);
                ground.wait_for_writes(WRITES_WITHIN)?;
                cluster.revive(standby)?;
            }
            Fault::StandbysFrozen => standbys_frozen(ground, cluster, leader)?,
            Fault::FrontEndKilled => {
                let victim = fastrand::usize(..FRONT_END_COUNT);
                front_ends.kill(victim)?;
                std::thread::sleep(CALM);
                front_ends.start(victim, ground)?;
            }
            Fault::EtcdRestarted => cluster.restart_etcd()?,
        }
        ground.wait_for_writes(WRITES_WITHIN)?;
        wait_until_whole(cluster)?;
        std::thread::sleep(CALM);
        ground.wait_for_writes(WRITES_WITHIN)
    }
}

/// A node that does not follow by itself is made anew. Patroni 3.0.2 does not rewind a PostgreSQL that was ahead of the new
/// leader and has not come up yet. Nothing rests on such a node: others lead and confirm meanwhile.
fn wait_until_whole(cluster: &mut Cluster) -> Result<(), String> {
    if cluster.wait_until_whole(FOLLOWS_WITHIN).is_ok() {
        return Ok(());
    }
    let members = cluster.members();
    let stuck = members.iter().filter(|member| member.role == "replica" && !member.is_running);
    for node in stuck.map(|member| member.node) {
        println!("  node {node} does not follow after {FOLLOWS_WITHIN:?}, and is made anew");
        cluster.rebuild(node)?;
    }
    cluster.wait_until_whole(WHOLE_WITHIN)
}

fn standbys_frozen(ground: &Ground, cluster: &mut Cluster, leader: usize) -> Result<(), String> {
    let cancelled = |cluster: &Cluster| -> usize {
        let log = cluster.log(leader);
        CANCELLED.iter().map(|words| log.matches(words).count()).sum()
    };
    let before = cancelled(cluster);
    let standbys: Vec<usize> = (0..NODE_COUNT).filter(|node| *node != leader).collect();
    standbys.iter().for_each(|standby| cluster.freeze(*standby));
    ground.freeze();
    std::thread::sleep(FROZEN);
    ground.thaw();
    standbys.iter().for_each(|standby| cluster.thaw(*standby));
    match cancelled(cluster) - before {
        0 => Ok(()),
        count => Err(format!("{count} writes that waited for a standby were cancelled")),
    }
}
