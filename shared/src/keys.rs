//! API keys that customers manage: the bodies and answers of these operations, and what a caller may give to a key.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::json;

use crate::input::schema::{Member, Schema, Value, extended, object, titled};
use crate::input::{
    Between, Input, Issues, Location, OptionalBody, Parse, Patch, Raw, Source, bounded_list, member, one_of, words,
};
use crate::records::user::User;
use crate::request::api_key::{
    ApiKey, ApiKeyRecord, IssuedApiKey, NewApiKey, Role, ShownApiKey, StoredApiKey, require_future,
};
use crate::request::caller::Caller;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::request::scope::KeyScope;
use crate::routes;
use crate::table::page::{Page, PageQuery};
use crate::values::id::{ApiKeyId, UserId};
use crate::values::limits::{Burst, Limits, RequestsPerSecond};
use crate::values::text::Name;
use crate::values::time::{Day, Timestamp};

/// The most keys of an organisation that are valid at the same time.
const MOST_VALID: usize = 100;
/// The most keys that are listed: with the ones that have expired, until their items are removed.
const MOST_LISTED: usize = 1000;
/// Seconds for which an old key is still valid, unless the request says otherwise.
const OVERLAP: i64 = 86_400;

/// Every scope, in alphabetical order: one for reading and one for writing the records of each route.
static SCOPES: LazyLock<Vec<KeyScope>> = LazyLock::new(|| {
    let mut scopes: Vec<_> = routes::ALL.iter().map(|route| route.scope()).collect();
    scopes.sort();
    scopes.dedup();
    scopes
});

/// The scopes in the body of a request: at least one, sorted, each of them once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Scopes(Vec<KeyScope>);

/// A scope that a route has.
struct KnownScope(KeyScope);

impl Scopes {
    /// Every scope.
    pub fn all() -> &'static [KeyScope] {
        &SCOPES
    }
}

impl Parse for Scopes {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let known: Vec<KnownScope> = bounded_list(raw, at, issues, (1, SCOPES.len()))?;
        let mut scopes: Vec<_> = known.into_iter().map(|known| known.0).collect();
        scopes.sort();
        scopes.dedup();
        Some(Self(scopes))
    }
}

impl Schema for Scopes {
    fn schema() -> Value {
        json!({"type": "array", "items": KnownScope::schema(), "minItems": 1, "maxItems": SCOPES.len()})
    }
}

impl Parse for KnownScope {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let words: Vec<&str> = SCOPES.iter().map(KeyScope::as_str).collect();
        let known = |word: &str| SCOPES.iter().find(|scope| scope.as_str() == word).cloned().map(Self);
        one_of(raw, at, issues, &words, known)
    }
}

impl Schema for KnownScope {
    fn schema() -> Value {
        let about = "What a key may do with the records of one kind. To write includes to read.";
        titled(json!({"type": "string", "enum": *SCOPES}), "Scope", about)
    }
}

crate::input! {
    /// The body of create-key.
    pub struct NewKey {
        /// Name of the key, for those who manage it.
        pub name: Name,
        /// What it may do.
        pub role: Role = Role::Full,
        /// What it may do within its role; null where that is everything.
        pub scopes: Option<Scopes> = None,
        /// When it expires; null where it does not.
        pub expires_at: Option<Timestamp> = None,
        /// The user for whom it works: records that it makes have this user as `created_by_id`.
        pub user_id: Option<UserId> = None,
        /// Requests a second, on average, no more than the key has that makes it; null where the default of the deployment holds.
        pub requests_per_second: Option<RequestsPerSecond> = None,
        /// Requests at once, no more than the key has that makes it; null where the default of the deployment holds.
        pub burst: Option<Burst> = None,
        /// True if its answers leave out each member that is null, at any depth.
        pub omit_nulls: bool = false,
    }
}

impl NewKey {
    /// The record of the new `key` that `caller` makes.
    ///
    /// # Errors
    /// [`Error::Forbidden`] where it could do more than its maker, [`Error::Invalid`] where its end is in the past, or
    /// where its limits do not fit.
    pub fn record(
        self,
        caller: &Caller,
        id: ApiKeyId,
        key: &ApiKey,
        default: Limits,
        now: Timestamp,
    ) -> Result<ApiKeyRecord> {
        let least = |asked: Option<i64>, own: u32, default: u32| asked.or_else(|| (own < default).then(|| own.into()));
        let own = caller.limits;
        let rate = self.requests_per_second.map(Between::get);
        let rate = least(rate, own.requests_per_second, default.requests_per_second);
        let burst = least(self.burst.map(Between::get), own.burst, default.burst);
        let new = NewApiKey {
            org_id: None,
            name: self.name,
            role: self.role,
            expires_at: self.expires_at,
            requests_per_second: rate.map(Between::clamped),
            burst: burst.map(Between::clamped),
            omit_nulls: self.omit_nulls,
        };
        let record = ApiKeyRecord {
            scopes: self.scopes.map(|scopes| scopes.0),
            user_id: self.user_id,
            ..ApiKeyRecord::new(id, caller.tenant.org(), key, new, default, now)?
        };
        require_within(caller, &record, Location::body().name("scopes"))?;
        require_limits(record.limits(default), own)?;
        Ok(record)
    }
}

