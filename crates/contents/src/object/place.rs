//! Where an object store is, as people write it.
//!
//! ```text
//! s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, … of the environment
//! gs://BUCKET[/PREFIX]                               GOOGLE_SERVICE_ACCOUNT, …
//! azure://ACCOUNT/CONTAINER[/PREFIX][?endpoint=URL]  AZURE_STORAGE_ACCOUNT_KEY, …
//! file:///DIRECTORY                                  for tests, and for directories that others keep safe
//! ```
//!
//! Promises: the text has no secrets in it, so it can be shown and stored. An endpoint with `http://` is allowed because somebody
//! wrote it; without one, everything is `https://`.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::connector::OwnConnector;

const RETRY_COUNT_MAX: usize = 6;
const RETRY_TIME_MAX: Duration = Duration::from_secs(60);
const REGION_DEFAULT: &str = "us-east-1";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPlace {
    kind: PlaceKind,
    /// Bucket, container or directory.
    container: String,
    prefix: String,
    account: String,
    endpoint: Option<String>,
    region: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PlaceKind {
    S3,
    Google,
    Azure,
    Directory,
}

impl ObjectPlace {
    /// An error is a sentence.
    pub fn parse(text: &str) -> Result<ObjectPlace, String> {
        let wrong = || {
            format!(
                "'{text}' is no place for contents: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
                 azure://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY"
            )
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let kind = match scheme {
            "s3" => PlaceKind::S3,
            "gs" => PlaceKind::Google,
            "azure" => PlaceKind::Azure,
            "file" => PlaceKind::Directory,
            _ => return Err(wrong()),
        };
        let (mut endpoint, mut region) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("endpoint", value)) if matches!(kind, PlaceKind::S3 | PlaceKind::Azure) => {
                    endpoint = Some(value.trim_end_matches('/').to_owned());
                }
                Some(("region", value)) if kind == PlaceKind::S3 => region = Some(value.to_owned()),
                _ => return Err(format!("'{pair}' says nothing about {scheme}://")),
            }
        }
        if kind == PlaceKind::Directory {
            let container = path.to_owned();
            let is_sound = container.starts_with('/');
            let place = ObjectPlace {
                kind,
                container,
                prefix: String::new(),
                account: String::new(),
                endpoint,
                region,
            };
            return if is_sound { Ok(place) } else { Err(wrong()) };
        }
        let (account, path) = match kind {
            PlaceKind::Azure => path.split_once('/').ok_or_else(wrong)?,
            _ => ("", path),
        };
        let (container, prefix) = path.split_once('/').unwrap_or((path, ""));
        let prefix = prefix.trim_matches('/');
        let is_sound = !container.is_empty()
            && (kind != PlaceKind::Azure || !account.is_empty())
            && !container.contains('@')
            && prefix.split('/').all(|segment| prefix.is_empty() || !matches!(segment, "" | "." | ".."));
        if !is_sound {
            return Err(wrong());
        }
        Ok(ObjectPlace {
            kind,
            container: container.to_owned(),
            prefix: prefix.to_owned(),
            account: account.to_owned(),
            endpoint,
            region,
        })
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Credentials come from environment variables, which are given by name. Nothing is sent yet. An error is a sentence.
    pub fn connect(&self, environment: &[(String, String)]) -> Result<Arc<dyn ObjectStore>, String> {
        let allows_http = self.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let options = ClientOptions::new().with_allow_http(allows_http);
        let retry = RetryConfig {
            max_retries: RETRY_COUNT_MAX,
            retry_timeout: RETRY_TIME_MAX,
            ..RetryConfig::default()
        };
        let failed = |error: object_store::Error| format!("the place for contents: {error}");
        match self.kind {
            PlaceKind::S3 => {
                let mut builder = AmazonS3Builder::new();
                for (key, value) in settings::<AmazonS3ConfigKey>(environment, &["AWS_"]) {
                    builder = builder.with_config(key, value);
                }
                builder = builder
                    .with_http_connector(OwnConnector)
                    .with_client_options(options)
                    .with_retry(retry)
                    .with_bucket_name(&self.container);
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                let is_region = |name: &str| matches!(name, "AWS_REGION" | "AWS_DEFAULT_REGION");
                let named = environment.iter().any(|(name, _)| is_region(name));
                match &self.region {
                    Some(region) => builder = builder.with_region(region),
                    None if !named => builder = builder.with_region(REGION_DEFAULT),
                    None => {}
                }
                Ok(Arc::new(builder.build().map_err(failed)?))
            }
            PlaceKind::Google => {
                let mut builder = GoogleCloudStorageBuilder::new();
                for (key, value) in settings::<GoogleConfigKey>(environment, &["GOOGLE_", "SERVICE_ACCOUNT"])
                {
                    builder = builder.with_config(key, value);
                }
                builder = builder
                    .with_http_connector(OwnConnector)
                    .with_client_options(options)
                    .with_retry(retry)
                    .with_bucket_name(&self.container);
                Ok(Arc::new(builder.build().map_err(failed)?))
            }
            PlaceKind::Azure => {
                let mut builder = MicrosoftAzureBuilder::new();
                for (key, value) in settings::<AzureConfigKey>(environment, &["AZURE_"]) {
                    builder = builder.with_config(key, value);
                }
                builder = builder
                    .with_http_connector(OwnConnector)
                    .with_client_options(options)
                    .with_retry(retry)
                    .with_account(&self.account)
                    .with_container_name(&self.container);
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(endpoint.clone());
                }
                Ok(Arc::new(builder.build().map_err(failed)?))
            }
            PlaceKind::Directory => {
                Ok(Arc::new(LocalFileSystem::new_with_prefix(&self.container).map_err(failed)?))
            }
        }
    }
}

/// The variables that begin with one of these and say something about a store.
fn settings<'e, K: FromStr>(
    environment: &'e [(String, String)],
    prefixes: &'e [&str],
) -> impl Iterator<Item = (K, &'e str)> {
    environment.iter().filter_map(move |(name, value)| {
        let is_meant = prefixes.iter().any(|prefix| name.starts_with(prefix));
        let key = is_meant.then(|| name.to_ascii_lowercase().parse().ok()).flatten()?;
        Some((key, value.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let check = |text: &str, container: &str, prefix: &str| {
            let place = ObjectPlace::parse(text).unwrap();
            assert_eq!((&*place.container, place.prefix()), (container, prefix), "{text}");
        };
        check("s3://bucket", "bucket", "");
        check("s3://bucket/", "bucket", "");
        check("s3://bucket/a/b/?region=eu-central-1", "bucket", "a/b");
        check("gs://bucket/a", "bucket", "a");
        check("azure://account/container/a", "container", "a");
        check("file:///data/x", "/data/x", "");
        let place = ObjectPlace::parse("s3://b?endpoint=http://127.0.0.1:9000/&region=x").unwrap();
        assert_eq!(place.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(place.region.as_deref(), Some("x"));
        for wrong in [
            "",
            "s3",
            "s3://",
            "s3:///x",
            "ftp://x/y",
            "azure://account",
            "azure:///container",
            "file://relative",
            "s3://bucket/../x",
            "s3://bucket/a//b",
            "s3://key:secret@bucket",
            "s3://bucket?secret=x",
            "gs://bucket?endpoint=http://x",
        ] {
            assert!(ObjectPlace::parse(wrong).is_err(), "{wrong}");
        }
    }
}
