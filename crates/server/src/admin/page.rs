//! The explorer page's files, which are part of the program: nothing is read from the disk and nothing is downloaded.

use bytes::Bytes;

use crate::http::header_names::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, NO_SNIFF, REFERRER_POLICY,
};
use crate::http::response::HeaderList;

/// A file of the page.
pub(crate) struct PageFile {
    name: &'static str,
    content: &'static [u8],
}

macro_rules! page_files {
    ($($name:literal)*) => {
        &[$(PageFile { name: $name, content: include_bytes!(concat!("../../explorer/", $name)) }),*]
    };
}

/// Every file that is served; the root is the first one.
const FILES: &[PageFile] = page_files! {
    "index.html"
    "advice.js"
    "app.js"
    "blobrest.js"
    "blobs.css"
    "blobview.js"
    "charts.js"
    "complete.js"
    "conflict.js"
    "connect.js"
    "connection.js"
    "containers.js"
    "dom.js"
    "export.js"
    "filter.js"
    "filterbox.js"
    "forms.js"
    "grid.js"
    "icon.svg"
    "json.js"
    "live.js"
    "overview.js"
    "pages.js"
    "patterns.js"
    "pieces.css"
    "plan.js"
    "preview.js"
    "queues.js"
    "rest.js"
    "sidebar.js"
    "sign.js"
    "style.css"
    "table.css"
    "tableview.js"
    "types.js"
    "upload.js"
    "views.css"
    "xml.js"
};

/// By the ending of a file's name.
const CONTENT_TYPES: [(&str, &str); 5] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("json", "application/json"),
];

/// Scripts and styles are the page's own files, never text within a page; nothing is loaded from elsewhere, nothing
/// frames the page, and forms go nowhere. So stored data that reaches the page cannot become a script.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                           font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/// For answers that are not pages: if one is opened as a page after all, it can do nothing.
const DATA_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

const OPENER_POLICY: &str = "cross-origin-opener-policy";
const RESOURCE_POLICY: &str = "cross-origin-resource-policy";

pub(crate) fn find(path: &str) -> Option<&'static PageFile> {
    match path.strip_prefix('/')? {
        "" => FILES.first(),
        name => FILES.iter().find(|file| file.name == name),
    }
}

impl PageFile {
    pub(crate) fn content(&self) -> Bytes {
        Bytes::from_static(self.content)
    }

    pub(crate) fn add_headers(&self, headers: &mut HeaderList) {
        add_policy(headers, PAGE_POLICY);
        headers.put(CONTENT_TYPE, self.content_type());
    }

    fn content_type(&self) -> &'static str {
        let ending = self.name.rsplit('.').next().unwrap_or_default();
        let known = CONTENT_TYPES.iter().find(|(known, _)| *known == ending);
        known.map_or("application/octet-stream", |(_, content_type)| content_type)
    }
}

/// For answers that are not files of the page.
pub(crate) fn add_data_headers(headers: &mut HeaderList) {
    add_policy(headers, DATA_POLICY);
}

fn add_policy(headers: &mut HeaderList, policy: &'static str) {
    headers.put(CONTENT_SECURITY_POLICY, policy);
    headers.put(NO_SNIFF, "nosniff");
    headers.put("x-frame-options", "DENY");
    headers.put(REFERRER_POLICY, "no-referrer");
    headers.put(OPENER_POLICY, "same-origin");
    headers.put(RESOURCE_POLICY, "same-origin");
    headers.put(CACHE_CONTROL, "no-cache");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All files together must stay small: the page is part of every copy of the program.
    const PAGE_BYTES_MAX: usize = 300 * 1024;

    #[test]
    fn the_page_is_small_and_each_path_has_one_file() {
        assert!(FILES.iter().map(|file| file.content.len()).sum::<usize>() <= PAGE_BYTES_MAX);
        for file in FILES {
            let found = find(&format!("/{}", file.name));
            assert!(
                found.is_some_and(|found| found.content_type() != "application/octet-stream"),
                "{}",
                file.name
            );
        }
        assert!(find("/").is_some_and(|file| file.name == "index.html"));
        assert!(find("/../Cargo.toml").is_none() && find("style.css").is_none());
    }

    #[test]
    fn no_file_of_the_page_is_forgotten() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/explorer");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(FILES.iter().any(|file| file.name == name), "{name} is not in the list");
        }
    }
}
