//! How callers spelt the names of some headers.
//!
//! Names of headers have no case in HTTP, and the HTTP library gives them in lower case. Some services keep the spelling
//! of the names that they store. So the stream notes it while the heads pass by, and the request gets it when the library
//! has read its head.
//! Promises: only names with a certain beginning are noted, and only those with an upper-case letter behind it. So a
//! connection whose callers write in lower case costs nothing but a comparison for each header. What is noted is never
//! longer than the heads that the library has not read yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More names than a head may have are not noted.
const NAME_COUNT_MAX: usize = 100;

/// The spelling of names in the head of one request, as an extension of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeltNames(Vec<Box<str>>);

impl SpeltNames {
    /// The name as it was sent; `lower` is the same in lower case. `None` if it was sent like that.
    pub fn find(&self, lower: &str) -> Option<&str> {
        self.0.iter().map(|name| &**name).find(|name| name.eq_ignore_ascii_case(lower))
    }
}

/// The spelling of names on one connection: the stream writes it, and whoever gets the requests takes it.
#[derive(Clone)]
pub(crate) struct HeaderCase {
    /// In lower case.
    prefix: &'static [u8],
    heads: Arc<Mutex<Heads>>,
}

#[derive(Default)]
struct Heads {
    /// Names in the head that is passing by.
    current: Vec<Box<str>>,
    /// How many heads have passed, and how many requests were made from them.
    passed_count: u64,
    taken_count: u64,
    /// Heads with such names, by their number.
    waiting: VecDeque<(u64, SpeltNames)>,
}

impl HeaderCase {
    pub fn new(prefix: &'static str) -> HeaderCase {
        HeaderCase { prefix: prefix.as_bytes(), heads: Arc::default() }
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        // Nothing is left half done by a panic that would matter.
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a line of a head.
    pub fn line(&self, line: &[u8]) {
        let Some((start, rest)) = line.split_at_checked(self.prefix.len()) else { return };
        if !start.eq_ignore_ascii_case(self.prefix) {
            return;
        }
        let Some(end) = memchr::memchr(b':', rest) else { return };
        if !rest[..end].iter().any(u8::is_ascii_uppercase) {
            return;
        }
        let Ok(name) = std::str::from_utf8(&line[..start.len() + end]) else { return };
        let current = &mut self.heads().current;
        if current.len() < NAME_COUNT_MAX {
            current.push(name.into());
        }
    }

    /// Notes the end of a head.
    pub fn end(&self) {
        let mut heads = self.heads();
        let names = std::mem::take(&mut heads.current);
        if !names.is_empty() {
            let number = heads.passed_count;
            heads.waiting.push_back((number, SpeltNames(names)));
        }
        heads.passed_count += 1;
    }

    /// The names in the head of the next request. To be called once for each.
    pub fn take(&self) -> Option<SpeltNames> {
        let mut heads = self.heads();
        let number = heads.taken_count;
        heads.taken_count += 1;
        match heads.waiting.front() {
            Some((found, _)) if *found == number => heads.waiting.pop_front().map(|(_, names)| names),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_gets_the_spelling_in_its_own_head() {
        let case = HeaderCase::new("x-a-");
        case.end();
        for line in ["X-A-One: 1", "x-a-two: 2", "X-A-TWO : 3", "x-b-Three: 4", "x-a-Four", "x-"] {
            case.line(line.as_bytes());
        }
        case.end();
        case.end();
        case.line(b"x-a-Five:");
        case.end();
        assert_eq!(case.take(), None);
        let second = case.take().unwrap();
        assert_eq!(second.find("x-a-one"), Some("X-A-One"));
        assert_eq!((second.find("x-a-two"), second.find("x-a-four")), (None, None));
        assert_eq!(case.take(), None);
        assert_eq!(case.take().unwrap().find("x-a-five"), Some("x-a-Five"));
        assert_eq!(case.take(), None);
    }
}
