//! The usage of users: who is counted, by which plan and period, what a runtime reports, and what is answered.

use futures_util::future::try_join_all;
use serde::Deserialize;
use uuid::Uuid;

use crate::input::{Between, Location};
use crate::records::agency::{Agency, BillingPlan};
use crate::records::conversation::{NewMessage, SenderType};
use crate::records::user::User;
use crate::request::context::Context;
use crate::request::error::{Error, Result};
use crate::table::error::Cancelled;
use crate::table::expression::Condition;
use crate::table::item::{Item, from_item, number};
use crate::table::keys::{TTL, list_row};
use crate::table::metering::{Metered, Metering};
use crate::table::plan_limits::{BillingPeriod, MeterAmounts, MeterUse, Overage, PlanLimits, PlanMeter};
use crate::table::stored::Listed as _;
use crate::table::transaction::{Transaction, Unmet, Write};
use crate::table::{Fingerprint, Table, TableError};
use crate::values::hash::{hex, sha256};
use crate::values::id::{AgencyId, BillingPlanId, UserId};
use crate::values::text::ExternalId;
use crate::values::time::Timestamp;

/// Seconds for which a report is remembered after its billing period.
const REMEMBERED: i64 = 31 * 86_400;
/// The most of a meter that one report has.
const MOST: i64 = 1_000_000_000_000;

crate::input! {
    /// What a runtime has used for a user. It has at least one of `queries`, `words` and `voice_seconds`.
    pub struct NewUsageReport {
        /// Your identifier of what is reported. The organisation's first report with it counts, until 31 days after the billing period. Others get the same answer.
        pub external_id: ExternalId,
        /// Answers of assistants that `add-message` has not stored, because it counts those itself.
        pub queries: Option<Between<0, MOST>> = None,
        /// Words of data sources that `add-datasource-text-blob` has not stored, because it counts those itself.
        pub words: Option<Between<0, MOST>> = None,
        /// Seconds of voice.
        pub voice_seconds: Option<Between<0, MOST>> = None,
        /// The user who has used it. Without it, it is the user of the API key.
        pub user_id: Option<UserId> = None,
    }
}

crate::input! {
    /// Whose usage is read.
    pub struct UsageQuery {
        /// A user of the organisation. Without it, it is the user of the API key.
        pub user_id: Option<UserId> = None,
    }
}

crate::object! {
    /// What a user has used up of its billing plan in the current billing period.
    pub struct Usage {
        /// The user.
        pub user_id: UserId,
        /// The billing plan whose limits hold: the one that is in force, or else the default plan of an agency; null for none. Without a plan there are no limits, and only reports count.
        pub billing_plan_id: Option<BillingPlanId>,
        /// What happens where the user would use more than the plan allows.
        pub overage: Overage,
        /// When the billing period started.
        pub period_start: Timestamp,
        /// When the next billing period starts. All meters but `bots` then begin with 0.
        pub resets_at: Timestamp,
        /// The meters.
        pub meters: Vec<MeterUse>,
    }
}

crate::object! {
    /// A report of a runtime that has counted.
    pub struct UsageReport {
        /// Your identifier of what was reported.
        pub external_id: ExternalId,
        /// The user who has used it.
        pub user_id: UserId,
        /// Answers of assistants.
        pub queries: u64,
        /// Words of data sources.
        pub words: u64,
        /// Seconds of voice.
        pub voice_seconds: u64,
        /// When it counted.
        pub reported_at: Timestamp,
        /// When the billing period started in which it counts.
        pub period_start: Timestamp,
        /// When the next billing period starts.
        pub resets_at: Timestamp,
    }
}

crate::single!(UsageReport, Fingerprint, |external| format_args!("USAGE_REPORT#{}", hex(&external)), "USAGE_REPORT");

