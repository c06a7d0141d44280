//! From a connection to clients: what every client can be told before it is made.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use protocol::auth::ServiceKind;

use crate::clock::{Environment, SystemEnvironment};
use crate::connection::{ConnectionString, Endpoint, Endpoints};
use crate::http_transport::{HttpOptions, HttpTransport};
use crate::pipeline::{Pipeline, Settings};
use crate::{Credential, Error, RetryPolicy, TableServiceClient, Transport};

/// What one attempt may take unless the builder is told otherwise. The services themselves give up after 30 seconds.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
const USER_AGENT: &str = concat!("lazulite-client/", env!("CARGO_PKG_VERSION"));

/// Makes clients. All that one builder makes share their connections.
///
/// ```
/// use std::time::Duration;
/// use lazulite_client::{ClientBuilder, RetryPolicy};
///
/// let tables = ClientBuilder::from_connection_string("UseDevelopmentStorage=true")?
///     .retry(RetryPolicy::default().attempts_max(3).reads_secondary(true))
///     .timeout(Duration::from_secs(5))
///     .application("shop/1.0")
///     .tables()?;
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone)]
pub struct ClientBuilder {
    source: Whereabouts,
    secondary: Option<Endpoint>,
    retry: RetryPolicy,
    timeout: Duration,
    environment: Arc<dyn Environment>,
    application: Option<String>,
    http: HttpOptions,
    transport: OnceLock<Arc<dyn Transport>>,
}

/// Where the services are.
#[derive(Clone)]
enum Whereabouts {
    String(Box<ConnectionString>),
    /// Of one service: the caller knows which.
    Endpoint(Box<(Endpoint, Credential)>),
}

impl ClientBuilder {
    /// Any form of connection string; see [`ConnectionString`].
    pub fn from_connection_string(text: &str) -> Result<ClientBuilder, Error> {
        Ok(ClientBuilder::from(ConnectionString::parse(text)?))
    }

    /// The connection string in `AZURE_STORAGE_CONNECTION_STRING`.
    pub fn from_env() -> Result<ClientBuilder, Error> {
        Ok(ClientBuilder::from(ConnectionString::from_env()?))
    }

    /// The connection string in this environment variable.
    pub fn from_env_var(name: &str) -> Result<ClientBuilder, Error> {
        Ok(ClientBuilder::from(ConnectionString::from_env_var(name)?))
    }

    /// The endpoint of one service, for example `https://shop.table.core.windows.net`. Emulators have the account in
    /// the path.
    pub fn new(endpoint: &str, credential: Credential) -> Result<ClientBuilder, Error> {
        let endpoint = Endpoint::parse(endpoint, "the endpoint")?;
        Ok(ClientBuilder::of(Whereabouts::Endpoint(Box::new((endpoint, credential)))))
    }

    /// The URL of a service with a shared access signature as its query, as the portal shows it.
    ///
    /// The URL of one table or queue is for [`TableClient::from_sas_url`](crate::TableClient::from_sas_url) or
    /// [`QueueClient::from_sas_url`](crate::QueueClient::from_sas_url), and refused here.
    pub fn from_sas_url(url: &str) -> Result<ClientBuilder, Error> {
        match ClientBuilder::from_resource_sas_url(url)? {
            (builder, None) => Ok(builder),
            (_, Some(name)) => Err(Error::Configuration(format!(
                "the URL is not that of a service, but of {name:?} in it: take TableClient::from_sas_url or \
                 QueueClient::from_sas_url, or leave the name out of the URL"
            ))),
        }
    }

    /// The URL of a service, or of a table or queue, whose name is returned.
    pub(crate) fn from_resource_sas_url(url: &str) -> Result<(ClientBuilder, Option<String>), Error> {
        let credential = Credential::sas(url)?;
        let endpoint = url.trim().split('?').next().unwrap_or_default();
        let mut endpoint = Endpoint::parse(endpoint, "the URL")?;
        let name = endpoint.split_resource(credential.table());
        Ok((ClientBuilder::of(Whereabouts::Endpoint(Box::new((endpoint, credential)))), name))
    }

