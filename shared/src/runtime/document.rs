//! Documents: functions that answer every caller with the same text. They use no table and no bucket.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lambda_runtime::tracing;
use lru::LruCache;

use crate::request::config::Config;
use crate::request::http::{HttpRequest, HttpResponse};
use crate::request::route::Route;
use crate::table::meter::Cost;
use crate::values::hash::{hex, sha256};

/// How long a copy of a document may be used without revalidation.
const KEPT: &str = "public, max-age=300";

/// The texts that a process keeps: an API has few addresses. The least recently used one is dropped first.
const TEXTS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Headers by their names, in lower case.
pub type Headers = BTreeMap<&'static str, String>;

/// A document of the service.
pub trait Document {
    /// Its media type.
    const MEDIA_TYPE: &'static str;

    /// Its text, for an API at `base_url`.
    fn text(config: &Config, base_url: &str) -> String;

    /// The headers of that text, in addition to the ones of every document.
    fn headers(_text: &str) -> Headers {
        Headers::new()
    }
}

/// A document without its type, with its route.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Its line in the route table.
    pub route: &'static Route,
    media_type: &'static str,
    text: fn(&Config, &str) -> String,
    headers: fn(&str) -> Headers,
}

/// The texts of a process. Each text is made once per address, because it is half a megabyte or more.
#[derive(Debug)]
pub struct Library {
    config: Config,
    texts: Mutex<LruCache<(&'static str, String), Arc<Edition>>>,
}

/// A text with its headers.
#[derive(Debug)]
struct Edition {
    text: String,
    etag: String,
    headers: Headers,
}

impl Published {
    /// `D` without its type, with its route.
    pub const fn of<D: Document>(route: &'static Route) -> Self {
        Self { route, media_type: D::MEDIA_TYPE, text: D::text, headers: D::headers }
    }

    fn edition(&self, config: &Config, base_url: &str) -> Edition {
        let text = (self.text)(config, base_url);
        let etag = format!("\"{}\"", hex(&sha256([text.as_bytes()])[..16]));
        let mut headers = (self.headers)(&text);
        headers.extend([
            ("cache-control", KEPT.to_owned()),
            ("content-type", self.media_type.to_owned()),
            ("etag", etag.clone()),
        ]);
        headers.extend(config.cors_headers());
        Edition { text, etag, headers }
    }
}

impl Library {
    /// An empty library.
    pub fn new(config: Config) -> Self {
        Self { config, texts: Mutex::new(LruCache::new(TEXTS)) }
    }

    /// Answers `request` with `document`: 304 if the caller has the same text already.
    pub fn answer(&self, document: &Published, request: &HttpRequest) -> HttpResponse {
        let base_url = self.config.api_base_url.as_deref().unwrap_or(&request.base_url);
        let edition = self.edition(document, base_url);
        let known = request.if_none_match.as_deref().is_some_and(|tags| names(tags, &edition.etag));
        let (status_code, body) = if known { (304, String::new()) } else { (200, edition.text.clone()) };
        let mut headers = edition.headers.clone();
        headers.insert("x-request-id", request.request_id.clone());
        tracing::info!(
            request_id = request.request_id,
            operation = document.route.name,
            status = status_code,
            "request"
        );
        HttpResponse::new(status_code, headers, body, Cost::default())
    }

    fn edition(&self, document: &Published, base_url: &str) -> Arc<Edition> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(document.edition(&self.config, base_url));
        Arc::clone(texts.get_or_insert((document.route.name, base_url.to_owned()), make))
    }
}

/// Whether an `If-None-Match` header names `etag`. A proxy that compresses an answer makes its tag a weak one.
fn names(tags: &str, etag: &str) -> bool {
    tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::request::config::TABLE_ATTEMPT;
    use crate::routes;
    use crate::table::quota::Quotas;
    use crate::values::limits::Limits;

    static MADE: AtomicUsize = AtomicUsize::new(0);

    struct Counted;

    impl Document for Counted {
        const MEDIA_TYPE: &'static str = "text/plain";

        fn text(_: &Config, base_url: &str) -> String {
            MADE.fetch_add(1, Ordering::Relaxed);
            base_url.to_owned()
        }
    }

    #[test]
    fn the_library_keeps_the_texts_of_a_few_addresses() {
        let library = Library::new(Config {
            table_name: String::new(),
            files_bucket: String::new(),
            failed_records_bucket: String::new(),
            secrets_key: None,
            payment_api_base: String::new(),
            sends_per_second: 1,
            quotas: Quotas::default(),
            key_limits: Limits::new(1, 1),
            audit_days: 0,
            cors_allow_origin: None,
            table_attempt: TABLE_ATTEMPT,
            api_base_url: None,
            ssl_cert_file: None,
            demo_key: None,
        });
        let document = Published::of::<Counted>(&routes::READ_OPENAPI);
        let made = |base_url: &str| {
            let before = MADE.load(Ordering::Relaxed);
            let request = HttpRequest { base_url: base_url.to_owned(), ..HttpRequest::default() };
            assert_eq!(library.answer(&document, &request).body, base_url);
            MADE.load(Ordering::Relaxed) - before
        };
        assert_eq!(["a", "b", "a", "b"].map(made), [1, 1, 0, 0]);
        // New texts replace the least recently used ones.
        assert_eq!(["c", "d", "e", "b", "a"].map(made), [1, 1, 1, 0, 1]);
    }

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