impl NewUsageReport {
    /// The report of `of`.
    fn report(&self, of: &Metered, now: Timestamp) -> UsageReport {
        let count = |count: Option<Between<0, MOST>>| count.map_or(0, |count| count.get().unsigned_abs());
        UsageReport {
            external_id: self.external_id.clone(),
            user_id: of.user,
            queries: count(self.queries),
            words: count(self.words),
            voice_seconds: count(self.voice_seconds),
            reported_at: now,
            period_start: of.period.starts_at,
            resets_at: of.period.resets_at,
        }
    }

    /// The user of the report. Refuses one without a user, or without a meter.
    fn checked(&self, of_key: Option<UserId>) -> Result<UserId> {
        if self.queries.or(self.words).or(self.voice_seconds).is_none() {
            let msg = "One of queries, words and voice_seconds is required";
            return Err(Error::invalid(Location::body().issue("missing", msg)));
        }
        let msg = "Field required: the API key has no user";
        let missing = || Error::invalid(Location::body().name("user_id").issue("missing", msg));
        self.user_id.or(of_key).ok_or_else(missing)
    }
}

impl UsageReport {
    fn amounts(&self) -> MeterAmounts {
        let all = [
            (PlanMeter::Queries, self.queries),
            (PlanMeter::Words, self.words),
            (PlanMeter::VoiceSeconds, self.voice_seconds),
        ];
        all.into_iter().filter(|(_, amount)| *amount > 0).collect()
    }

    /// Puts it, unless there is one with the same identifier.
    fn claim(&self, table: &Table, external: Fingerprint) -> Result<Write, TableError> {
        let mut item = table.item(external, self)?;
        item.insert(TTL.to_owned(), number(self.resets_at.plus_seconds(REMEMBERED).unix_seconds()));
        Ok(Write::put(item).when(Condition::absent_or_expired(self.reported_at)))
    }
}

/// Counts what a runtime reports, once for each identifier. What has been used is never refused.
///
/// # Errors
/// [`Error::Invalid`] where the report has no meter, or names no user of the organisation.
pub async fn report(cx: &Context<'_>, new: &NewUsageReport) -> Result<UsageReport> {
    let (user, now, table) = (new.checked(cx.user())?, cx.now(), &cx.table);
    let external = sha256([new.external_id.as_bytes()]);
    let id = Uuid::from_slice(&external[..16]).unwrap_or_default();
    let known = table.find_item::<UsageReport>(external);
    let (known, user, agencies) = futures_util::try_join!(known, table.find::<User>(user), agencies(table))?;
    let ends = |item: &Item| item.get(TTL).and_then(|ttl| ttl.as_n().ok()?.parse::<i64>().ok());
    if let Some(known) = known.filter(|item| ends(item).is_none_or(|end| now.unix_seconds() < end)) {
        return Ok(from_item(known)?);
    }
    let user = user.ok_or_else(|| Error::unknown_in_body("user_id"))?;
    let (of, _) = metered_user(table, &user, &agencies, now).await?;
    let report = new.report(&of, now);
    let mut transaction = Transaction::of_request(table);
    transaction.write(report.claim(table, external)?).or(Unmet::Repeated);
    transaction.meter(Some(table.meter_report(&of, &report.amounts(), id, now).await?));
    match transaction.commit().await {
        Ok(()) => Ok(report),
        // Another request has reported it at the same moment.
        Err(Cancelled::Condition(Unmet::Repeated, Some(first))) => Ok(from_item(first)?),
        Err(cancelled) => Err(TableError::from(cancelled).into()),
    }
}

