//! Shared access signatures, built from the published strings-to-sign: account SAS and service SAS for a table,
//! a queue, a container or a blob, in every version. A test can replace any field, even with nonsense.

use crate::sign::{Credentials, signature};
use crate::{Request, percent_encode};

/// A token before it is signed: its fields in the order of the query string.
#[derive(Clone, Debug)]
pub struct Sas {
    /// The queue that a service SAS is for. It is signed, but not in the query string.
    queue: Option<String>,
    /// The same for a container, or for a container and a blob with a slash between them.
    blob: Option<String>,
    fields: Vec<(String, String)>,
}

/// Later than the clock of any test.
pub const FAR_EXPIRY: &str = "2099-01-01T00:00:00Z";

impl Sas {
    /// An account SAS with all permissions, at every level of the Table service.
    pub fn account(version: &str) -> Sas {
        Sas::of(&[("sv", version), ("ss", "t"), ("srt", "sco"), ("sp", "rwdlacu"), ("se", FAR_EXPIRY)])
    }

    /// A service SAS with all permissions on one table.
    pub fn table(version: &str, table: &str) -> Sas {
        Sas::of(&[("sv", version), ("tn", table), ("sp", "raud"), ("se", FAR_EXPIRY)])
    }

    /// An account SAS with all permissions, at every level of the Queue service.
    pub fn queue_account(version: &str) -> Sas {
        Sas::of(&[("sv", version), ("ss", "q"), ("srt", "sco"), ("sp", "rwdlacup"), ("se", FAR_EXPIRY)])
    }

    /// A service SAS with all permissions on one queue.
    pub fn queue(version: &str, queue: &str) -> Sas {
        let sas = Sas::of(&[("sv", version), ("sp", "raup"), ("se", FAR_EXPIRY)]);
        Sas { queue: Some(queue.to_owned()), ..sas }
    }

    /// An account SAS with all permissions, at every level of the Blob service.
    pub fn blob_account(version: &str) -> Sas {
        Sas::of(&[("sv", version), ("ss", "b"), ("srt", "sco"), ("sp", "rwdxylacuptfi"), ("se", FAR_EXPIRY)])
    }

    /// A service SAS with all permissions on one container and its blobs.
    pub fn container(version: &str, container: &str) -> Sas {
        let sas = Sas::of(&[("sv", version), ("sr", "c"), ("sp", "racwdxyltfi"), ("se", FAR_EXPIRY)]);
        Sas { blob: Some(container.to_owned()), ..sas }
    }

    /// A service SAS with all permissions on one blob.
    pub fn blob(version: &str, container: &str, blob: &str) -> Sas {
        let sas = Sas::of(&[("sv", version), ("sr", "b"), ("sp", "racwdxyti"), ("se", FAR_EXPIRY)]);
        Sas { blob: Some(format!("{container}/{blob}")), ..sas }
    }

    /// The lines of a service SAS for blobs between the version and the end.
    fn blob_lines(&self) -> Vec<String> {
        let version = self.get("sv");
        let mut names: Vec<&str> = Vec::new();
        if version >= "2018-11-09" {
            let moment = match self.get("sr") {
                "bs" => "snapshot",
                "bv" => "versionid",
                _ => "",
            };
            names.extend(["sr", moment]);
        }
        if version >= "2020-12-06" {
            names.push("ses");
        }
        if version >= "2013-08-15" {
            names.extend(["rscc", "rscd", "rsce", "rscl", "rsct"]);
        }
        names.iter().map(|name| self.get(name).to_owned()).collect()
    }

    fn of(fields: &[(&str, &str)]) -> Sas {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Sas { queue: None, blob: None, fields }
    }

    /// Replaces the field, or adds it.
    pub fn set(mut self, name: &str, value: &str) -> Sas {
        match self.fields.iter_mut().find(|(present, _)| present == name) {
            Some(field) => field.1 = value.to_owned(),
            None => self.fields.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub fn without(mut self, name: &str) -> Sas {
        self.fields.retain(|(present, _)| present != name);
        self
    }

    fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(present, _)| present == name).map_or("", |(_, value)| value)
    }

