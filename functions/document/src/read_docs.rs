//! `GET /api/v1/docs`: a page that shows the OpenAPI document, and sends requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use shared::prelude::documents::*;

pub struct ReadDocs;

/// Scalar's program, compressed by gzip, in base64.
const PROGRAM: &str = include_str!(concat!(env!("OUT_DIR"), "/program.gz.base64"));
/// The SHA-256 of the program itself, in base64.
const PROGRAM_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/program.sha256.base64"));

/// The permissions of the page: it may run its own scripts and the program that it contains, and call its own host. Scalar writes its
/// styles into the page. They cannot load anything from another host either.
const POLICY: [&str; 7] = [
    "default-src 'none'",
    "base-uri 'none'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self' data:",
    "style-src 'unsafe-inline'",
];

impl Document for ReadDocs {
    const MEDIA_TYPE: &'static str = "text/html; charset=utf-8";

    fn text(config: &Config, _: &str) -> String {
        let key = config.demo_key.as_deref().unwrap_or_default();
        let key = key.replace('&', "&amp;").replace('"', "&quot;");
        include_str!("../docs.html").replacen("DEMO_KEY", &key, 1).replacen("PROGRAM", PROGRAM, 1)
    }

    fn headers(text: &str) -> Headers {
        let scripts = text.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
        let hashes = scripts.map(|(script, _)| STANDARD.encode(digest(&SHA256, script.as_bytes())));
        let hashes = hashes.chain([PROGRAM_HASH.to_owned()]).map(|hash| format!(" 'sha256-{hash}'"));
        let policy = format!("{}; script-src{}", POLICY.join("; "), hashes.collect::<String>());
        Headers::from([("content-security-policy", policy), ("referrer-policy", "no-referrer".to_owned())])
    }
}