/// The usage of a user: of `asked`, or of the user of the key.
///
/// # Errors
/// [`Error::NotFound`] where the key has no user, or the organisation has no such user.
pub async fn read(cx: &Context<'_>, asked: Option<UserId>) -> Result<Usage> {
    let missing = || Error::NotFound(Location::query().name("user_id"));
    let user = asked.or(cx.user()).ok_or_else(missing)?;
    let (user, agencies) = futures_util::try_join!(cx.table.find::<User>(user), agencies(&cx.table))?;
    let user = user.ok_or_else(missing)?;
    let (of, billing_plan_id) = metered_user(&cx.table, &user, &agencies, cx.now()).await?;
    let meters = cx.table.meter_uses(&of).await?;
    Ok(Usage {
        user_id: of.user,
        billing_plan_id,
        overage: of.plan.map_or(Overage::Allow, |plan| plan.overage),
        period_start: of.period.starts_at,
        resets_at: of.period.resets_at,
        meters,
    })
}

/// What a request counts that makes an assistant, and for which user; `None` where the key has no user with a plan.
///
/// # Errors
/// [`Error`].
pub async fn of_assistant(cx: &Context<'_>) -> Result<Option<(UserId, Metering)>> {
    let Some(of) = metered(cx).await? else { return Ok(None) };
    Ok(Some((of.user, cx.table.meter_bot(&of, cx.now()).await?)))
}

/// What a request counts that adds `message` with this id, if it is an answer of an assistant.
///
/// # Errors
/// [`Error::QuotaExceeded`] where the plan blocks it.
pub async fn of_message(cx: &Context<'_>, message: &NewMessage, id: Uuid) -> Result<Option<Metering>> {
    if message.sender_type != SenderType::Bot {
        return Ok(None);
    }
    of_request(cx, (PlanMeter::Queries, 1), id).await
}

/// What a request counts that stores a text of `words` for a data source, as a file with this id.
///
/// # Errors
/// [`Error::QuotaExceeded`] where the plan blocks it.
pub async fn of_words(cx: &Context<'_>, words: u64, id: Uuid) -> Result<Option<Metering>> {
    of_request(cx, (PlanMeter::Words, words), id).await
}

async fn of_request(cx: &Context<'_>, needs: (PlanMeter, u64), id: Uuid) -> Result<Option<Metering>> {
    let Some(of) = metered(cx).await? else { return Ok(None) };
    Ok(Some(cx.table.meter_request(&of, needs, (id, cx.origin(id)), cx.now()).await?))
}

/// The user of the key, if it has a plan. Without a user this reads nothing, and without a plan once a minute.
async fn metered(cx: &Context<'_>) -> Result<Option<Metered>> {
    let (table, now) = (&cx.table, cx.now());
    let Some(user) = cx.user().filter(|user| !table.is_planless(*user, now)) else { return Ok(None) };
    let (found, agencies) = futures_util::try_join!(table.find::<User>(user), agencies(table))?;
    let of = match found {
        Some(user) => Some(metered_user(table, &user, &agencies, now).await?.0).filter(|of| of.plan.is_some()),
        None => None,
    };
    if of.is_none() {
        table.note_planless(user, now);
    }
    Ok(of)
}

/// `user`, with its billing period and its plan, and the id of the plan.
async fn metered_user(
    table: &Table,
    user: &User,
    agencies: &[AgencyId],
    now: Timestamp,
) -> Result<(Metered, Option<BillingPlanId>), TableError> {
    let plan = plan_of(table, user, agencies).await?;
    let (id, limits) = (plan.as_ref().map(|plan| plan.id), plan.map(|plan| plan.limits()));
    Ok((Metered { user: user.id, period: period_of(user, now), plan: limits }, id))
}

/// The agencies of the organisation, which has few. A user does not name the agency of its plan.
async fn agencies(table: &Table) -> Result<Vec<AgencyId>, TableError> {
    /// What is read of an agency.
    #[derive(Deserialize)]
    struct AgencyRow {
        id: AgencyId,
    }
    let rows = list_row(&table.tenant, &Agency::list(()), 0);
    let found = table.store.query_records::<AgencyRow>(&rows.pk, (&rows.sk, None), None).await?;
    Ok(found.records.into_iter().map(|agency| agency.id).collect())
}

