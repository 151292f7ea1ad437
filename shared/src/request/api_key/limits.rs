//! The limits of an API key: how many requests per second its callers may send, and how many at once; and what an
//! operator changes.

use serde::Serialize;

use super::{ApiKeyChanges, ApiKeyRecord};
use crate::input::schema::{Member, Schema, Value, extended, object, titled};
use crate::input::{Between, Input, Issues, Location, Patch, Source, input_member, member};
use crate::request::error::{Error, Result};
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::limits::Burst;
use crate::values::limits::Limits;
use crate::values::limits::RequestsPerSecond;

impl ApiKeyRecord {
    /// The effective limits of the key; `default` are the limits of the deployment.
    pub fn limits(&self, default: Limits) -> Limits {
        let own = |own: Option<i64>, default: u32| own.and_then(|own| u32::try_from(own).ok()).unwrap_or(default);
        Limits::new(
            own(self.requests_per_second.map(Between::get), default.requests_per_second),
            own(self.burst.map(Between::get), default.burst),
        )
    }

    /// Refuses a burst that is smaller than the requests per second, if the key has limits of its own.
    ///
    /// # Errors
    /// [`Error::Invalid`] at `burst`.
    pub fn require_limits(&self, default: Limits) -> Result<()> {
        let rate = self.limits(default).requests_per_second;
        let (burst, whose) = match self.burst {
            Some(burst) => (burst.get(), ""),
            None => (default.burst.into(), ", and the default is less"),
        };
        if burst >= i64::from(rate) || (self.burst.is_none() && self.requests_per_second.is_none()) {
            return Ok(());
        }
        let msg = format!("Value error, burst should be at least requests_per_second, which is {rate}{whose}");
        Err(Error::invalid(Location::body().name("burst").issue("value_error", msg)))
    }

    /// The record with its effective limits, for an answer.
    pub fn shown(self, default: Limits) -> ShownApiKey {
        ShownApiKey { limits: self.limits(default), record: self }
    }
}

/// The part of a key that operators and its organisation see.
#[derive(Debug, Serialize)]
pub struct ShownApiKey {
    /// Its stored record.
    #[serde(flatten)]
    pub record: ApiKeyRecord,
    /// Its effective limits.
    pub limits: Limits,
}

impl Schema for ShownApiKey {
    fn schema() -> Value {
        let limits =
            member::<Limits>("limits", true, "The limits that hold for it: its own, or those of the deployment.");
        titled(extended(ApiKeyRecord::schema(), vec![limits]), "Key", "An API key, without the key itself.")
    }
}

impl ApiKeyChanges {
    /// Changes `record`.
    ///
    /// # Errors
    /// [`Error::Invalid`] at `burst`, where it would be too small.
    pub fn apply(&self, record: &mut ApiKeyRecord, default: Limits) -> Result<()> {
        self.requests_per_second.change(&mut record.requests_per_second);
        self.burst.change(&mut record.burst);
        if let Patch::Set(omit_nulls) = self.omit_nulls {
            record.omit_nulls = omit_nulls;
        }
        record.require_limits(default)
    }
}

