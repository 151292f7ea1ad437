//! `Idempotency-Key`: a repeated request gets the first answer again, and has no second effect.
//!
//! Before its handler runs, such a request *claims* its key with an item. Afterwards the item keeps the answer. Whoever comes with a
//! claimed key is given that answer; or is told that the first request is still running; or, where that one has died, takes the claim
//! over and carries the request out again. Again it is the same execution: the claim holds what its time and its ids are made of, so
//! that the same items are written. What a handler cannot write twice it marks with [`Context::origin`].
//!
//! The header's value is a secret of its caller and is kept nowhere: the item is found by its SHA-256, and the answer is sealed with a
//! key that is made of it. `docs/adr/0009-idempotency-key.md` says why it is done this way.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures_util::FutureExt as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::{digest, hmac};

use crate::records::claim::{Claim, KEPT};
use crate::request::context::{Context, Seed};
use crate::request::error::{Error, Issue, Location, Result, chain};
use crate::request::http::HttpRequest;
use crate::request::input::words;
use crate::request::response::Response;
use crate::table::keys::Fingerprint;
use crate::values::bytes::Bytes;

/// Seconds after which a request without an answer is dead: Lambda ends a function after 28, and the gateway gives up after 29.
const LEASE: i64 = 30;
/// The most bytes of a sealed answer: an item may have 400 KB, its key and the rest of the claim included.
const SEALED_LIMIT: usize = 380 * 1024;
/// The most characters of a key.
const LENGTH: usize = 255;
const PATTERN: &str = "^[!-~]{1,255}$";

/// The value of the header: 1 to 255 visible characters. `Debug` does not show it.
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key that `text` is.
    ///
    /// # Errors
    /// The issue with it, where it is none.
    pub fn parse(text: &str) -> Result<Self, Issue> {
        if (1..=LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.to_owned()));
        }
        let at = Location::header("idempotency-key");
        Err(at.issue(words::PATTERN, format!("String should match pattern '{PATTERN}'")))
    }

    /// What the claim is found by.
    fn hash(&self) -> Fingerprint {
        bytes32(digest::digest(&digest::SHA256, self.0.as_bytes()).as_ref())
    }

    /// What follows from this key, in the caller's organisation, for one `purpose`; `salt` is stored, and worth nothing without the key.
    fn derive(&self, cx: &Context<'_>, salt: &Bytes, purpose: &str) -> [u8; 32] {
        let org = cx.caller.tenant.org().0;
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, salt.expose()));
        for part in [purpose.as_bytes(), org.as_bytes(), self.0.as_bytes()] {
            // None of the parts may run over into the next one.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        bytes32(context.sign().as_ref())
    }
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IdempotencyKey(…)")
    }
}

/// A handler with its input, which is valid: what is left to do once it is certain that it is to be done.
pub type Work =
    Box<dyn for<'a> FnOnce(&'a Context<'a>) -> Pin<Box<dyn Future<Output = Result<String>> + Send + 'a>> + Send>;