/// The plan of `user`: the one that is in force, or else the default plan of the newest agency that has one.
async fn plan_of(table: &Table, user: &User, agencies: &[AgencyId]) -> Result<Option<BillingPlan>, TableError> {
    if let Some(plan) = user.active_billing_plan_id {
        let plans = agencies.iter().map(|agency| table.find::<BillingPlan>((*agency, plan)));
        return Ok(try_join_all(plans).await?.into_iter().flatten().next());
    }
    let plans = agencies.iter().map(async |agency| {
        let rows = list_row(&table.tenant, &BillingPlan::list(*agency), 0);
        table.store.query_records::<BillingPlan>(&rows.pk, (&rows.sk, None), None).await
    });
    let mut plans = try_join_all(plans).await?.into_iter().flat_map(|found| found.records);
    Ok(plans.rfind(|plan| plan.default_plan))
}

impl BillingPlan {
    fn limits(&self) -> PlanLimits {
        let limits = [self.bots_count, self.queries_count, self.words_count, self.voice_seconds];
        PlanLimits { overage: self.overage, limits: limits.map(|limit| limit.get().unsigned_abs()) }
    }
}

/// The billing period of `user`: from its last refresh of credits to the next one, and on with the same length. Before
/// the payment provider has sent these times, it is the month (UTC).
fn period_of(user: &User, now: Timestamp) -> BillingPeriod {
    let sent = user.last_credits_refresh.zip(user.next_credits_refresh);
    let Some((last, next)) = sent.filter(|(last, next)| last < next) else {
        let [starts_at, resets_at] = now.month();
        return BillingPeriod { starts_at, resets_at };
    };
    let length = next.unix_millis() - last.unix_millis();
    let start = last.unix_millis() + (now.unix_millis() - last.unix_millis()).div_euclid(length) * length;
    let at = Timestamp::from_unix_millis;
    BillingPeriod { starts_at: at(start), resets_at: at(start + length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(serde_json::json!(text)).unwrap()
    }

    fn user(refreshes: &serde_json::Value) -> User {
        let mut user = serde_json::json!({
            "id": UserId(Uuid::nil()), "first_name": "A", "last_name": "B", "email": "a@example.com",
        });
        user.as_object_mut().unwrap().extend(refreshes.as_object().unwrap().clone());
        serde_json::from_value(user).unwrap()
    }

    #[test]
    fn a_period_follows_the_refreshes_of_credits() {
        let user = user(&serde_json::json!({
            "last_credits_refresh": "2026-01-10T08:00:00.000Z", "next_credits_refresh": "2026-02-10T08:00:00.000Z",
        }));
        for (now, start, end) in [
            ("2026-01-10T08:00:00.000Z", "2026-01-10T08:00:00.000Z", "2026-02-10T08:00:00.000Z"),
            ("2026-02-10T07:59:59.999Z", "2026-01-10T08:00:00.000Z", "2026-02-10T08:00:00.000Z"),
            // The event of the next period is late.
            ("2026-02-10T08:00:00.000Z", "2026-02-10T08:00:00.000Z", "2026-03-13T08:00:00.000Z"),
            ("2026-01-01T00:00:00.000Z", "2025-12-10T08:00:00.000Z", "2026-01-10T08:00:00.000Z"),
        ] {
            let wanted = BillingPeriod { starts_at: at(start), resets_at: at(end) };
            assert_eq!(period_of(&user, at(now)), wanted, "{now}");
        }
    }

    #[test]
    fn a_period_is_a_month_until_a_refresh_is_known() {
        let unknown = user(&serde_json::json!({}));
        for (now, start, end) in [
            ("2026-02-01T12:00:00.000Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"),
            ("2026-12-31T23:59:59.999Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"),
        ] {
            let wanted = BillingPeriod { starts_at: at(start), resets_at: at(end) };
            assert_eq!(period_of(&unknown, at(now)), wanted, "{now}");
        }
    }
}