impl Input for ApiKeyChanges {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let org_id = source.required("org_id", issues);
        let id = source.required("id", issues);
        let requests_per_second = source.change("requests_per_second", issues, true);
        let burst = source.change("burst", issues, true);
        let omit_nulls = source.change("omit_nulls", issues, false);
        Some(Self {
            org_id: org_id?,
            id: id?,
            requests_per_second: requests_per_second?,
            burst: burst?,
            omit_nulls: omit_nulls?,
        })
    }

    fn schema() -> Value {
        let optional = |member: Member| input_member(Member { required: false, ..member });
        let members = vec![
            member::<OrgId>("org_id", true, "The organisation of the key."),
            member::<ApiKeyId>("id", true, "The key."),
            optional(member::<RequestsPerSecond>("requests_per_second", false, "Requests a second, on average.")),
            optional(member::<Burst>("burst", false, "Requests at once.")),
            Member {
                required: false,
                ..member::<bool>("omit_nulls", false, "True if its answers leave out each member that is null.")
            },
        ];
        titled(object(members), "ApiKeyChanges", "The input of update-api-key.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::settle;

    fn record(requests_per_second: Option<i64>, burst: Option<i64>) -> ApiKeyRecord {
        let stored = serde_json::json!({
            "id": uuid::Uuid::nil(), "org_id": uuid::Uuid::nil(), "prefix": "in-AbCd", "name": "A", "role": "full",
            "created_at": "2026-01-01T00:00:00Z", "requests_per_second": requests_per_second, "burst": burst,
        });
        serde_json::from_value(stored).unwrap()
    }

    #[test]
    fn a_key_without_limits_has_the_defaults() {
        let default = Limits::new(50, 100);
        for (own, wanted) in [
            ((None, None), (50, 100)),
            ((Some(5), None), (5, 100)),
            ((None, Some(400)), (50, 400)),
            ((Some(5), Some(7)), (5, 7)),
            // The default has changed since. The burst is still at least the requests of a second.
            ((Some(200), None), (200, 200)),
            ((None, Some(20)), (50, 50)),
        ] {
            let limits = record(own.0, own.1).limits(default);
            assert_eq!((limits.requests_per_second, limits.burst), wanted, "{own:?}");
        }
        assert_eq!(Limits::new(0, 0), Limits { requests_per_second: 1, burst: 1 });
    }

    #[test]
    fn a_burst_below_the_requests_of_a_second_is_refused() {
        let default = Limits::new(50, 100);
        let refused = |own: (Option<i64>, Option<i64>)| match record(own.0, own.1).require_limits(default) {
            Err(Error::Invalid(issues)) => issues[0].msg.to_string(),
            Err(error) => panic!("{error}"),
            Ok(()) => String::new(),
        };
        let wanted = "Value error, burst should be at least requests_per_second, which is ";
        assert_eq!(refused((None, None)), "");
        assert_eq!(refused((Some(100), None)), "");
        assert_eq!(refused((Some(10), Some(10))), "");
        assert_eq!(refused((Some(10), Some(9))), format!("{wanted}10"));
        assert_eq!(refused((None, Some(49))), format!("{wanted}50"));
        assert_eq!(refused((Some(101), None)), format!("{wanted}101, and the default is less"));
    }

    #[test]
    fn a_change_keeps_absent_limits_and_null_resets_them() {
        let ids = r#""org_id":"01900000-0000-7000-8000-a00000000001","id":"01900000-0000-7000-8000-a00000000001""#;
        let changed = |more: &str| {
            let (text, mut issues) = (format!("{{{ids}{more}}}"), Issues::new());
            let changes = ApiKeyChanges::read(&Source::body(Some(text.as_bytes())).unwrap(), &mut issues);
            let mut key = record(Some(5), Some(7));
            settle(changes, issues)?.apply(&mut key, Limits::new(50, 100))?;
            Ok::<_, Error>((key.requests_per_second.map(Between::get), key.burst.map(Between::get)))
        };
        assert_eq!(changed("").unwrap(), (Some(5), Some(7)));
        assert_eq!(changed(r#","burst":9"#).unwrap(), (Some(5), Some(9)));
        assert_eq!(changed(r#","requests_per_second":7"#).unwrap(), (Some(7), Some(7)));
        assert_eq!(changed(r#","requests_per_second":null,"burst":null"#).unwrap(), (None, None));
        for wrong in [
            r#","burst":4"#,
            r#","burst":0"#,
            r#","burst":10001"#,
            r#","requests_per_second":0"#,
            r#","requests_per_second":1001"#,
            r#","requests_per_second":null"#,
            r#","requests_per_second":"many""#,
        ] {
            assert!(matches!(changed(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
    }
}
