//! Three PostgreSQL nodes under Patroni, with etcd: a real cluster that fails over, and the faults to make it do so.
//!
//! Promises: an unprivileged user runs it from a temporary directory, `fsync` stays on, every commit waits for a
//! standby (`synchronous_mode_strict`), and everything ends with its [`Cluster`], even when the test program is
//! killed. Where a program is missing, [`Cluster::start`] says so in one sentence, and the caller skips its tests by
//! name. `settings.rs` writes what the programs read, `network.rs` knows the addresses, `processes.rs` finds and
//! stops processes. Leaves to others: what is in the database.
//!
//! Patroni uses etcd's version 2 interface. Debian's Patroni 3.0.2 loses acknowledged writes over version 3: a leader
//! that was frozen and goes on takes the lead back.

mod network;
mod processes;
mod settings;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use self::network::Network;
use self::settings::NodeSettings;
use crate::postgres::{last_lines, programs, unprivileged_user};
use crate::time::Stopwatch;

pub const NODE_COUNT: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
pub(crate) const USER: &str = "postgres";
/// In no message of the product, which tests look for.
pub(crate) const PASSWORD: &str = "a-secret-of-the-tests";

/// How the nodes reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All on the loopback address, on free ports. No node can be cut off.
    Loopback,
    /// Each node in a network namespace of its own. This program must be in one of its own already, and be root.
    Namespaces,
}

/// How front ends prove that what they read is not old.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// Each read waits for a commit that a standby confirms.
    Barrier,
    /// The leader's key in etcd proves it for some seconds.
    Lease,
}

/// A running cluster. Dropping it ends it.
pub struct Cluster {
    nodes: Vec<Node>,
    etcd: Etcd,
    network: Network,
    owner: Option<(u32, u32)>,
    programs: PathBuf,
    patroni: PathBuf,
    /// Ends every process when its input ends, which comes with the end of this process at the latest.
    keeper: Child,
    directory: TempDir,
}

struct Node {
    /// Its Patroni agent, unless it was killed.
    agent: Option<Child>,
    directory: PathBuf,
    is_frozen: bool,
    is_cut_off: bool,
}

struct Etcd {
    child: Option<Child>,
    program: PathBuf,
}

/// A member as Patroni tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub node: usize,
    /// `leader`, `sync_standby`, `replica`.
    pub role: String,
    pub is_running: bool,
}

impl Cluster {
    /// Starts one, and waits until all nodes follow a leader. `Err` says in one sentence why there is none.
    pub fn start(place: Place) -> Result<Cluster, String> {
        Cluster::start_with(place, &[])
    }

    /// The same, with these settings of PostgreSQL: `("shared_buffers", "1GB")`.
    pub fn start_with(place: Place, parameters: &[(&str, &str)]) -> Result<Cluster, String> {
        let programs = programs()?;
        let patroni = program("patroni", "LAZULITE_PATRONI")?;
        let etcd = program("etcd", "LAZULITE_ETCD")?;
        let owner = unprivileged_user()?;
        let directory = TempDir::with_prefix("lazulite-cluster-")
            .map_err(|error| format!("no temporary directory: {error}"))?;
        give_away(directory.path(), owner)?;
        let mut nodes = Vec::new();
        for node in 0..NODE_COUNT {
            let place = directory.path().join(format!("n{node}"));
            fs::create_dir(&place).map_err(|error| format!("no directory for a node: {error}"))?;
            give_away(&place, owner)?;
            nodes.push(Node { agent: None, directory: place, is_frozen: false, is_cut_off: false });
        }
        let network = match place {
            Place::Loopback => Network::loopback(NODE_COUNT)?,
            Place::Namespaces => Network::namespaces(NODE_COUNT)?,
        };
        let keeper = processes::keeper(directory.path(), NODE_COUNT)?;
        let etcd = Etcd { child: None, program: etcd };
        let mut cluster = Cluster { nodes, etcd, network, owner, programs, patroni, keeper, directory };
        cluster.start_etcd()?;
        for node in 0..NODE_COUNT {
            cluster.write_settings(node, parameters)?;
            cluster.revive(node)?;
        }
        cluster.wait_until_whole(START_TIMEOUT)?;
        Ok(cluster)
    }

