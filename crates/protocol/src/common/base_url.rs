//! The URL of an account as its caller knows it. Most answers have it somewhere, so it is kept in the parts in which the request
//! has them, and never put together for an answer without it.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaseUrl<'a> {
    pub is_https: bool,
    /// With the port, if it has one.
    pub host: &'a str,
    /// Empty, or `/account`.
    pub path: &'a str,
}

impl<'a> BaseUrl<'a> {
    /// The parts of the text, one after the other.
    pub fn parts(self) -> [&'a str; 3] {
        [if self.is_https { "https://" } else { "http://" }, self.host, self.path]
    }

    pub fn size_bytes(self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

impl fmt::Display for BaseUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|part| f.write_str(part))
    }
}