    /// The string to sign: that of an account SAS if there is an `ss` field, otherwise that of a service SAS.
    pub fn string_to_sign(&self, account: &str) -> String {
        let version = self.get("sv");
        let line = |name: &&str| self.get(name).to_owned();
        if self.fields.iter().any(|(name, _)| name == "ss") {
            let mut lines = vec![account.to_owned()];
            lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].iter().map(line));
            if version >= "2020-12-06" {
                lines.push(self.get("ses").to_owned());
            }
            return lines.iter().map(|line| format!("{line}\n")).collect();
        }
        let (service, name) = match (&self.queue, &self.blob) {
            (Some(queue), _) => ("/queue", queue.clone()),
            (None, Some(resource)) => ("/blob", resource.clone()),
            (None, None) => ("/table", self.get("tn").to_lowercase()),
        };
        let prefix = if version >= "2015-02-21" { service } else { "" };
        let resource = format!("{prefix}/{account}/{name}");
        let mut lines: Vec<String> = ["sp", "st", "se"].iter().map(line).collect();
        lines.push(resource);
        lines.push(self.get("si").to_owned());
        if version >= "2015-04-05" {
            lines.extend(["sip", "spr"].iter().map(line));
        }
        lines.push(version.to_owned());
        if self.blob.is_some() {
            lines.extend(self.blob_lines());
        } else if self.queue.is_none() {
            lines.extend(["spk", "srk", "epk", "erk"].iter().map(line));
        }
        lines.join("\n")
    }

    pub fn signature(&self, credentials: &Credentials) -> String {
        signature(&credentials.key, &self.string_to_sign(&credentials.account))
    }

    /// The signed token as a query string.
    pub fn sign(&self, credentials: &Credentials) -> String {
        self.with_signature(&percent_encode(&self.signature(credentials)))
    }

    /// The token with this text after `sig=`, not escaped.
    pub fn with_signature(&self, signature: &str) -> String {
        let mut query = self.unsigned();
        query.push_str("&sig=");
        query.push_str(signature);
        query
    }

    /// The fields as a query string, without a signature.
    pub fn unsigned(&self) -> String {
        let pair = |(name, value): &(String, String)| format!("{name}={}", percent_encode(value));
        self.fields.iter().map(pair).collect::<Vec<_>>().join("&")
    }
}

impl Request {
    /// Appends a token to the query and leaves the `Authorization` header out.
    pub fn sas(mut self, token: &str) -> Request {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(token);
        self.unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the specification, sections 8.3 and 8.4.
    #[test]
    fn the_published_vectors_verify() {
        let check = |sas: Sas, expected: &str| {
            assert_eq!(sas.signature(&Credentials::emulator()), expected, "{sas:?}");
        };
        let account = |version: &str| Sas::account(version).set("se", "2030-01-01T00:00:00Z");
        check(account("2019-02-02"), "Sf6ztOvy1ckXMaWcI5xoOPCUz6txhdW+qY5V7MM9DMY=");
        check(account("2020-12-06").set("spr", "https,http"), "aQbb1uM9CNZPJhjuzMWpvrja5t6VW2FlvCUFVvjctAk=");
        let table = Sas::table("2019-02-02", "MyTable").set("se", "2030-01-01T00:00:00Z");
        let range = [("spk", "pk1"), ("srk", "rk1"), ("epk", "pk2"), ("erk", "rk2")];
        let table = range.iter().fold(table, |sas, (name, value)| sas.set(name, value));
        check(table, "QtwqIO93O3k40gfiFMcCyf9QtUA1iR5/34zCqPqKnMc=");
    }

    /// The vectors of the queue specification, section 3.3.
    #[test]
    fn the_published_vectors_for_queues_verify() {
        let check = |sas: Sas, expected: &str| {
            assert_eq!(sas.signature(&Credentials::emulator()), expected, "{sas:?}");
        };
        let timed = |sas: Sas| {
            let sas = sas.set("st", "2026-06-26T00:00:00Z").set("se", "2026-06-27T00:00:00Z");
            sas.set("spr", "https,http")
        };
        let queue = Sas::queue("2025-11-05", "myqueue");
        check(timed(queue.clone()), "dCum2mVwnSJC9T5iMWNNWWTyPKDXWoCbeS232RQM9fY=");
        let policy = queue.without("sp").without("se").set("si", "policy1");
        check(policy, "iKf1xqV25nUo4NqAlzLRbkw0AuJ55FU/TKRZYjR4FzE=");
        let account = |version: &str| timed(Sas::queue_account(version).set("ss", "bqt"));
        check(account("2025-11-05"), "3VJA/uG9rOHlfE2Jf/eioLCQpcvfuveXNsLbJfrnbbM=");
        check(account("2019-12-12"), "uFVYLkqR1YKxoUKQV6KXSsAGB5nvYFORoJrDIzSQOe4=");
    }

    #[test]
    fn each_version_signs_its_own_lines() {
        let check = |sas: Sas, expected: &str| assert_eq!(sas.string_to_sign("acc"), expected);
        let table = |version| Sas::table(version, "T").set("se", "E").set("si", "I").set("spk", "P");
        check(table("2012-02-12"), "raud\n\nE\n/acc/t\nI\n2012-02-12\nP\n\n\n");
        check(table("2015-02-21"), "raud\n\nE\n/table/acc/t\nI\n2015-02-21\nP\n\n\n");
        let newer = table("2015-04-05").set("sip", "A").set("spr", "S");
        check(newer, "raud\n\nE\n/table/acc/t\nI\nA\nS\n2015-04-05\nP\n\n\n");
        let account = |version| Sas::account(version).set("se", "E").set("st", "B");
        check(account("2015-04-05"), "acc\nrwdlacu\nt\nsco\nB\nE\n\n\n2015-04-05\n");
        check(account("2020-12-06"), "acc\nrwdlacu\nt\nsco\nB\nE\n\n\n2020-12-06\n\n");
    }
}