/// SHA-256 of all that makes another request the same as this one: two requests are compared as they were sent, since what they mean
/// is not known here.
pub fn fingerprint(request: &HttpRequest) -> Fingerprint {
    // An event's parameters come in no particular order; several of one name keep theirs. How the key is sent does not matter.
    let mut query: Vec<_> = request.query.iter().filter(|(name, _)| name != "api_key").collect();
    query.sort_by_key(|(name, _)| name);
    let path = request.path.strip_suffix('/').unwrap_or(&request.path);
    let parts = [request.method.as_str(), path].into_iter();
    let parts = parts.chain(query.into_iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
    let parts = parts.map(str::as_bytes).chain([request.body.as_deref().unwrap_or_default()]);
    let mut framed = digest::Context::new(&digest::SHA256);
    for part in parts {
        framed.update(&(part.len() as u64).to_be_bytes());
        framed.update(part);
    }
    bytes32(framed.finish().as_ref())
}

/// Answers the request of `fingerprint` as it was answered before, or has `work` done and remembers what comes of it.
///
/// # Errors
/// Whatever keeps it from finding out, and [`Error::IdempotencyKeyReused`] and [`Error::IdempotencyKeyInUse`].
pub async fn once(
    cx: Context<'_>,
    key: &IdempotencyKey,
    fingerprint: Fingerprint,
    success: u16,
    work: Work,
) -> Result<Response> {
    let clock = &cx.service.clock;
    let claim = match claim(&cx, key, fingerprint).await? {
        Claimed::Done(answer) => return Ok(answer),
        Claimed::Mine(claim) => claim,
    };
    let seed = Seed::new(&key.derive(&cx, &claim.nonce, "ids"));
    let again = cx.repeatable(claim.started_at, seed);
    let answer = match caught(work(&again)).await {
        Ok(body) => Response::new(success, body),
        Err(error) => error.into(),
    };
    // A failure of ours is no answer: the next request with this key begins where this one ended, and need not wait. It is the same
    // where an answer is too large for an item. Only a run-campaign with thousands of unknown contacts has one, and it does nothing.
    let ours = answer.status >= 500;
    let sealed = if ours { None } else { seal(&answer, &key.derive(&again, &claim.holder, "answer")) };
    let lease_until = if sealed.is_some() { claim.lease_until } else { clock.now() };
    let holder = claim.holder.clone();
    let settled = again.table.replace_claim(key.hash(), &Claim { lease_until, sealed, ..claim }, &holder).await;
    // What was done is done, and its caller waits: a repeat will come to the same answer when the lease is over.
    if let Err(error) = settled {
        tracing::warn!(error = chain(&error), "the answer to an idempotency key was not kept");
    }
    Ok(answer)
}

/// How far a key has got.
enum Claimed {
    /// The request has been answered.
    Done(Response),
    /// It is to be carried out, here and now.
    Mine(Claim),
}

async fn claim(cx: &Context<'_>, key: &IdempotencyKey, fingerprint: Fingerprint) -> Result<Claimed> {
    // The machine's time: leases are compared between processes.
    let now = cx.service.clock.now();
    let (hash, fingerprint) = (key.hash(), Bytes::from(fingerprint));
    let random = Bytes::from(cx.service.ids.secret()?);
    let first = Claim {
        fingerprint: fingerprint.clone(),
        nonce: random.clone(),
        holder: random.clone(),
        started_at: now,
        lease_until: now.plus_seconds(LEASE),
        sealed: None,
        ttl: now.plus_seconds(KEPT).unix_seconds(),
    };
    let found = match cx.table.claim(hash, &first, now).await? {
        None => return Ok(Claimed::Mine(first)),
        // An attempt's answer was lost, and the next attempt found the claim that it had made.
        Some(found) if found.holder == random => return Ok(Claimed::Mine(found)),
        Some(found) => found,
    };
    if found.fingerprint != fingerprint {
        return Err(Error::IdempotencyKeyReused);
    }
    if let Some(sealed) = &found.sealed {
        return open(sealed, &key.derive(cx, &found.holder, "answer")).map(Claimed::Done);
    }
    if now < found.lease_until {
        return Err(Error::IdempotencyKeyInUse);
    }
    let dead = found.holder.clone();
    let mine = Claim { holder: random, lease_until: now.plus_seconds(LEASE), ..found };
    // Of several who find it dead, one takes it over.
    if cx.table.replace_claim(hash, &mine, &dead).await? {
        Ok(Claimed::Mine(mine))
    } else {
        Err(Error::IdempotencyKeyInUse)
    }
}

/// What `future` comes to; a panic is a defect of ours like any other, and still no reason to leave things lying about.
pub async fn caught<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = AssertUnwindSafe(future).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Internal(format!("panic: {}", text.unwrap_or("no message"))))
    })
}

/// Status and body, for whoever has `secret`; `None` where that is too much for an item.
fn seal(answer: &Response, secret: &[u8; 32]) -> Option<Bytes> {
    let mut bytes = [&answer.status.to_be_bytes(), answer.body.as_bytes()].concat();
    let (key, nonce) = cipher(secret).ok()?;
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut bytes).ok()?;
    (bytes.len() <= SEALED_LIMIT).then(|| bytes.into())
}