    fn of(source: Whereabouts) -> ClientBuilder {
        ClientBuilder {
            source,
            secondary: None,
            retry: RetryPolicy::default(),
            timeout: TIMEOUT_DEFAULT,
            environment: Arc::new(SystemEnvironment),
            application: None,
            http: HttpOptions::default(),
            transport: OnceLock::new(),
        }
    }

    /// How often and where operations are tried.
    pub fn retry(mut self, policy: RetryPolicy) -> ClientBuilder {
        self.retry = policy;
        self
    }

    /// What one attempt may take: to get a token if one is needed, a connection, and the whole answer.
    pub fn timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.timeout = timeout;
        self
    }

    /// Where the replica is, if not where Azure and the emulators have it.
    pub fn secondary_endpoint(mut self, endpoint: &str) -> Result<ClientBuilder, Error> {
        self.secondary = Some(Endpoint::parse(endpoint, "the secondary endpoint")?);
        Ok(self)
    }

    /// What servers see in `User-Agent`, before the client's own name: `name/version` of the program.
    pub fn application(mut self, name: &str) -> ClientBuilder {
        self.application = Some(name.to_owned());
        self
    }

    /// The bounds of the client's own transport, and whom it trusts. Of no effect beside [`ClientBuilder::transport`].
    pub fn http(mut self, options: HttpOptions) -> ClientBuilder {
        self.http = options;
        self.transport = OnceLock::new();
        self
    }

    /// Another transport: one that several builders share, or one that answers itself in a test.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> ClientBuilder {
        self.transport = OnceLock::from(transport);
        self
    }

    /// Another source of time and chance, for tests that compare requests byte by byte.
    pub fn environment(mut self, environment: Arc<dyn Environment>) -> ClientBuilder {
        self.environment = environment;
        self
    }

    /// A client of the Table service.
    pub fn tables(&self) -> Result<TableServiceClient, Error> {
        Ok(TableServiceClient::from_pipeline(self.pipeline(&protocol::table::KIND)?))
    }

    /// The road to one of the account's services.
    pub(crate) fn pipeline(&self, kind: &'static ServiceKind) -> Result<Arc<Pipeline>, Error> {
        let (mut endpoints, credential) = match &self.source {
            Whereabouts::String(connection) => (connection.endpoints(kind)?, connection.credential().clone()),
            Whereabouts::Endpoint(both) => {
                let (endpoint, credential) = &**both;
                let endpoints = Endpoints { primary: endpoint.clone(), secondary: endpoint.to_secondary() };
                (endpoints, credential.clone())
            }
        };
        if let Some(secondary) = &self.secondary {
            endpoints.secondary = Some(secondary.clone());
        }
        let transport = self.transport.get_or_init(|| Arc::new(HttpTransport::new(self.http.clone())));
        let settings = Settings {
            endpoints,
            credential,
            transport: transport.clone(),
            retry: self.retry.clone(),
            timeout: self.timeout,
            environment: self.environment.clone(),
            user_agent: self.user_agent()?,
        };
        Ok(Arc::new(Pipeline::new(kind, settings)?))
    }

    fn user_agent(&self) -> Result<HeaderValue, Error> {
        let Some(application) = &self.application else { return Ok(HeaderValue::from_static(USER_AGENT)) };
        HeaderValue::try_from(format!("{application} {USER_AGENT}"))
            .map_err(|_| Error::Configuration("the application's name is not valid in a header".to_owned()))
    }
}

impl From<ConnectionString> for ClientBuilder {
    fn from(connection: ConnectionString) -> ClientBuilder {
        ClientBuilder::of(Whereabouts::String(Box::new(connection)))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientBuilder");
        match &self.source {
            Whereabouts::String(connection) => shown.field("connection", connection),
            Whereabouts::Endpoint(both) => {
                let (endpoint, credential) = &**both;
                shown.field("endpoint", &format_args!("{endpoint}")).field("credential", credential)
            }
        };
        shown.field("retry", &self.retry).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
