//! The part of `deny.toml` that we check ourselves, in the subset of TOML that its first lines describe.
//!
//! Promises: a ban or an explained duplicate has a reason, and a value that we cannot read is an error. Sections that we
//! do not know are cargo-deny's, and ignored.

use std::fmt;

#[derive(Default, Debug)]
pub struct Policy {
    pub licences: Vec<String>,
    pub exceptions: Vec<Exception>,
    pub bans: Vec<Rule>,
    pub skips: Vec<Rule>,
}

/// Licences that are allowed for one crate only.
#[derive(Default, Debug)]
pub struct Exception {
    pub name: String,
    pub allow: Vec<String>,
}

#[derive(Default, Debug)]
pub struct Rule {
    pub crates: Crates,
    pub reason: String,
}

/// `name`, or `name@version` where the version may be a part of one: `0.2` stands for every `0.2.x`.
#[derive(Default, Debug)]
pub struct Crates {
    pub name: String,
    version: Option<String>,
}

impl Crates {
    fn parse(text: &str) -> Crates {
        match text.split_once('@') {
            Some((name, version)) => Crates { name: name.to_owned(), version: Some(version.to_owned()) },
            None => Crates { name: text.to_owned(), version: None },
        }
    }

    pub fn matches(&self, name: &str, version: &str) -> bool {
        let is_in_version = |part: &String| {
            version.strip_prefix(part.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.name == name && self.version.as_ref().is_none_or(is_in_version)
    }
}

impl fmt::Display for Crates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(out, "{}@{version}", self.name),
            None => out.write_str(&self.name),
        }
    }
}

impl Policy {
    pub fn parse(text: &str) -> Result<Policy, String> {
        let mut policy = Policy::default();
        let mut section = "";
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                section = line;
                policy.open(section);
                continue;
            }
            policy.set(section, line).ok_or_else(|| format!("line {}: cannot read '{line}'", index + 1))?;
        }
        policy.check()?;
        Ok(policy)
    }

    /// Each of these sections is one more element of a list.
    fn open(&mut self, section: &str) {
        match section {
            "[[licenses.exceptions]]" => self.exceptions.push(Exception::default()),
            "[[bans.deny]]" => self.bans.push(Rule::default()),
            "[[bans.skip]]" => self.skips.push(Rule::default()),
            _ => {}
        }
    }

    fn set(&mut self, section: &str, line: &str) -> Option<()> {
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        match (section, key) {
            ("[licenses]", "allow") => self.licences = strings(value)?,
            ("[[licenses.exceptions]]", "crate") => self.exceptions.last_mut()?.name = string(value)?,
            ("[[licenses.exceptions]]", "allow") => self.exceptions.last_mut()?.allow = strings(value)?,
            ("[[bans.deny]]", _) => self.bans.last_mut()?.set(key, value)?,
            ("[[bans.skip]]", _) => self.skips.last_mut()?.set(key, value)?,
            // These are lists, and we would miss their elements.
            ("[licenses]", "exceptions") | ("[bans]", "deny" | "skip" | "skip-tree") => return None,
            _ => {}
        }
        Some(())
    }

    fn check(&self) -> Result<(), String> {
        for rule in self.bans.iter().chain(&self.skips) {
            if rule.crates.name.is_empty() || rule.reason.is_empty() {
                return Err(format!("a rule needs a crate and a reason: '{}'", rule.crates));
            }
        }
        if self.exceptions.iter().any(|exception| exception.name.is_empty() || exception.allow.is_empty()) {
            return Err("an exception needs a crate and its licences".to_owned());
        }
        if self.licences.is_empty() {
            return Err("no licence is allowed".to_owned());
        }
        Ok(())
    }
}

impl Rule {
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "crate" => self.crates = Crates::parse(&string(value)?),
            "reason" => self.reason = string(value)?,
            _ => return None,
        }
        Some(())
    }
}

fn string(value: &str) -> Option<String> {
    let inside = value.strip_prefix('"')?.strip_suffix('"')?;
    (!inside.contains(['"', '\\'])).then(|| inside.to_owned())
}

fn strings(value: &str) -> Option<Vec<String>> {
    let inside = value.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|part| string(part.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_version_stands_for_all_that_begin_with_it() {
        let check = |text: &str, version: &str, expected: bool| {
            assert_eq!(Crates::parse(text).matches("a", version), expected, "{text} {version}");
        };
        check("a", "1.2.3", true);
        check("b", "1.2.3", false);
        check("a@1", "1.2.3", true);
        check("a@1.2", "1.2.3", true);
        check("a@1.2.3", "1.2.3", true);
        check("a@1.2", "1.20.3", false);
        check("a@2", "1.2.3", false);
    }

    #[test]
    fn rules_are_read_and_sections_of_others_are_not() {
        let policy = Policy::parse(
            "# A comment.\n[licenses]\nallow = [\"MIT\", \"ISC\"]\n[advisories]\nyanked = \"deny\"\n\
             [[bans.skip]]\ncrate = \"a@1\"\nreason = \"because\"\n[[bans.skip]]\ncrate = \"b\"\nreason = \"so\"\n",
        );
        let policy = policy.unwrap();
        assert_eq!(policy.licences, ["MIT", "ISC"]);
        let skips: Vec<_> = policy.skips.iter().map(|skip| (skip.crates.to_string(), &skip.reason)).collect();
        assert_eq!(skips, [("a@1".to_owned(), &"because".to_owned()), ("b".to_owned(), &"so".to_owned())]);
    }

    #[test]
    fn a_rule_without_a_reason_and_a_value_of_another_form_are_refused() {
        let check = |text: &str, part: &str| {
            let error = Policy::parse(&format!("[licenses]\nallow = [\"MIT\"]\n{text}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("[[bans.skip]]\ncrate = \"a\"\n", "needs a crate and a reason: 'a'");
        check("[[bans.deny]]\nreason = \"a\"\n", "needs a crate and a reason");
        check("[[bans.deny]]\nname = \"a\"\n", "line 4: cannot read 'name = \"a\"'");
        check("[bans]\nskip = [{ crate = \"a\" }]\n", "line 4");
        check("[[licenses.exceptions]]\ncrate = \"a\"\n", "an exception needs");
        check("[[licenses.exceptions]]\nallow = [\n", "line 4");
        assert!(Policy::parse("").unwrap_err().contains("no licence"));
    }
}