fn open(sealed: &Bytes, secret: &[u8; 32]) -> Result<Response> {
    let mut bytes = sealed.expose().to_vec();
    let (key, nonce) = cipher(secret)?;
    let opened = key.open_in_place(nonce, Aad::empty(), &mut bytes).map_err(broken)?;
    let (status, body) = opened.split_first_chunk().ok_or_else(|| broken("nothing in it"))?;
    let body = String::from_utf8(body.to_vec()).map_err(broken)?;
    Ok(Response::new(u16::from_be_bytes(*status), body))
}

/// Each holder has a key of its own and seals one answer with it, so that the nonce may always be the same.
fn cipher(secret: &[u8; 32]) -> Result<(LessSafeKey, Nonce)> {
    let key = UnboundKey::new(&AES_256_GCM, secret).map_err(broken)?;
    Ok((LessSafeKey::new(key), Nonce::assume_unique_for_key([0; 12])))
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("a sealed answer: {error}"))
}

fn bytes32(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_answer_opens_with_its_own_secret_only() {
        let answer = Response::new(201, r#"{"message":"é"}"#.into());
        let sealed = seal(&answer, &[1; 32]).unwrap();
        let opened = open(&sealed, &[1; 32]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((opened.status, opened.body), (answer.status, answer.body));
        assert!(open(&sealed, &[2; 32]).is_err());
        for at in 0..sealed.expose().len() {
            let mut bytes = sealed.expose().to_vec();
            bytes[at] ^= 1;
            assert!(open(&bytes.into(), &[1; 32]).is_err(), "{at}");
        }
        assert!(open(&Vec::new().into(), &[1; 32]).is_err());
    }

    #[test]
    fn what_is_too_much_for_an_item_is_not_kept() {
        let of = |bytes: usize| seal(&Response::new(200, "x".repeat(bytes)), &[1; 32]);
        // Two bytes of status, and sixteen by which a change would be noticed.
        assert!(of(SEALED_LIMIT - 18).is_some());
        assert!(of(SEALED_LIMIT - 17).is_none());
    }

    #[test]
    fn a_panic_is_a_failure_of_ours() {
        for (panic, wanted) in [(Some("oh"), "internal: panic: oh"), (None, "internal: panic: no message")] {
            let outcome = caught(async move {
                match panic {
                    Some(text) => panic!("{text}"),
                    None => std::panic::panic_any(1),
                }
                #[expect(unreachable_code, reason = "what it would have come to")]
                Ok(())
            });
            let error = outcome.now_or_never().unwrap().unwrap_err();
            assert_eq!((error.status(), error.to_string()), (500, wanted.to_owned()));
        }
    }

    #[test]
    fn a_key_never_prints_itself() {
        assert_eq!(format!("{:?}", IdempotencyKey::parse("hidden").unwrap()), "IdempotencyKey(…)");
    }

    #[test]
    fn no_two_requests_are_taken_for_one() {
        let request = |method: &str, path: &str, query: &[(&str, &str)], body: Option<&str>| HttpRequest {
            method: method.into(),
            path: path.into(),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: body.map(|body| body.as_bytes().to_vec()),
            ..HttpRequest::default()
        };
        let different = [
            request("POST", "/a", &[], None),
            request("PUT", "/a", &[], None),
            request("POST", "/A", &[], None),
            request("POST", "/a//", &[], None),
            request("POST", "/a", &[], Some("b")),
            request("POST", "/a", &[("b", "")], None),
            request("POST", "/a", &[("", "b")], None),
            request("POST", "/ab", &[], None),
            request("POST", "/a", &[("b", "c")], None),
            request("POST", "/a", &[("b", "c")], Some("d")),
            request("POST", "/a", &[("b", "c"), ("d", "")], None),
        ];
        let distinct: std::collections::HashSet<_> = different.iter().map(fingerprint).collect();
        assert_eq!(distinct.len(), different.len());
        let same = [
            request("POST", "/a/", &[], None),
            request("POST", "/a", &[], Some("")),
            request("POST", "/a", &[("api_key", "x")], None),
        ];
        assert!(same.iter().all(|same| fingerprint(same) == fingerprint(&different[0])));
    }
}
