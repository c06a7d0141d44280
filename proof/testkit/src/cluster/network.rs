//! Where the parts of a cluster listen, and how a node is cut off.
//!
//! On the loopback address every part has a free port. With namespaces there are two networks, one among the nodes
//! and etcd, one between clients and nodes, so that a node that is cut off from the others still answers clients:
//! that is when a leader serves old rows. This program's own namespace is where both networks meet; it vanishes with
//! this program.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::postgres::free_port;

const NODES_BRIDGE: &str = "lznodes";
const CLIENTS_BRIDGE: &str = "lzclients";
const POSTGRES_PORT: u16 = 5432;
const REST_PORT: u16 = 8008;

pub(super) enum Network {
    Loopback {
        postgres: Vec<u16>,
        rest: Vec<u16>,
        etcd: u16,
        etcd_peer: u16,
    },
    /// By node: a process that keeps its namespace. It ends when its input ends.
    Namespaces(Vec<Child>),
}

impl Network {
    pub fn loopback(node_count: usize) -> Result<Network, String> {
        let ports = || (0..node_count).map(|_| free_port()).collect::<Result<Vec<u16>, String>>();
        Ok(Network::Loopback {
            postgres: ports()?,
            rest: ports()?,
            etcd: free_port()?,
            etcd_peer: free_port()?,
        })
    }

    pub fn namespaces(node_count: usize) -> Result<Network, String> {
        ip("link set lo up")?;
        for (bridge, host) in [(NODES_BRIDGE, nodes_ip(0)), (CLIENTS_BRIDGE, clients_ip(0))] {
            // Left over from an earlier cluster of this program.
            let _ = ip(&format!("link del {bridge}"));
            ip(&format!("link add {bridge} type bridge"))?;
            ip(&format!("addr add {host}/24 dev {bridge}"))?;
            ip(&format!("link set {bridge} up"))?;
        }
        let mut keepers = Vec::new();
        for node in 0..node_count {
            let keeper = namespace()?;
            let id = keeper.id();
            keepers.push(keeper);
            inside(id, "link set lo up")?;
            let networks =
                [('n', NODES_BRIDGE, nodes_ip(node + 1)), ('c', CLIENTS_BRIDGE, clients_ip(node + 1))];
            for (kind, bridge, address) in networks {
                let (outer, inner) = (format!("lz{kind}{node}"), format!("lz{kind}{node}p"));
                ip(&format!("link add {outer} type veth peer name {inner}"))?;
                ip(&format!("link set {inner} netns {id}"))?;
                ip(&format!("link set {outer} master {bridge}"))?;
                ip(&format!("link set {outer} up"))?;
                inside(id, &format!("addr add {address}/24 dev {inner}"))?;
                inside(id, &format!("link set {inner} up"))?;
            }
        }
        Ok(Network::Namespaces(keepers))
    }

    pub fn can_cut_off(&self) -> bool {
        matches!(self, Network::Namespaces(_))
    }

    /// Takes the node's end out of the network of the nodes: what it sends goes nowhere, and nobody tells it.
    pub fn cut_off(&self, node: usize) -> Result<(), String> {
        match self {
            Network::Loopback { .. } => Err("on the loopback address no node can be cut off".to_owned()),
            Network::Namespaces(_) => ip(&format!("link set lzn{node} nomaster")),
        }
    }

    pub fn join(&self, node: usize) -> Result<(), String> {
        match self {
            Network::Loopback { .. } => Ok(()),
            Network::Namespaces(_) => ip(&format!("link set lzn{node} master {NODES_BRIDGE}")),
        }
    }

