//! `GET /api/v1/docs`: a page that shows the OpenAPI document, and sends requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use shared::prelude::documents::*;

pub struct ReadDocs;

/// The permissions of the page: it may run the scripts that it contains, and call its own host. Scalar writes its
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
        let program = scalar_api_reference::get_asset("scalar.js").unwrap_or_default();
        // Inside a page, these characters must be escaped, as the HTML standard says; the program stays the same.
        let program = String::from_utf8_lossy(&program)
            .replace("<!--", r"\x3C!--")
            .replace("<script", r"\x3Cscript")
            .replace("</script", r"\x3C/script");
        include_str!("../docs.html").replacen("DEMO_KEY", &key, 1).replacen("SCALAR", &program, 1)
    }

    fn headers(text: &str) -> Headers {
        let scripts = text.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
        let hashes =
            scripts.map(|(script, _)| format!(" 'sha256-{}'", STANDARD.encode(digest(&SHA256, script.as_bytes()))));
        let policy = format!("{}; script-src{}", POLICY.join("; "), hashes.collect::<String>());
        Headers::from([
            ("content-security-policy", policy),
            ("referrer-policy", "no-referrer".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ])
    }
}