    /// All nodes in one URL, with the name and the password of the superuser.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = (0..NODE_COUNT).map(|node| self.addr(node).to_string()).collect();
        format!("postgres://{USER}:{PASSWORD}@{}/postgres", hosts.join(","))
    }

    /// The same for a front end, with Patroni's addresses, which tell it who leads.
    pub fn front_end_url(&self, reads: Reads) -> String {
        let agents: Vec<String> = self.rest_addrs().iter().map(|addr| format!("http://{addr}")).collect();
        let url = format!("{}?patroni={}", self.url(), agents.join(","));
        match reads {
            Reads::Barrier => url,
            Reads::Lease => {
                format!("{url}&etcd=http://{}{}", self.etcd_addr(), self.keys_path())
            }
        }
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Where clients reach PostgreSQL on this node.
    pub fn addr(&self, node: usize) -> SocketAddr {
        self.network.postgres(node)
    }

    /// Where clients reach Patroni's REST interface, by node.
    pub fn rest_addrs(&self) -> Vec<SocketAddr> {
        (0..NODE_COUNT).map(|node| self.network.rest(node)).collect()
    }

    /// Where etcd answers clients.
    pub fn etcd_addr(&self) -> SocketAddr {
        self.network.etcd()
    }

    /// Where in etcd the cluster's keys are.
    pub fn keys_path(&self) -> String {
        format!("/{}/{}", settings::NAMESPACE, settings::SCOPE)
    }

    pub fn can_cut_off(&self) -> bool {
        self.network.can_cut_off()
    }

    /// The members, as the first node that answers tells them. Empty if none does.
    pub fn members(&self) -> Vec<Member> {
        let running = (0..NODE_COUNT).filter(|node| self.is_awake(*node));
        let mut told = running.map(|node| members_told_by(self.network.rest(node)));
        told.find(|members| !members.is_empty()).unwrap_or_default()
    }

    /// The node that holds the leader's key.
    pub fn leader(&self) -> Option<usize> {
        self.members().iter().find(|member| is_leader(&member.role)).map(|member| member.node)
    }

    /// Waits until there is a leader that is none of these nodes.
    pub fn wait_for_leader(&self, except: &[usize], timeout: Duration) -> Result<usize, String> {
        let watch = Stopwatch::start();
        while watch.elapsed() < timeout {
            if let Some(leader) = self.leader().filter(|leader| !except.contains(leader)) {
                return Ok(leader);
            }
            sleep(POLL_INTERVAL);
        }
        Err(format!("no new leader within {timeout:?}; {}", self.last_words()))
    }

    /// Waits until every node runs, one leads, and one of the others is a synchronous standby.
    pub fn wait_until_whole(&self, timeout: Duration) -> Result<(), String> {
        let watch = Stopwatch::start();
        while watch.elapsed() < timeout {
            let members = self.members();
            let has = |role: fn(&str) -> bool| members.iter().any(|member| role(&member.role));
            let all_run = members.len() == NODE_COUNT && members.iter().all(|member| member.is_running);
            if all_run && has(is_leader) && has(|role| role == "sync_standby") {
                return Ok(());
            }
            sleep(POLL_INTERVAL);
        }
        Err(format!("not whole within {timeout:?}: {:?}; {}", self.members(), self.last_words()))
    }

    /// `kill -9` of everything on a node at once: PostgreSQL with its children, and the agent.
    pub fn kill(&mut self, node: usize) {
        let agent = self.nodes[node].agent.take();
        processes::kill(&self.processes(node, agent.as_ref()));
        // Its number may soon be another's.
        let _ = fs::remove_file(self.nodes[node].directory.join("pid"));
        if let Some(mut agent) = agent {
            let _ = agent.wait();
        }
        self.nodes[node].is_frozen = false;
    }

    /// Starts a node's agent, which starts PostgreSQL.
    pub fn revive(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].agent.is_some() {
            return Ok(());
        }
        let place = self.nodes[node].directory.clone();
        let mut command = self.network.command(node, &self.patroni, self.owner);
        command.arg(place.join("patroni.json"));
        let agent = self.spawn(command, &place)?;
        self.nodes[node].agent = Some(agent);
        Ok(())
    }

    /// Makes a node anew from the leader, as an operator does with one that cannot follow any more (`patronictl reinit`).
    pub fn rebuild(&mut self, node: usize) -> Result<(), String> {
        self.kill(node);
        fs::remove_dir_all(self.nodes[node].directory.join("data"))
            .map_err(|error| format!("the data of node {node} stays: {error}"))?;
        self.revive(node)
    }

    /// Stops every process of a node where it stands. Its connections stay open and say nothing.
    pub fn freeze(&mut self, node: usize) {
        // Whoever could start further processes comes first.
        for _ in 0..2 {
            processes::signal("STOP", &self.processes(node, self.nodes[node].agent.as_ref()));
        }
        self.nodes[node].is_frozen = true;
    }

    /// Stops the agent alone: PostgreSQL goes on, and nobody tells it that it no longer leads.
    pub fn freeze_agent(&mut self, node: usize) {
        let agent = self.nodes[node].agent.as_ref().map(Child::id);
        processes::signal("STOP", &agent.map(processes::with_descendants).unwrap_or_default());
        self.nodes[node].is_frozen = true;
    }

    /// Lets a frozen node, or its agent, go on.
    pub fn thaw(&mut self, node: usize) {
        processes::signal("CONT", &self.processes(node, self.nodes[node].agent.as_ref()));
        self.nodes[node].is_frozen = false;
    }

    /// Cuts a node off from the other nodes and from etcd. Front ends still reach it.
    pub fn cut_off(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].is_cut_off = true;
        self.network.cut_off(node)
    }

    pub fn join(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].is_cut_off = false;
        self.network.join(node)
    }

    /// Kills etcd and starts it again with what it had stored.
    pub fn restart_etcd(&mut self) -> Result<(), String> {
        if let Some(mut child) = self.etcd.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.start_etcd()
    }

    /// Runs statements on a node as the superuser. Returns the rows as `psql` prints them without decoration.
    pub fn sql(&self, node: usize, statements: &str) -> Result<String, String> {
        let addr = self.addr(node);
        let output = Command::new(self.programs.join("psql"))
            .env("PGPASSWORD", PASSWORD)
            .env("PGCONNECT_TIMEOUT", "3")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", "postgres"])
            .args(["-h", &addr.ip().to_string(), "-p", &addr.port().to_string(), "-c", statements])
            .output()
            .map_err(|error| format!("psql does not start: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Everything that PostgreSQL and the agent of a node have logged.
    pub fn log(&self, node: usize) -> String {
        let bytes = fs::read(self.nodes[node].directory.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Keeps the directory, with data and logs, and returns where it is.
    pub fn keep(&mut self) -> PathBuf {
        self.directory.disable_cleanup(true);
        self.directory.path().to_owned()
    }

    /// Whether it knows what the others know.
    fn is_awake(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.agent.is_some() && !node.is_frozen && !node.is_cut_off
    }

    fn processes(&self, node: usize, agent: Option<&Child>) -> Vec<u32> {
        let postmaster = processes::postmaster(&self.nodes[node].directory.join("data"));
        let roots = agent.map(Child::id).into_iter().chain(postmaster);
        roots.flat_map(processes::with_descendants).collect()
    }

    fn start_etcd(&mut self) -> Result<(), String> {
        let place = self.directory.path().join("etcd");
        let mut command = self.network.command_of_hub(&self.etcd.program, self.owner);
        command.args(settings::etcd_arguments(
            &place.join("data"),
            self.network.etcd(),
            self.network.etcd_peer(),
        ));
        fs::create_dir_all(&place).map_err(|error| format!("no directory for etcd: {error}"))?;
        give_away(&place, self.owner)?;
        self.etcd.child = Some(self.spawn(command, &place)?);
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIMEOUT {
            if get(self.network.etcd(), "/health").is_some_and(|body| body.contains("true")) {
                return Ok(());
            }
            sleep(POLL_INTERVAL);
        }
        Err(format!("etcd did not start: {}", last_lines(&place.join("log"))))
    }

    fn write_settings(&self, node: usize, parameters: &[(&str, &str)]) -> Result<(), String> {
        let place = &self.nodes[node].directory;
        let settings = NodeSettings {
            node,
            directory: place,
            programs: &self.programs,
            etcd: self.network.etcd(),
            postgres_listens: self.network.postgres_listens(node),
            postgres_for_peers: self.network.postgres_for_peers(node),
            rest_listens: self.network.rest_listens(node),
            rest_for_peers: self.network.rest_for_peers(node),
            parameters,
        };
        let file = place.join("patroni.json");
        fs::write(&file, settings.text()).map_err(|error| format!("the settings of a node: {error}"))?;
        give_away(&file, self.owner)
    }

    /// Spawns a process whose log and number are in this directory.
    fn spawn(&self, mut command: Command, place: &Path) -> Result<Child, String> {
        let open = || fs::File::options().create(true).append(true).open(place.join("log"));
        let log = open().and_then(|log| Ok((log.try_clone()?, log)));
        let (log, error_log) = log.map_err(|error| format!("a log: {error}"))?;
        command.stdin(Stdio::null()).stdout(log).stderr(error_log);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
        fs::write(place.join("pid"), child.id().to_string())
            .map_err(|error| format!("the number of a process: {error}"))?;
        Ok(child)
    }

    fn last_words(&self) -> String {
        let log = |node: usize| last_lines(&self.nodes[node].directory.join("log"));
        (0..NODE_COUNT).map(|node| format!("\nnode {node}: {}", log(node))).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The same road as when this process is killed.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        let agents = self.nodes.iter_mut().filter_map(|node| node.agent.take());
        for mut child in agents.chain(self.etcd.child.take()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program by the variable that names it, or by its name in PATH.
fn program(name: &str, variable: &str) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(PathBuf::from(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|file| file.is_file()).ok_or_else(|| {
        format!(
            "{name} is not installed (Debian: apt-get install postgresql patroni etcd-server python3-etcd)"
        )
    })
}

fn give_away(path: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    let Some((user, group)) = owner else { return Ok(()) };
    chown(path, Some(user), Some(group))
        .map_err(|error| format!("{} cannot be given away: {error}", path.display()))
}

/// Older versions say `master`.
fn is_leader(role: &str) -> bool {
    role == "leader" || role == "master"
}

fn members_told_by(rest: SocketAddr) -> Vec<Member> {
    let Some(body) = get(rest, "/cluster") else { return Vec::new() };
    let told: Value = serde_json::from_str(&body).unwrap_or_default();
    let members = told["members"].as_array().cloned().unwrap_or_default();
    let text = |member: &Value, name: &str| member[name].as_str().unwrap_or_default().to_owned();
    let member = |member: Value| {
        Some(Member {
            node: text(&member, "name").strip_prefix(settings::NODE_PREFIX)?.parse().ok()?,
            role: text(&member, "role"),
            is_running: ["running", "streaming"].contains(&text(&member, "state").as_str()),
        })
    };
    members.into_iter().filter_map(member).collect()
}

/// The body of an answer with status 200.
fn get(addr: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&addr, ASK_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(ASK_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(ASK_TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.lines().next()?.contains(" 200 ").then(|| body.to_owned())
}