    /// As clients reach it.
    pub fn postgres(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { postgres, .. } => loopback(postgres[node]),
            Network::Namespaces(_) => SocketAddr::new(clients_ip(node + 1), POSTGRES_PORT),
        }
    }

    pub fn rest(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { rest, .. } => loopback(rest[node]),
            Network::Namespaces(_) => SocketAddr::new(clients_ip(node + 1), REST_PORT),
        }
    }

    pub fn postgres_for_peers(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { .. } => self.postgres(node),
            Network::Namespaces(_) => SocketAddr::new(nodes_ip(node + 1), POSTGRES_PORT),
        }
    }

    pub fn rest_for_peers(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { .. } => self.rest(node),
            Network::Namespaces(_) => SocketAddr::new(nodes_ip(node + 1), REST_PORT),
        }
    }

    pub fn postgres_listens(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { .. } => self.postgres(node),
            Network::Namespaces(_) => everywhere(POSTGRES_PORT),
        }
    }

    pub fn rest_listens(&self, node: usize) -> SocketAddr {
        match self {
            Network::Loopback { .. } => self.rest(node),
            Network::Namespaces(_) => everywhere(REST_PORT),
        }
    }

    pub fn etcd(&self) -> SocketAddr {
        match self {
            Network::Loopback { etcd, .. } => loopback(*etcd),
            Network::Namespaces(_) => SocketAddr::new(nodes_ip(0), 2379),
        }
    }

    pub fn etcd_peer(&self) -> SocketAddr {
        match self {
            Network::Loopback { etcd_peer, .. } => loopback(*etcd_peer),
            Network::Namespaces(_) => loopback(2380),
        }
    }

    /// A command that runs on a node, as the unprivileged user.
    pub fn command(&self, node: usize, program: &Path, owner: Option<(u32, u32)>) -> Command {
        match self {
            Network::Loopback { .. } => self.command_of_hub(program, owner),
            Network::Namespaces(keepers) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/proc/{}/ns/net", keepers[node].id()));
                command.args(as_user(program, owner));
                plain(&mut command);
                command
            }
        }
    }

    /// The same where etcd runs.
    pub fn command_of_hub(&self, program: &Path, owner: Option<(u32, u32)>) -> Command {
        let words = as_user(program, owner);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        plain(&mut command);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let Network::Namespaces(keepers) = self else { return };
        for keeper in keepers {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

/// What runs a program as the unprivileged user. It comes before others on a busy machine: an agent that waits for its turn
/// would give up the lead without any fault.
fn as_user(program: &Path, owner: Option<(u32, u32)>) -> Vec<OsString> {
    let mut words = Vec::new();
    if let Some((user, group)) = owner {
        words.extend(["nice", "--adjustment=-5", "setpriv", "--clear-groups"].map(OsString::from));
        words.extend([format!("--reuid={user}"), format!("--regid={group}")].map(OsString::from));
    }
    words.push(program.into());
    words
}

/// The settings of this process's user are none of the cluster's business.
fn plain(command: &mut Command) {
    command.current_dir("/").env_remove("PGOPTIONS").env("LC_ALL", "C").env("HOME", "/tmp");
    command.env("no_proxy", "*").env("NO_PROXY", "*").process_group(0);
}

/// A process in a network namespace of its own, which it keeps until its input ends.
fn namespace() -> Result<Child, String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo ready; read -r _"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("unshare does not start: {error}"))?;
    let mut line = String::new();
    let stdout = child.stdout.take().ok_or("standard output is piped")?;
    let read = BufReader::new(stdout).read_line(&mut line);
    match read.is_ok() && line.trim() == "ready" {
        true => Ok(child),
        false => Err("this user may not make network namespaces".to_owned()),
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    run(Command::new("ip").args(arguments.split(' ')), arguments)
}

fn inside(keeper: u32, arguments: &str) -> Result<(), String> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{keeper}/ns/net")).arg("ip").args(arguments.split(' '));
    run(&mut command, arguments)
}

fn run(command: &mut Command, arguments: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("ip does not start: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
}

/// 0 is this program's end.
fn nodes_ip(number: usize) -> IpAddr {
    address(1, number)
}

fn clients_ip(number: usize) -> IpAddr {
    address(2, number)
}

fn address(network: u8, number: usize) -> IpAddr {
    let last = u8::try_from(10 + number).unwrap_or(u8::MAX);
    IpAddr::from(Ipv4Addr::new(10, 77, network, last))
}
