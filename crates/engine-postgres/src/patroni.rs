//! Asks Patroni's agents which of them leads.
//!
//! Promises: an agent that does not answer costs at most [`ANSWER_TIME_MAX`], and what it answers is bounded. An
//! agent that says that it leads proves no lease: Patroni (3.0.2) answers so until `ttl` has passed since its last
//! renewal *ended*, by which time its key may have expired and another may lead. So this finds the leader, and proves
//! nothing (`leadership.rs` does).

use std::time::Duration;

use tokio::task::JoinSet;

use crate::ConnectError;
use crate::http_get;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// How long others may contradict the first who says that it leads.
const OBJECTION_TIME_MAX: Duration = Duration::from_millis(50);

/// One agent for each host of the URL, in the same order.
pub(crate) struct Patroni {
    /// `host:port`
    agents: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PatroniLeader {
    /// The place of the host.
    Host(usize),
    /// Agents answered, and none of them leads.
    Nobody,
    NoAnswer,
}

/// What one agent said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AgentAnswer {
    Leads { timeline: u64 },
    DoesNot,
}

impl Patroni {
    /// `None` without addresses.
    pub(crate) fn new(addresses: &[String], host_count: usize) -> Result<Option<Patroni>, ConnectError> {
        if addresses.is_empty() {
            return Ok(None);
        }
        if addresses.len() != host_count {
            let what = format!(
                "{} addresses of Patroni for {host_count} hosts: give one for each host, in the same order",
                addresses.len()
            );
            return Err(ConnectError::Invalid(what));
        }
        let agents = addresses.iter().map(|address| match http_get::address_and_path(address) {
            Some((agent, "")) => Ok(agent.to_owned()),
            // Not the address itself: it may hold a password.
            _ => Err(ConnectError::Invalid(
                "an address of Patroni is not of the form http://host:port".to_owned(),
            )),
        });
        Ok(Some(Patroni { agents: agents.collect::<Result<_, _>>()? }))
    }

    pub(crate) async fn leader(&self) -> PatroniLeader {
        let mut questions = JoinSet::new();
        for (place, agent) in self.agents.iter().enumerate() {
            let agent = agent.clone();
            questions.spawn(async move {
                let answer = tokio::time::timeout(ANSWER_TIME_MAX, ask(&agent)).await;
                answer.ok().flatten().map(|answer| (place, answer))
            });
        }
        let (mut leader, mut has_answer) = (None, false);
        loop {
            let joined = match leader {
                None => questions.join_next().await,
                Some(_) => {
                    tokio::time::timeout(OBJECTION_TIME_MAX, questions.join_next()).await.ok().flatten()
                }
            };
            match joined {
                Some(Ok(Some((place, AgentAnswer::Leads { timeline })))) => {
                    // The timeline is first, so the later one wins.
                    leader = leader.max(Some((timeline, place)));
                }
                Some(Ok(Some((_, AgentAnswer::DoesNot)))) => has_answer = true,
                Some(_) => {}
                None => break,
            }
        }
        match leader {
            Some((_, place)) => PatroniLeader::Host(place),
            None if has_answer => PatroniLeader::Nobody,
            None => PatroniLeader::NoAnswer,
        }
    }
}

async fn ask(agent: &str) -> Option<AgentAnswer> {
    match http_get::get(agent, "/leader", ANSWER_BYTES_MAX).await? {
        (200, body) => {
            let body: serde_json::Value = serde_json::from_str(&body).ok()?;
            Some(AgentAnswer::Leads { timeline: body["timeline"].as_u64().unwrap_or(0) })
        }
        (503, _) => Some(AgentAnswer::DoesNot),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn addresses_are_checked_and_no_secret_is_said() {
        let check = |addresses: &[&str], host_count| {
            let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
            Patroni::new(&addresses, host_count).map(|patroni| patroni.map(|patroni| patroni.agents))
        };
        assert_eq!(check(&[], 3), Ok(None));
        assert_eq!(check(&["http://a:1/"], 1), Ok(Some(vec!["a:1".to_owned()])));
        for bad in ["https://a:1", "http://a", "http://u:secret@a:1", "http://a:1/x", "http://a:1\r\nX:1"] {
            let message = check(&[bad], 1).unwrap_err().to_string();
            assert!(message.contains("http://host:port") && !message.contains("secret"), "{message}");
        }
        assert!(check(&["http://a:1"], 2).is_err());
    }

    async fn agent(answer: Option<&'static str>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 1024];
                    let _ = stream.read(&mut request).await;
                    match answer {
                        Some(answer) => drop(stream.write_all(answer.as_bytes()).await),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn the_one_that_leads_is_found_whatever_the_others_say() {
        let leads = Some("HTTP/1.0 200 OK\r\n\r\n{\"timeline\":3}");
        let led = Some("HTTP/1.0 200 OK\r\n\r\n{\"timeline\":2}");
        let follows = Some("HTTP/1.0 503 No\r\n\r\n{}");
        let nonsense = Some("HTTP/1.0 200 OK\r\n\r\n<p>");
        for (answers, expected) in [
            (vec![follows, None, leads], PatroniLeader::Host(2)),
            (vec![led, leads, led], PatroniLeader::Host(1)),
            (vec![follows, None], PatroniLeader::Nobody),
            (vec![None, nonsense], PatroniLeader::NoAnswer),
        ] {
            let mut agents = Vec::new();
            for answer in answers {
                agents.push(agent(answer).await);
            }
            assert_eq!(Patroni { agents }.leader().await, expected);
        }
    }
}
