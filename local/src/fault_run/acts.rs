//! The acts of a fault run: conversations are closed, campaigns run, and endpoints recover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use shared::records::campaign::{CampaignContact, CampaignType};
use shared::request::route::Route;
use shared::routes;
use shared::table::keys::{Key, row_of};
use shared::values::id::{CampaignContactId, CampaignId};
use tokio::time::{sleep, timeout};
use tokio::try_join;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::plan::{CallerAct, EndpointKind};
use crate::fault_run::world::{MINUTE, World, at_once, member, path_of_connector, path_of_webhook};
use crate::fault_run::{FaultRunOptions, captured, exported, outcomes};

/// One of so many contacts of a campaign is changed.
pub const CHANGED: usize = 10;
/// The most contacts in a request that adds some. The request has 35 seconds of the service's clock, which in the full
/// run take 2.3 seconds of the machine's.
const ADDED_AT_ONCE: usize = 250;
/// The most conversations that are closed at the same time, so that a slow machine is not overloaded.
const CLOSING: usize = 64;
/// The longest wait for something that may never happen. Then the run ends and reports what is missing.
const PATIENCE: Duration = Duration::from_mins(1);
/// The time between two checks.
const GLANCE: Duration = Duration::from_millis(50);
/// The longest time that is skipped at once while something waits for a tick.
const LONGEST: Duration = Duration::from_hours(6);
/// How long a frozen process stays frozen in the recovery: other processes make a few calls meanwhile.
const FROZEN: Duration = Duration::from_millis(50);
/// Days after which everything must be done. Work that is left then was forgotten.
const DAYS: i64 = 40;

/// When each conversation was closed: the beginning of the successful call.
pub type Closed = BTreeMap<usize, Instant>;

/// A campaign that finished.
pub struct FinishedCampaign {
    /// Its id.
    pub id: CampaignId,
    /// Its contacts, in the order of their places.
    pub contacts: Vec<CampaignContactId>,
    /// When its cancellation was answered; `None` if it was not cancelled.
    pub cancelled: Option<Instant>,
    /// When the deletion of each contact was answered.
    pub deleted: BTreeMap<CampaignContactId, Instant>,
    /// The number of requests to its connector while it was paused.
    pub while_paused: usize,
}

/// Makes the customers' servers behave as in the plan, until they recover.
pub fn start_endpoint_faults(world: &World, attempt: Duration) {
    let mut random = Rng::with_seed(world.plan.seed);
    for (path, kind) in endpoints(world) {
        world.receiver.behave(&path, kind.at_first(attempt, &mut random));
    }
}

/// Closes all conversations that the plan closes, `pace` of them per second, and waits for the events at healthy
/// endpoints.
///
/// # Errors
/// [`Trouble`] where one cannot be closed.
pub async fn close(world: &Arc<World>, pace: u32) -> Result<Closed, Trouble> {
    let (conversations, begun) = (&world.plan.conversations, Instant::now());
    let closing: Vec<usize> = (0..conversations.len()).filter(|number| conversations[*number].closes).collect();
    let turns: BTreeMap<usize, u32> = closing.iter().copied().zip(0..).collect();
    let closed = at_once(world, CLOSING, closing, |world, number| {
        let turn = begun + Duration::from_secs(1) / pace * turns[&number];
        async move {
            sleep(turn.saturating_duration_since(Instant::now())).await;
            // A runtime and a connector report on a conversation before its end and after it.
            let reports = outcomes::of_conversation(&world, number);
            let (before, after) = reports.split_at(reports.len() / 2);
            outcomes::report_conversation(&world, number, before).await?;
            let captures = world.plan.conversations[number].captures;
            if captures && number.is_multiple_of(2) {
                captured::capture(&world, number).await?;
            }
            let closed = close_one(&world, number).await?;
            outcomes::report_conversation(&world, number, after).await?;
            if captures && !number.is_multiple_of(2) {
                captured::capture(&world, number).await?;
            }
            Ok((number, closed))
        }
    });
    let closed = Closed::from_iter(closed.await?);
    let healthy = |webhook: usize| world.plan.webhooks[webhook].kind == EndpointKind::Prompt;
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for number in closed.keys().filter(|number| healthy(conversations[**number].webhook)) {
        *wanted.entry(path_of_webhook(conversations[*number].webhook)).or_default() += 1;
    }
    let arrived = async {
        while wanted.iter().any(|(path, wanted)| world.receiver.count(path) < *wanted) {
            sleep(GLANCE).await;
        }
    };
    // The measured times include an event that is too late.
    let _ = timeout(PATIENCE, arrived).await;
    Ok(closed)
}

/// Closes a conversation. Returns when the successful call began.
async fn close_one(world: &World, number: usize) -> Result<Instant, Trouble> {
    let organisation = world.plan.webhooks[world.plan.conversations[number].webhook].organisation;
    let close = ApiRequest::of(&routes::CLOSE_CONVERSATION).parameter("conversation_id", world.conversations[number]);
    let answered = world.ask(organisation, close).await?;
    let at = answered.at;
    answered.data().map(|_| at)
}