/// The body of update-key. An absent field keeps its value.
#[derive(Debug)]
pub struct KeyChanges {
    name: Patch<Name>,
    scopes: Patch<Scopes>,
    expires_at: Patch<Timestamp>,
    user_id: Patch<UserId>,
    requests_per_second: Patch<RequestsPerSecond>,
    burst: Patch<Burst>,
    omit_nulls: Patch<bool>,
}

impl Input for KeyChanges {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let name = source.change("name", issues, false);
        let scopes = source.change("scopes", issues, true);
        let expires_at = source.change("expires_at", issues, true);
        let user_id = source.change("user_id", issues, true);
        let requests_per_second = source.change("requests_per_second", issues, true);
        let burst = source.change("burst", issues, true);
        let omit_nulls = source.change("omit_nulls", issues, false);
        Some(Self {
            name: name?,
            scopes: scopes?,
            expires_at: expires_at?,
            user_id: user_id?,
            requests_per_second: requests_per_second?,
            burst: burst?,
            omit_nulls: omit_nulls?,
        })
    }

    fn schema() -> Value {
        let Value::Object(mut of_new) = NewKey::schema()["properties"].take() else { return object(Vec::new()) };
        let names = ["name", "scopes", "expires_at", "user_id", "requests_per_second", "burst", "omit_nulls"];
        let member = |name| {
            let mut schema = of_new.remove(name).unwrap_or_default();
            // It is no default of a change.
            schema.as_object_mut().into_iter().for_each(|schema| drop(schema.remove("default")));
            Member { name, required: false, schema }
        };
        let members = names.map(member);
        titled(object(members.into()), "KeyChanges", "The body of update-key. An absent field keeps its value.")
    }
}

impl KeyChanges {
    /// The user whom it names.
    pub const fn user(&self) -> Option<UserId> {
        if let Patch::Set(user) = &self.user_id { Some(*user) } else { None }
    }

    /// The record after the changes that `caller` makes.
    ///
    /// # Errors
    /// The same as for [`NewKey::record`].
    pub fn applied(
        self,
        caller: &Caller,
        before: &ApiKeyRecord,
        default: Limits,
        now: Timestamp,
    ) -> Result<ApiKeyRecord> {
        let mut after = before.clone();
        if let Patch::Set(name) = self.name {
            after.name = name;
        }
        if let Patch::Set(omit_nulls) = self.omit_nulls {
            after.omit_nulls = omit_nulls;
        }
        match self.scopes {
            Patch::Absent => {}
            Patch::Null => after.scopes = None,
            Patch::Set(Scopes(scopes)) => after.scopes = Some(scopes),
        }
        self.user_id.change(&mut after.user_id);
        self.requests_per_second.change(&mut after.requests_per_second);
        self.burst.change(&mut after.burst);
        self.expires_at.change(&mut after.expires_at);
        if self.expires_at != Patch::Absent {
            require_future(after.expires_at, now)?;
        }
        after.require_limits(default)?;
        require_within(caller, &after, Location::body().name("scopes"))?;
        let (own, had) = (caller.limits, before.limits(default));
        let most = Limits {
            requests_per_second: own.requests_per_second.max(had.requests_per_second),
            burst: own.burst.max(had.burst),
        };
        require_limits(after.limits(default), most)?;
        Ok(after)
    }
}

crate::input! {
    /// The body of rotate-key.
    pub struct Rotation {
        /// Seconds for which the old key is still valid, unless it expires before.
        pub overlap_seconds: Between<0, 604_800> = Between::clamped(OVERLAP),
    }
}

impl Rotation {
    /// When the old key ends, if it is rotated at `now`.
    pub fn end_of(body: OptionalBody<Self>, now: Timestamp) -> Timestamp {
        let rotation = body.0.unwrap_or(Self { overlap_seconds: Between::clamped(OVERLAP) });
        now.plus_seconds(rotation.overlap_seconds.get())
    }
}

/// A key in the list of keys.
#[derive(Debug, Serialize)]
pub struct ListedKey {
    /// The key.
    #[serde(flatten)]
    pub key: ShownApiKey,
    /// The day on which it was last used, in UTC.
    pub last_used_at: Option<Day>,
}

impl Schema for ListedKey {
    fn schema() -> Value {
        let about = "The day on which it was last used, in UTC; null if that is not known for the last 400 days.";
        let day = member::<Option<Day>>("last_used_at", true, about);
        titled(extended(ShownApiKey::schema(), vec![day]), "ListedKey", "A key in the list of keys.")
    }
}

/// A new key with the old one that it replaces.
#[derive(Debug, Serialize)]
pub struct RotatedKey {
    /// The new key.
    #[serde(flatten)]
    pub new: IssuedApiKey,
    /// The old key.
    pub replaced: ShownApiKey,
}

