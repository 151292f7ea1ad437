//! Documents: functions that answer anybody with the same text. They touch nothing.

use lambda_runtime::tracing;

use crate::request::http::{HttpRequest, HttpResponse};
use crate::routes::Route;
use crate::runtime::config::Config;
use crate::runtime::meter::Cost;

/// How long a copy of a document may be used without a question.
const KEPT: &str = "public, max-age=300";

/// A document of the service.
pub trait Document {
    /// Its media type.
    const MEDIA_TYPE: &'static str;

    /// Its text, for an API at `base_url`.
    fn text(base_url: &str) -> String;
}

/// A document without its type, with its route.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Its line in the route table.
    pub route: &'static Route,
    media_type: &'static str,
    text: fn(&str) -> String,
}

impl Published {
    /// `D` without its type, with its route.
    pub const fn of<D: Document>(route: &'static Route) -> Self {
        Self { route, media_type: D::MEDIA_TYPE, text: D::text }
    }

    /// Answers `request`: 304 where the caller has the same text already.
    pub fn answer(&self, config: &Config, request: &HttpRequest) -> HttpResponse {
        let text = (self.text)(config.api_base_url.as_deref().unwrap_or(&request.base_url));
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let etag = format!("\"{}\"", crate::hex(&hash.as_ref()[..16]));
        let known = request.if_none_match.as_deref().is_some_and(|tags| names(tags, &etag));
        let (status_code, body) = if known { (304, String::new()) } else { (200, text) };
        let mut headers = std::collections::BTreeMap::from([
            ("cache-control", KEPT.to_owned()),
            ("content-type", self.media_type.to_owned()),
            ("etag", etag),
            ("x-request-id", request.request_id.clone()),
        ]);
        headers.extend(config.cors_allow_origin.clone().map(|origin| ("access-control-allow-origin", origin)));
        tracing::info!(request_id = request.request_id, operation = self.route.name, status = status_code, "request");
        HttpResponse { status_code, headers, body, is_base64_encoded: false, cost: Cost::default() }
    }
}

/// Whether an `If-None-Match` header names `etag`. What compresses an answer makes its tag a weak one.
fn names(tags: &str, etag: &str) -> bool {
    tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_every_form() {
        for (tags, found) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(names(tags, "\"a\""), found, "{tags}");
        }
    }
}