/// Runs all campaigns, and cancels or deletes them according to the plan. Meanwhile the connectors report outcomes.
///
/// # Errors
/// [`Trouble`] where one cannot be run or stopped, or an outcome cannot be reported.
pub async fn campaign(world: &Arc<World>, options: &FaultRunOptions) -> Result<Vec<FinishedCampaign>, Trouble> {
    let has_ended = AtomicBool::new(false);
    let sending = async {
        let finished = run_all(world, options).await;
        has_ended.store(true, Ordering::Relaxed);
        finished
    };
    let reporting = async {
        while !has_ended.load(Ordering::Relaxed) {
            outcomes::report(world).await?;
            sleep(GLANCE * 4).await;
        }
        Ok(())
    };
    try_join!(sending, reporting).map(|(finished, ())| finished)
}

async fn run_all(world: &Arc<World>, options: &FaultRunOptions) -> Result<Vec<FinishedCampaign>, Trouble> {
    let (runs, under_way) = (0..world.plan.campaigns.len(), options.under_way());
    let run = |world: Arc<World>, number| async move { run(&world, number, under_way).await };
    let finished = at_once(world, runs.len(), runs, run).await?;
    let sent = async {
        while world.due()?.iter().any(|(partition, _)| partition.starts_with("CAMPAIGN#")) {
            sleep(GLANCE * 4).await;
        }
        Ok(())
    };
    timeout(PATIENCE * 5, sent).await.unwrap_or(Ok(()))?;
    Ok(finished)
}

/// Starts a campaign, at once or some minutes later.
async fn begin(world: &World, number: usize) -> Result<CampaignId, Trouble> {
    let (run, channel) = (&world.plan.campaigns[number], &world.channels[number]);
    let policy = if run.retries { outcomes::policy() } else { Value::Null };
    if !run.later {
        let body = json!({
            "contact_ids": channel.contacts, "start_new_conversation": number.is_multiple_of(2), "retry_policy": policy,
        });
        let run = ApiRequest::of(&routes::RUN_CAMPAIGN).parameter("widget_id", channel.widget).body(&body);
        return member(&send(world, number, run).await?, "campaign_id");
    }
    let body = json!({
        "name": "Later", "type": CampaignType::from(run.channel), "widget_id": channel.widget, "enabled": true,
        "start_time": world.clock.now().plus_seconds(60 + i64::try_from(run.contacts / 10).unwrap_or_default()),
        "contact_ids": channel.contacts[..run.contacts.div_ceil(2).min(ADDED_AT_ONCE)], "retry_policy": policy,
    });
    let create = ApiRequest::of(&routes::CREATE_CAMPAIGN).body(&body);
    let id = member(&send(world, number, create).await?, "id")?;
    for some in channel.contacts.chunks(ADDED_AT_ONCE) {
        let add = ApiRequest::of(&routes::ADD_CAMPAIGN_CONTACTS).parameter("campaign_id", id);
        send(world, number, add.body(&json!({"contact_ids": some}))).await?;
    }
    Ok(id)
}

/// The data of the answer to a request by the organisation of the campaign.
async fn send(world: &World, number: usize, request: ApiRequest) -> Result<Value, Trouble> {
    let organisation = world.plan.webhooks[world.plan.campaigns[number].webhook].organisation;
    world.ask(organisation, request).await?.data()
}

/// The contacts of a campaign, as the API returns them.
///
/// # Errors
/// [`Trouble`].
pub async fn contacts_of(world: &World, number: usize, id: CampaignId) -> Result<Vec<CampaignContact>, Trouble> {
    let organisation = world.plan.webhooks[world.plan.campaigns[number].webhook].organisation;
    world.list(organisation, ApiRequest::of(&routes::LIST_CAMPAIGN_CONTACTS).parameter("campaign_id", id)).await
}

/// A caller's command for a campaign. Returns false if all of the campaign was sent before.
async fn control(world: &World, number: usize, id: CampaignId, command: &Route) -> Result<bool, Trouble> {
    let organisation = world.plan.webhooks[world.plan.campaigns[number].webhook].organisation;
    let answered = world.ask(organisation, ApiRequest::of(command).parameter("campaign_id", id)).await?;
    match answered.status {
        200 => Ok(true),
        409 => Ok(false),
        _ => Err(answered.trouble()),
    }
}

/// Gives some contacts of a campaign other names and numbers while it sends to them.
async fn change_contacts(world: &World, number: usize) -> Result<(), Trouble> {
    for (place, contact) in world.channels[number].contacts.iter().enumerate().step_by(CHANGED) {
        let body = json!({"first_name": "Another", "phone_number": format!("+313{number:03}{place:06}")});
        let update = ApiRequest::of(&routes::UPDATE_CONTACT).parameter("contact_id", contact);
        send(world, number, update.body(&body)).await?;
    }
    Ok(())
}