impl Schema for RotatedKey {
    fn schema() -> Value {
        let about = "The old key. `expires_at` says until when it is valid.";
        let replaced = member::<ShownApiKey>("replaced", true, about);
        titled(extended(IssuedApiKey::schema(), vec![replaced]), "RotatedKey", "A new key, and the old one.")
    }
}

/// Refuses a key that may do more than its manager.
///
/// # Errors
/// [`Error::Forbidden`] at `at`.
fn require_within(caller: &Caller, record: &ApiKeyRecord, at: Location) -> Result<()> {
    if caller.may_do_all_of(record.scopes.as_deref()) {
        return Ok(());
    }
    Err(Error::Forbidden(at, "An API key with scopes manages only keys that have no other scopes".into()))
}

/// The key `id` that the caller may manage.
///
/// # Errors
/// 404 where the organisation has no such key, [`Error::Forbidden`] where it may do more than the caller.
pub async fn managed_key(cx: &Context<'_>, id: ApiKeyId) -> Result<StoredApiKey> {
    let held = cx.table.api_key(id).await.on_missing("api_key_id")?;
    require_within(cx.caller()?, &held.record, Location::path().name("api_key_id"))?;
    Ok(held)
}

/// The same, and all keys of the organisation.
///
/// # Errors
/// The same as for [`managed_key`].
pub async fn managed_key_of_all(cx: &Context<'_>, id: ApiKeyId) -> Result<(StoredApiKey, Vec<ApiKeyRecord>)> {
    // Not `try_join!`: the cost of a request must not depend on which keys exist.
    let (held, listed) = futures_util::join!(managed_key(cx, id), cx.table.api_keys());
    Ok((held?, listed?))
}

/// A page of the organisation's keys, with the days on which they were last used.
///
/// # Errors
/// The errors of the table.
pub async fn listed_keys(cx: &Context<'_>, query: &PageQuery) -> Result<Page<ListedKey>> {
    let (keys, uses) = futures_util::try_join!(cx.table.api_keys(), cx.table.key_uses())?;
    let total = keys.len() as u64;
    let (before, count) = query.within(total);
    let [before, count] = [before, count].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let listed = |key: ApiKeyRecord| {
        let last_used_at = uses.get(&key.id).copied();
        ListedKey { key: key.shown(cx.service.config.key_limits), last_used_at }
    };
    let page = keys.into_iter().skip(before).take(count).map(listed).collect();
    Ok(query.of(query.order.of(page), total))
}

/// Refuses to revoke the key of the request itself: the organisation might lose its last key by mistake.
///
/// # Errors
/// [`Error::Conflict`].
pub fn require_other(caller: &Caller, id: ApiKeyId) -> Result<()> {
    if caller.key != id {
        return Ok(());
    }
    let at = Location::path().name("api_key_id");
    Err(Error::Conflict {
        at,
        kind: "own_api_key",
        message: "A request cannot revoke the API key that it is sent with",
    })
}

/// Refuses a key that has expired or was revoked.
///
/// # Errors
/// [`Error::Conflict`].
pub fn require_valid(record: &ApiKeyRecord, now: Timestamp) -> Result<()> {
    if record.is_valid(now) {
        return Ok(());
    }
    let at = Location::path().name("api_key_id");
    Err(Error::Conflict { at, kind: "api_key_ended", message: "The API key has expired or was revoked" })
}

/// Refuses one more key if there are too many, unless `id` is listed already. `replaced` is a key that ends now.
///
/// # Errors
/// [`Error::Conflict`].
pub fn require_room(listed: &[ApiKeyRecord], id: ApiKeyId, replaced: Option<ApiKeyId>, now: Timestamp) -> Result<()> {
    let counts = |key: &&ApiKeyRecord| key.is_valid(now) && Some(key.id) != replaced;
    let has_room = listed.len() < MOST_LISTED && listed.iter().filter(counts).count() < MOST_VALID;
    if has_room || listed.iter().any(|key| key.id == id) {
        return Ok(());
    }
    let message = "The organisation has 100 valid API keys, or 1000 with the expired ones: revoke some";
    Err(Error::Conflict { at: Location::body(), kind: "too_many_api_keys", message })
}

/// Refuses a user whom the organisation does not have.
///
/// # Errors
/// [`Error::Invalid`] at `user_id`.
pub async fn require_user(cx: &Context<'_>, user: Option<UserId>) -> Result<()> {
    match user {
        Some(user) => cx.table.get::<User>(user).await.map(drop).on_missing_in_body("user_id"),
        None => Ok(()),
    }
}

/// Refuses limits above `most`.
fn require_limits(limits: Limits, most: Limits) -> Result<()> {
    let pairs = [
        ("requests_per_second", limits.requests_per_second, most.requests_per_second),
        ("burst", limits.burst, most.burst),
    ];
    let above = pairs.into_iter().filter(|(_, asked, most)| asked > most);
    let issue = |(name, _, most)| {
        let message = format!("Input should be less than or equal to {most}");
        Location::body().name(name).issue(words::TOO_LARGE, message)
    };
    let issues: Issues = above.map(issue).collect();
    if issues.is_empty() { Ok(()) } else { Err(Error::Invalid(issues)) }
}
