//! Every error code of the Table service: one list provokes codes over HTTP and checks status and text, the other gives
//! the reason why a code is never sent. Every code in the server's own table must be in exactly one of the two lists.

use std::sync::Arc;
use std::time::Duration;

use engine::env::SystemClock;
use engine::faults::{FaultEngine, Faults};
use engine::memory::MemoryEngine;
use engine::{CommitError, ReadError};
use protocol::ErrorCode;
use testkit::{Batch, Request, Response, Sas, TestServer, batch_parts, entity_json, entity_path};

/// A server with table `mytable`, entity ('p','r'), and an engine that fails on demand.
struct World {
    server: TestServer,
    faults: Faults,
}

impl World {
    fn new() -> World {
        let memory = MemoryEngine::new(tables::FAMILIES, Arc::new(SystemClock::new()));
        let (engine, faults) = FaultEngine::new(Arc::new(memory));
        let server = TestServer::options().engine(Arc::new(engine)).start();
        server.create_table("mytable");
        server.insert("mytable", "p", "r", r#""x":1"#);
        World { server, faults }
    }

    fn send(&self, request: Request) -> Response {
        self.server.send(request)
    }

    fn insert(&self, members: &str) -> Response {
        self.send(Request::post("/mytable").json(&entity_json("p", "new", members)))
    }

    fn filter(&self, filter: &str) -> Response {
        self.send(Request::get("/mytable()").query("$filter", filter))
    }

    fn sas(&self, sas: Sas, request: Request) -> Response {
        self.send(request.sas(&sas.sign(self.server.credentials())))
    }

    /// The first part of the batch's answer, which is the failed one.
    fn batch(&self, batch: Batch) -> Response {
        batch_parts(&self.send(batch.request())).into_iter().next().unwrap()
    }
}

fn entity() -> String {
    entity_path("mytable", "p", "r")
}

const VERSION: &str = "2019-02-02";
const WRONG_ETAG: &str = "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"";

type Provoke = fn(&World) -> Response;

/// Code, status, text, and a request that provokes it.
const SENT: &[(&str, u16, &str, Provoke)] = &[
    // §3 and §9.5: codes of the Table service.
    ("AtomFormatNotSupported", 415, "Atom format is not supported.", |w| {
        w.send(Request::get("/Tables").header("Accept", "application/atom+xml"))
    }),
    (
        "CommandsInBatchActOnDifferentPartitions",
        400,
        "1:All commands in a batch must operate on same entity group.",
        |w| {
            let (one, two) = (entity_json("a", "1", ""), entity_json("b", "1", ""));
            w.batch(Batch::new().insert("mytable", &one).insert("mytable", &two))
        },
    ),
    ("DuplicateKeyPropertySpecified", 400, "A key property is specified more than once.", |w| {
        w.insert(r#""RowKey":"again""#)
    }),
    ("DuplicatePropertiesSpecified", 400, "A property is specified more than once.", |w| {
        w.insert(r#""x":1,"x":2"#)
    }),
    ("EntityAlreadyExists", 409, "The specified entity already exists.", |w| {
        w.send(Request::post("/mytable").json(&entity_json("p", "r", "")))
    }),
    ("EntityTooLarge", 400, "The entity is larger than the maximum allowed size (1MB).", |w| {
        let members: Vec<_> = (0..20).map(|n| format!("\"p{n}\":\"{}\"", "x".repeat(30_000))).collect();
        w.insert(&members.join(","))
    }),
    (
        "HostInformationNotPresent",
        400,
        "The required host information is not present in the request. You must send a non-empty Host header or include \
         the absolute URI in the request line.",
        |w| w.send(Request::get("/Tables").without("Host")),
    ),
    (
        "InvalidDuplicateRow",
        400,
        "1:The batch request contains multiple changes with same row key. An entity can appear only once in a batch \
         request.",
        |w| {
            let one = entity_json("a", "1", "");
            w.batch(Batch::new().insert("mytable", &one).insert("mytable", &one))
        },
    ),
    ("InvalidInput", 400, "One of the request inputs is not valid.", |w| {
        w.send(Request::get("/mytable()?$top=1001"))
    }),
    ("InvalidInput", 400, "One of the request inputs is not valid.", |w| {
        w.send(Request::get("/mytable()?NextPartitionKey=x&NextRowKey="))
    }),
    ("InvalidInput", 400, "An error occurred while processing this request.", |w| {
        w.send(Request::post("/mytable").json("{"))
    }),
    ("InvalidInput", 400, "Bad Request - Error in query syntax.", |w| {
        w.send(Request::get("/mytable(PartitionKey='a%2Fb',RowKey='r')"))
    }),
    (
        "InvalidInput",
        400,
        "The number of keys specified in the URI does not match number of key properties for the resource \
         'devstoreaccount1.mytable'.",
        |w| w.send(Request::get("/mytable(PartitionKey='p')")),
    ),
    ("InvalidInput", 400, "Syntax error at position 7 in 'aaa bbb ccc'.", |w| w.filter("aaa bbb ccc")),
    ("InvalidInput", 400, "The $filter expression must evaluate to a single boolean value.", |w| {
        w.filter("1")
    }),
    (
        "InvalidInput",
        400,
        "The etag value 'x' specified in one of the request headers is not valid. Please make sure only one etag value \
         is specified and is valid.",
        |w| w.send(Request::put(&entity()).json("{}").header("If-Match", "x")),
    ),
    ("InvalidInput", 400, "If-None-Match HTTP header cannot be specified for PUT operations.", |w| {
        w.send(Request::put(&entity()).json("{}").header("If-None-Match", "*"))
    }),
    ("InvalidInput", 400, "If-None-Match HTTP header cannot be specified for DELETE operations.", |w| {
        w.send(Request::delete(&entity()).header("If-None-Match", "*"))
    }),
    (
        "InvalidInput",
        400,
        "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one \
         of the headers or none of them.",
        |w| w.send(Request::put(&entity()).json("{}").header("If-Match", "*").header("If-None-Match", "*")),
    ),
    (
        "InvalidInput",
        400,
        "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.",
        |w| w.send(Request::delete("/Tables('mytable')").header("If-Match", WRONG_ETAG)),
    ),
    (
        "InvalidInput",
        400,
        "Since entity type 'devstoreaccount1.mytable' has one or more etag properties, If-Match HTTP header must be \
         specified for DELETE/PUT operations on this type.",
        |w| w.send(Request::delete(&entity())),
    ),
    (
        "InvalidInput",
        400,
        "99:The batch request operation exceeds the maximum 100 changes per change set.",
        |w| {
            let rows = (0..101).map(|row| entity_json("a", &row.to_string(), ""));
            w.batch(rows.fold(Batch::new(), |batch, row| batch.insert("mytable", &row)))
        },
    ),
    ("JsonVerboseFormatNotSupported", 415, "Verbose JSON format is not supported.", |w| {
        w.send(Request::get("/Tables").header("Accept", "application/json;odata=verbose"))
    }),
    ("MediaTypeNotSupported", 415, "None of the provided media types are supported", |w| {
        w.send(Request::get("/Tables").header("Accept", "text/html"))
    }),
    ("MethodNotAllowed", 405, "The requested method is not allowed on the specified resource.", |w| {
        w.send(Request::put("/Tables"))
    }),
    ("NotImplemented", 501, "The requested operation is not implemented on the specified resource.", |w| {
        w.filter("PartitionKey eq RowKey")
    }),
    ("OutOfRangeInput", 400, "The 'PartitionKey' parameter of value 'a/b' is out of range.", |w| {
        w.send(Request::post("/mytable").json(&entity_json("a/b", "r", "")))
    }),
    ("OutOfRangeInput", 400, "The 'RowKey' parameter of value 'a#b' is out of range.", |w| {
        w.send(Request::post("/mytable").json(&entity_json("p", "a#b", "")))
    }),
    ("OutOfRangeInput", 400, "One of the request inputs is out of range.", |w| {
        w.send(Request::put("/mytable(PartitionKey='a%23b',RowKey='r')").json("{}"))
    }),
    ("OutOfRangeInput", 400, "The 'd' parameter of value '01/01/0001 00:00:00' is out of range.", |w| {
        w.insert(r#""d":"0001-01-01T00:00:00Z","d@odata.type":"Edm.DateTime""#)
    }),
    (
        "OutOfRangeInput",
        400,
        "The specified resource name length is not within the permissible limits.",
        |w| w.send(Request::post("/Tables").json(r#"{"TableName":"ab"}"#)),
    ),
    ("PropertiesNeedValue", 400, "The values are not specified for all properties in the entity.", |w| {
        w.send(Request::post("/mytable").json(r#"{"PartitionKey":"p"}"#))
    }),
    ("PropertyNameInvalid", 400, "The property name is invalid.", |w| w.insert(r#""a-b":1"#)),
    ("PropertyNameTooLong", 400, "The property name exceeds the maximum allowed length (255).", |w| {
        w.insert(&format!("\"{}\":1", "n".repeat(256)))
    }),
    (
        "PropertyValueTooLarge",
        400,
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 \
         encoded and the maximum number of characters should be 32K or less.",
        |w| w.insert(&format!("\"x\":\"{}\"", "x".repeat(32_769))),
    ),
    ("ResourceNotFound", 404, "The specified resource does not exist.", |w| {
        w.send(Request::get("/mytable(PartitionKey='p',RowKey='absent')"))
    }),
    ("TableAlreadyExists", 409, "The table specified already exists.", |w| {
        w.send(Request::post("/Tables").json(r#"{"TableName":"MyTable"}"#))
    }),
    ("TableNotFound", 404, "The table specified does not exist.", |w| w.send(Request::get("/absent()"))),
    ("TableNotFound", 404, "0:The table specified does not exist.", |w| {
        w.batch(Batch::new().insert("absent", &entity_json("p", "r", "")))
    }),
    (
        "TooManyProperties",
        400,
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. \
         Each entity also has 3 system properties.",
        |w| w.insert(&(0..253).map(|n| format!("\"p{n}\":1")).collect::<Vec<_>>().join(",")),
    ),
    (
        "UpdateConditionNotSatisfied",
        412,
        "The update condition specified in the request was not satisfied.",
        |w| w.send(Request::put(&entity()).json("{}").header("If-Match", WRONG_ETAG)),
    ),
    ("XMethodIncorrectCount", 400, "More than one X-HTTP-Method is specified.", |w| {
        let request = Request::post(&entity()).json("{}").header("X-HTTP-Method", "MERGE");
        w.send(request.another_header("X-HTTP-Method", "MERGE"))
    }),
    ("XMethodIncorrectValue", 400, "The specified X-HTTP-Method is invalid.", |w| {
        w.send(Request::post(&entity()).json("{}").header("X-HTTP-Method", "BREW"))
    }),
    ("XMethodNotUsingPost", 400, "The request uses X-HTTP-Method with a Http Verb that is not POST.", |w| {
        w.send(Request::put(&entity()).json("{}").header("X-HTTP-Method", "MERGE"))
    }),
    // §8.7 and §9.6: codes common to the storage services.
    (
        "AuthenticationFailed",
        403,
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly \
         including the signature.",
        |w| w.send(Request::get("/Tables").header("Authorization", "SharedKey devstoreaccount1:AAAA")),
    ),
    ("InsufficientAccountPermissions", 403, "Write operations are not allowed.", |w| {
        w.send(Request::delete("/Tables('mytable')").path_account("devstoreaccount1-secondary"))
    }),
    ("InternalError", 500, "Server encountered an internal error. Please try again after some time.", |w| {
        w.faults.fail_reads(1, ReadError::Storage("broken".to_owned()));
        w.send(Request::get(&entity()))
    }),
    (
        "InvalidAuthenticationInfo",
        400,
        "Authentication information is not given in the correct format. Check the value of Authorization header.",
        |w| w.send(Request::get("/Tables").header("Authorization", "garbage")),
    ),
    (
        "InvalidAuthenticationInfo",
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        |w| {
            let request = Request::get("/Tables").header("Authorization", "Bearer a.b.c");
            w.send(request.header("x-ms-version", "2020-12-06"))
        },
    ),
    ("InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format.", |w| {
        w.send(Request::get("/Tables").header("x-ms-version", "x"))
    }),
    ("InvalidHttpVerb", 400, "The HTTP verb specified is invalid.", |w| {
        w.send(Request::new("BREW", "/Tables"))
    }),
    (
        "InvalidQueryParameterValue",
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
        |w| w.send(Request::get("/Tables?timeout=x")),
    ),
    ("InvalidResourceName", 400, "The specifed resource name contains invalid characters.", |w| {
        w.send(Request::post("/Tables").json(r#"{"TableName":"a-b"}"#))
    }),
    ("MissingContentLengthHeader", 411, "The Content-Length header was not specified.", |w| {
        w.send(Request::post("/Tables").without("Content-Length"))
    }),
    (
        "NoAuthenticationInformation",
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        |w| w.send(Request::get("/Tables").unsigned().header("x-ms-version", "2020-12-06")),
    ),
    ("OperationTimedOut", 500, "Operation could not be completed within the specified time.", |w| {
        w.faults.delay_reads(Duration::from_secs(4));
        w.send(Request::get(&format!("{}?timeout=1", entity())))
    }),
    (
        "RequestBodyTooLarge",
        413,
        "The request body is too large and exceeds the maximum permissible limit.",
        |w| w.send(Request::post("/mytable").json(&" ".repeat((4 << 20) + 1))),
    ),
    ("ServerBusy", 503, "The server is busy.", |w| {
        w.faults.fail_writes(1, CommitError::Busy);
        w.insert("")
    }),
    // §8.7: shared access signatures.
    ("AuthorizationFailure", 403, "This request is not authorized to perform this operation.", |w| {
        w.sas(Sas::table(VERSION, "mytable"), Request::get("/Tables"))
    }),
    (
        "AuthorizationPermissionMismatch",
        403,
        "This request is not authorized to perform this operation using this permission.",
        |w| w.sas(Sas::table(VERSION, "mytable").set("sp", "a"), Request::get(&entity())),
    ),
    (
        "AuthorizationProtocolMismatch",
        403,
        "This request is not authorized to perform this operation using this protocol.",
        |w| w.sas(Sas::table(VERSION, "mytable").set("spr", "https"), Request::get(&entity())),
    ),
    (
        "AuthorizationResourceTypeMismatch",
        403,
        "This request is not authorized to perform this operation using this resource type.",
        |w| w.sas(Sas::account(VERSION).set("srt", "s"), Request::get(&entity())),
    ),
    (
        "AuthorizationServiceMismatch",
        403,
        "This request is not authorized to perform this operation using this service.",
        |w| w.sas(Sas::account(VERSION).set("ss", "b"), Request::get(&entity())),
    ),
    (
        "AuthorizationSourceIPMismatch",
        403,
        "This request is not authorized to perform this operation using this source IP 127.0.0.1.",
        |w| w.sas(Sas::account(VERSION).set("sip", "10.0.0.1"), Request::get(&entity())),
    ),
    // §3.2, §3.9, §10: service properties, policies, CORS.
    ("CorsPreflightFailure", 403, "CORS not enabled or no matching rule found for this request.", |w| {
        let request = Request::new("OPTIONS", "/mytable").unsigned().header("Origin", "http://a.com");
        w.send(request.header("Access-Control-Request-Method", "GET"))
    }),
    ("InvalidHeaderValue", 400, "A required CORS header is not present.", |w| {
        w.send(Request::new("OPTIONS", "/mytable").unsigned())
    }),
    (
        "InvalidQueryParameterValue",
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
        |w| w.send(Request::get("/?restype=service&comp=stats")),
    ),
    ("InvalidUri", 400, "The requested URI does not represent any resource on the server.", |w| {
        w.send(Request::get("/"))
    }),
    ("InvalidXmlDocument", 400, "XML specified is not syntactically valid.", |w| {
        w.send(Request::put("/mytable?comp=acl").body("application/xml", "<"))
    }),
    ("InvalidXmlNodeValue", 400, "The value for one of the XML nodes is not in the correct format.", |w| {
        let policy =
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Start>soon</Start></AccessPolicy></SignedIdentifier>";
        let body = format!("<SignedIdentifiers>{policy}</SignedIdentifiers>");
        w.send(Request::put("/mytable?comp=acl").body("application/xml", body))
    }),
    ("TableNotFound", 404, "The table specified does not exist.", |w| {
        w.send(Request::get("/absent?comp=acl"))
    }),
    ("UnsupportedHttpVerb", 405, "The resource doesn't support specified Http Verb.", |w| {
        w.send(Request::delete("/mytable?comp=acl"))
    }),
];

/// Codes that the server never sends, each with the reason.
const NOT_SENT: &[(&str, &str)] = &[
    ("ContentLengthExceeded", "§7.6: 413 RequestBodyTooLarge is the reading chosen"),
    ("EntityNotFound", "§9.5: not seen; ResourceNotFound is sent instead"),
    ("InvalidValueType", "§3.10: when it is raised is unverified; InvalidInput is sent"),
    (
        "JsonFormatNotSupported",
        "§0.4: a missing version is 2019-02-02; versions without JSON are not imitated",
    ),
    ("KeyValueTooLarge", "§4.4: the live service answers PropertyValueTooLarge"),
    ("OperatorInvalid", "§9.5: no situation is known; filter errors are InvalidInput or NotImplemented"),
    ("PartitionKeyNotSpecified", "§9.5: not seen; PropertiesNeedValue is sent"),
    ("PartitionKeyPropertyCannotBeUpdated", "§3.13: keys in the payload of an update are ignored"),
    ("TableBeingDeleted", "§3.7: a deleted table is gone at once"),
    ("AccountIsDisabled", "no account can be disabled"),
    (
        "AccountRequiresHttps",
        "a port speaks HTTP or HTTPS for all accounts; plain HTTP to TLS is refused before it is read",
    ),
    ("KeyBasedAuthenticationNotPermitted", "no account forbids its keys"),
    ("ConditionHeadersNotSupported", "§9.6: a code of other services"),
    ("InvalidMd5", "§9.6: a code of other services; Content-MD5 is only signed"),
    ("Md5Mismatch", "§9.6: a code of other services; Content-MD5 is only signed"),
    ("MissingRequiredHeader", "§9.6: text unverified; belongs to CORS and properties"),
    ("MissingRequiredQueryParameter", "§9.6: text unverified; belongs to service operations"),
    ("OutOfRangeQueryParameterValue", "§9.6: $top out of range is InvalidInput, a long timeout is lowered"),
    (
        "RequestUrlFailedToParse",
        "§1.5: unverified; the HTTP library answers 414 to a target that is too long",
    ),
    ("ResourceAlreadyExists", "§9.6: a code of other services"),
    ("ResourceTypeMismatch", "§9.6: a code of other services"),
    ("UnsupportedHeader", "§9.6: unknown headers are ignored"),
    ("UnsupportedQueryParameter", "§0.4: unknown options are ignored"),
    ("MissingRequiredXmlNode", "§9.6: text unverified; §3.2 says InvalidXmlDocument"),
    ("UnsupportedXmlNode", "§9.6: text unverified; §10.1 says InvalidXmlDocument"),
    ("ScanRefused", "a code of our own, which only --fail-on-scan sends: see `scans`"),
    // Codes of the Queue service.
    ("EmptyMetadataKey", "a code of the Queue service"),
    ("InvalidMarker", "a code of the Queue service"),
    ("InvalidMetadata", "a code of the Queue service"),
    ("MessageNotFound", "a code of the Queue service"),
    ("MessageTooLarge", "a code of the Queue service"),
    ("MetadataTooLarge", "a code of the Queue service"),
    ("PopReceiptMismatch", "a code of the Queue service"),
    ("QueueAlreadyExists", "a code of the Queue service"),
    ("QueueBeingDeleted", "a code of the Queue service"),
    ("QueueDisabled", "a code of the Queue service"),
    ("QueueNotEmpty", "a code of the Queue service"),
    ("QueueNotFound", "a code of the Queue service"),
    // Codes of the Blob service.
    ("AppendPositionConditionNotMet", "a code of the Blob service"),
    ("BlobAlreadyExists", "a code of the Blob service"),
    ("BlobArchived", "a code of the Blob service"),
    ("BlobBeingRehydrated", "a code of the Blob service"),
    ("BlobCustomerSpecifiedEncryptionMismatch", "a code of the Blob service"),
    ("BlobDoesNotUseCustomerSpecifiedEncryption", "a code of the Blob service"),
    ("BlobImmutableDueToLegalHold", "a code of the Blob service"),
    ("BlobImmutableDueToPolicy", "a code of the Blob service"),
    ("BlobIsSealed", "a code of the Blob service"),
    ("BlobNotArchived", "a code of the Blob service"),
    ("BlobNotFound", "a code of the Blob service"),
    ("BlobOverwritten", "a code of the Blob service"),
    ("BlobSnapshotNotSoftDeleted", "a code of the Blob service"),
    ("BlobTierInadequateForContentLength", "a code of the Blob service"),
    ("BlobUsesCustomerSpecifiedEncryption", "a code of the Blob service"),
    ("BlockCountExceedsLimit", "a code of the Blob service"),
    ("BlockListTooLong", "a code of the Blob service"),
    ("BothCrc64AndMd5HeaderPresent", "a code of the Blob service"),
    ("BothCrc64AndMd5RangeHeaderPresent", "a code of the Blob service"),
    ("CannotChangeToLowerTier", "a code of the Blob service"),
    ("CannotVerifyCopySource", "a code of the Blob service"),
    ("ConditionNotMet", "a code of the Blob service"),
    ("ContainerAlreadyExists", "a code of the Blob service"),
    ("ContainerBeingDeleted", "a code of the Blob service"),
    ("ContainerDisabled", "a code of the Blob service"),
    ("ContainerNotFound", "a code of the Blob service"),
    ("ContentLengthLargerThanTierLimit", "a code of the Blob service"),
    ("CopyAcrossAccountsNotSupported", "a code of the Blob service"),
    ("CopyIdMismatch", "a code of the Blob service"),
    ("Crc64Mismatch", "a code of the Blob service"),
    ("DuplicateTagNames", "a code of the Blob service"),
    ("EmptyTagName", "a code of the Blob service"),
    ("FeatureVersionMismatch", "a code of the Blob service"),
    ("InfiniteLeaseDurationRequired", "a code of the Blob service"),
    ("InvalidBlobOrBlock", "a code of the Blob service"),
    ("InvalidBlobTier", "a code of the Blob service"),
    ("InvalidBlobType", "a code of the Blob service"),
    ("InvalidBlockId", "a code of the Blob service"),
    ("InvalidBlockList", "a code of the Blob service"),
    ("InvalidOperation", "a code of the Blob service"),
    ("InvalidPageRange", "a code of the Blob service"),
    ("InvalidRange", "a code of the Blob service"),
    ("InvalidSourceBlobType", "a code of the Blob service"),
    ("InvalidSourceBlobUrl", "a code of the Blob service"),
    ("InvalidTags", "a code of the Blob service"),
    ("LeaseAlreadyBroken", "a code of the Blob service"),
    ("LeaseAlreadyPresent", "a code of the Blob service"),
    ("LeaseIdMismatchWithBlobOperation", "a code of the Blob service"),
    ("LeaseIdMismatchWithContainerOperation", "a code of the Blob service"),
    ("LeaseIdMismatchWithLeaseOperation", "a code of the Blob service"),
    ("LeaseIdMissing", "a code of the Blob service"),
    ("LeaseIsBreakingAndCannotBeAcquired", "a code of the Blob service"),
    ("LeaseIsBreakingAndCannotBeChanged", "a code of the Blob service"),
    ("LeaseIsBrokenAndCannotBeRenewed", "a code of the Blob service"),
    ("LeaseLost", "a code of the Blob service"),
    ("LeaseNotPresentWithBlobOperation", "a code of the Blob service"),
    ("LeaseNotPresentWithContainerOperation", "a code of the Blob service"),
    ("LeaseNotPresentWithLeaseOperation", "a code of the Blob service"),
    ("MaxBlobSizeConditionNotMet", "a code of the Blob service"),
    ("MultipleConditionHeadersNotSupported", "a code of the Blob service"),
    ("NoPendingCopyOperation", "a code of the Blob service"),
    ("PendingCopyOperation", "a code of the Blob service"),
    ("PreviousSnapshotCannotBeNewer", "a code of the Blob service"),
    ("PreviousSnapshotNotFound", "a code of the Blob service"),
    ("PreviousSnapshotOperationNotSupported", "a code of the Blob service"),
    ("PublicAccessNotPermitted", "a code of the Blob service"),
    ("SequenceNumberConditionNotMet", "a code of the Blob service"),
    ("SequenceNumberIncrementTooLarge", "a code of the Blob service"),
    ("SnapshotCountExceeded", "a code of the Blob service"),
    ("SnapshotOperationRateExceeded", "a code of the Blob service"),
    ("SnapshotsPresent", "a code of the Blob service"),
    ("SourceConditionNotMet", "a code of the Blob service"),
    ("SystemInUse", "a code of the Blob service"),
    ("TagsTooLarge", "a code of the Blob service"),
    ("TargetConditionNotMet", "a code of the Blob service"),
    ("UnauthorizedBlobOverwrite", "a code of the Blob service"),
    ("UnsatisfiableCondition", "a code of the Blob service"),
    // Leftovers of premium tables, which no longer exist.
    ("AccountIOPSLimitExceeded", "leftover"),
    ("CannotCreateTableWithIOPSGreaterThanMaxAllowedPerTable", "leftover"),
    ("Forbidden", "leftover"),
    ("PartitionKeyEqualityComparisonExpected", "leftover"),
    ("PartitionKeySpecifiedMoreThanOnce", "leftover"),
    ("PerTableIOPSDecrementLimitReached", "leftover"),
    ("PerTableIOPSIncrementLimitReached", "leftover"),
    ("SettingIOPSForATableInProvisioningNotAllowed", "leftover"),
];

#[test]
fn every_error_can_be_provoked_with_its_status_and_text() {
    let mut failures = Vec::new();
    for (code, status, message, provoke) in SENT {
        let response = provoke(&World::new());
        let got = (response.status, response.error_code(), response.error_message());
        if got != (*status, (*code).to_owned(), (*message).to_owned()) {
            failures.push(format!("{status} {code} {message:?}\n  but got {} {} {:?}", got.0, got.1, got.2));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), SENT.len(), failures.join("\n"));
}

#[test]
fn every_code_the_server_knows_is_sent_or_excused() {
    // InvalidAuthenticationInfo with status 401 has an entry of its own, under a name that never reaches the wire.
    for code in ErrorCode::ALL.iter().map(|code| code.name()) {
        let sent = SENT.iter().any(|(name, ..)| *name == code);
        let excused = NOT_SENT.iter().any(|(name, _)| *name == code);
        assert!(sent != excused, "{code} must be in exactly one of the two lists");
    }
}