async fn run(world: &World, number: usize, under_way: Duration) -> Result<FinishedCampaign, Trouble> {
    let run = &world.plan.campaigns[number];
    let organisation = world.plan.webhooks[run.webhook].organisation;
    let id = begin(world, number).await?;
    let contacts = contacts_of(world, number, id).await?.iter().map(|contact| contact.id).collect();
    let mut finished = FinishedCampaign { id, contacts, cancelled: None, deleted: BTreeMap::new(), while_paused: 0 };
    change_contacts(world, number).await?;
    let connector = path_of_connector(number);
    let got = async |requests: usize| {
        let got = async {
            while world.receiver.count(&connector) < requests {
                sleep(GLANCE / 10).await;
            }
        };
        let _ = timeout(PATIENCE, got).await;
    };
    match &run.act {
        CallerAct::None => {}
        CallerAct::Cancel(after) => {
            got(*after).await;
            if control(world, number, id, &routes::CANCEL_CAMPAIGN).await? {
                finished.cancelled = Some(Instant::now());
            }
        }
        CallerAct::Pause(after) => {
            got(*after).await;
            if control(world, number, id, &routes::PAUSE_CAMPAIGN).await? {
                // Requests that were being sent arrive.
                sleep(under_way).await;
                let before = world.receiver.count(&connector);
                sleep(GLANCE * 10).await;
                finished.while_paused = world.receiver.count(&connector) - before;
                control(world, number, id, &routes::RESUME_CAMPAIGN).await?;
            }
        }
        CallerAct::DeleteContacts(places) => {
            for place in places {
                let contact = finished.contacts[*place as usize];
                let delete = ApiRequest::of(&routes::DELETE_CAMPAIGN_CONTACT);
                let answered = world.ask(organisation, delete.parameter("campaign_contact_id", contact)).await?;
                // If the answer to a delete was lost, the next answer is 404.
                match (answered.status, answered.unanswered) {
                    (200, _) | (404, 1..) => {}
                    _ => return Err(answered.trouble()),
                }
                finished.deleted.insert(contact, Instant::now());
            }
        }
    }
    Ok(finished)
}

/// Makes endpoints recover according to the plan, and lets time pass until nothing is left to do. Connectors report how
/// what they have got ended. Returns the number of days.
///
/// # Errors
/// [`Trouble`] with the stream or the database.
pub async fn recover(world: &Arc<World>, options: &FaultRunOptions) -> Result<f64, Trouble> {
    for (path, kind) in endpoints(world) {
        world.receiver.behave(&path, kind.in_the_end(options.attempt));
    }
    // The clock now advances in real time, so a freeze of half a minute would only make the run longer.
    world.set_freeze(FROZEN);
    let recovering: BTreeSet<_> =
        endpoints(world).into_iter().filter(|(_, kind)| kind.recovers()).map(|(path, _)| path).collect();
    let news = || recovering.iter().map(|path| world.receiver.count(path)).sum::<usize>();
    let (begun, mut step, mut known) = (world.clock.now(), MINUTE, news());
    let (mut expired, mut pause, mut random) = (begun, 86_400, Rng::with_seed(world.plan.seed));
    let end = begun.plus_seconds(DAYS * 86_400);
    while world.clock.now() < end {
        world.minute().await;
        world.stack.settle().await?;
        if !world.stack.objects.failed_records()?.is_empty() {
            // Redrive runs every few minutes, for half a day.
            world.skip(MINUTE);
            continue;
        }
        exported::look(world).await?;
        if outcomes::report(world).await? > 0 {
            continue;
        }
        let Some(next) = world.next_due()? else { break };
        step = if news() > known { MINUTE } else { (step * 2).min(LONGEST) };
        known = news();
        world.skip(step);
        world.skip_to(next);
        // DynamoDB removes each item at an arbitrary time after its TTL. Deliveries expire after the checks that read
        // them. The whole table is searched for such items, so this happens after one day, two more, four more, and so on.
        if world.clock.now() > expired.plus_seconds(pause) {
            (expired, pause) = (world.clock.now(), pause * 2);
            world.stack.expire(|key| !is_delivery(key) && random.bool())?;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some days in milliseconds")]
    let passed = (world.clock.now().unix_millis() - begun.unix_millis()) as f64;
    Ok(passed / 86_400_000.0)
}

/// Whether this is the key of a delivery.
pub fn is_delivery(key: &Key) -> bool {
    row_of(key).is_some_and(|(_, list, _)| list.starts_with("DELIVERY#"))
}

/// Lets minutes pass until all batches that the stream gave up are handled.
///
/// # Errors
/// [`Trouble`] with the stream or the bucket.
pub async fn settle(world: &World) -> Result<(), Trouble> {
    world.stack.settle().await?;
    while !world.stack.objects.failed_records()?.is_empty() {
        world.skip(MINUTE);
        world.minute().await;
        world.stack.settle().await?;
    }
    Ok(())
}

/// All endpoints, with their paths and their kinds.
pub fn endpoints(world: &World) -> Vec<(String, EndpointKind)> {
    let webhooks =
        world.plan.webhooks.iter().enumerate().map(|(number, webhook)| (path_of_webhook(number), webhook.kind));
    let runs = world.plan.campaigns.iter().enumerate();
    let connectors = runs.filter_map(|(number, run)| Some((path_of_connector(number), run.connector?)));
    webhooks.chain(connectors).collect()
}
