//! Service properties as XML: reads, applies and stores them, reads them again, and tries their CORS rules.

use protocol::common::cors::{actual, preflight};
use protocol::common::service_properties::{ServiceProperties, read_update};

use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "properties",
    run,
    input_bytes_max: 64 * 1024,
    tokens: &[
        b"<StorageServiceProperties>",
        b"</StorageServiceProperties>",
        b"<Logging>",
        b"</Logging>",
        b"<HourMetrics>",
        b"</HourMetrics>",
        b"<MinuteMetrics>",
        b"<Metrics>",
        b"</Metrics>",
        b"<Version>1.0</Version>",
        b"<Enabled>true</Enabled>",
        b"<Enabled>false</Enabled>",
        b"<IncludeAPIs>true</IncludeAPIs>",
        b"<RetentionPolicy>",
        b"</RetentionPolicy>",
        b"<Days>7</Days>",
        b"<Read>",
        b"<Write>",
        b"<Delete>",
        b"<Cors>",
        b"</Cors>",
        b"<Cors/>",
        b"<CorsRule>",
        b"</CorsRule>",
        b"<AllowedOrigins>",
        b"<AllowedMethods>",
        b"<AllowedHeaders>",
        b"<ExposedHeaders>",
        b"<MaxAgeInSeconds>",
        b"GET,PUT",
        b"*",
        b"https://*.example.com",
        b"x-ms-*",
        b",",
        b" , ",
        b",,",
        b"true",
        b"True",
        b"0",
        b"365",
        b"366",
        b"-1",
        b"2147483648",
        b"<",
        b">",
        b"/>",
        b"</",
        b"&amp;",
        b"&#65;",
        b"&x;",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<!DOCTYPE a>",
        b" a='b'",
        b" ",
        b"\r\n",
        b"\xEF\xBB\xBF",
        b"\xC3\xA9",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

const BY_HAND: [&str; 2] = [
    "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://a.example, https://*.example.com</AllowedOrigins><AllowedMethods>GET,MERGE</AllowedMethods><AllowedHeaders>x-ms-*,accept</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>200</MaxAgeInSeconds></CorsRule><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders/><ExposedHeaders></ExposedHeaders><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>",
    "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>True</Delete><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging><Metrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Metrics></StorageServiceProperties>",
];

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let bodies = golden.bodies("<").into_iter();
    let found = bodies.filter(|body| body.windows(24).any(|window| window == b"StorageServiceProperties"));
    distinct(found.chain(BY_HAND.iter().map(|text| text.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    let old = read_update(input, "2011-08-18");
    let (update, is_old) = match (read_update(input, "2019-02-02"), old) {
        (Ok(update), _) => (update, false),
        (Err(_), Ok(update)) => (update, true),
        (Err(error), Err(_)) => return error.into(),
    };
    let mut properties = ServiceProperties::default();
    properties.apply(update);
    let stored = properties.to_stored();
    let again = ServiceProperties::from_stored(&stored);
    assert_eq!(again.as_ref(), Some(&properties), "{}", stored.escape_ascii());
    for version in ["2011-08-18", "2019-02-02"] {
        let written = properties.write(version);
        assert!(read_update(&written, version).is_ok(), "{version} {}", written.escape_ascii());
    }

    // If a preflight allows an origin, the answer to the request itself must allow it too.
    let mut is_allowed = false;
    for origin in ["https://a.example", "https://b.example.com", "null"] {
        let Ok(answer) = preflight(&properties.cors, Some(origin), Some("GET"), Some("accept,x-ms-date"))
        else {
            continue;
        };
        is_allowed = true;
        let headers = actual(&properties.cors, "GET", Some(origin), ["etag", "x-ms-version"].into_iter());
        assert_eq!(headers.allow_origin, Some(answer.allow_origin));
    }
    Outcome::Accepted(match (is_old, properties.cors.is_empty(), is_allowed) {
        (true, ..) => "of old",
        (false, true, _) => "without rules",
        (false, false, true) => "with rules that allow",
        (false, false, false) => "with rules",
    })
}
