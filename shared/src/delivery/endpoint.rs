//! What is known of an endpoint while deliveries are sent to it: address, secrets, and how it fares.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::lock::Mutex as Turn;

use crate::records::assistant::Assistant;
use crate::records::delivery::{Attempt, Delivery, EndpointHealth, EventKind, Lane, Observed};
use crate::records::webhook::{DisabledReason, Webhook};
use crate::records::widget::Widget;
use crate::table::{Table, TableError};
use crate::values::id::{EndpointId, WebhookId, WidgetId};
use crate::values::secret::Secret;
use crate::values::time::Timestamp;

/// An endpoint.
pub struct Endpoint {
    /// Webhook or widget.
    pub id: EndpointId,
    /// The part of the table that it is in.
    pub table: Table,
    /// Where to send to, or why not.
    pub target: Result<Target, &'static str>,
    health: Mutex<Health>,
    /// Held by whoever writes it: whoever comes next relies on it.
    writing: Turn<()>,
}

/// Where to send to.
pub struct Target {
    /// The address.
    pub url: String,
    /// Signs what is sent.
    webhook: Webhook,
    /// The widget whose connector it is.
    connector: Option<WidgetId>,
}

struct Health {
    /// What the table knows.
    known: EndpointHealth,
    /// What it does not know yet.
    news: Observed,
}

impl Endpoint {
    /// The endpoint that `delivery` is for.
    pub async fn of(table: Table, id: EndpointId, delivery: &Delivery) -> Result<Self, TableError> {
        let connector = matches!(delivery.event, EventKind::CampaignMessage | EventKind::CampaignCall);
        let (target, known) = futures_util::try_join!(Target::load(&table, id, connector), table.endpoint_health(id))?;
        Ok(Self::new(table, target, EndpointHealth { connector, ..known }))
    }

    /// The endpoint `id`, without a delivery that would tell whether it is a webhook or a connector: what is known of it tells.
    pub async fn known(table: Table, id: EndpointId) -> Result<Self, TableError> {
        let known = table.endpoint_health(id).await?;
        let target = Target::load(&table, id, known.connector).await?;
        Ok(Self::new(table, target, known))
    }

    fn new(table: Table, target: Result<Target, &'static str>, known: EndpointHealth) -> Self {
        let (id, health) = (known.id, Mutex::new(Health { known, news: Observed::default() }));
        Self { id, table, target, health, writing: Turn::new(()) }
    }

    /// Whether what is for it is left to the schedule.
    pub fn is_held(&self) -> bool {
        self.fares().is_held()
    }

    /// Whether nothing can be sent to it at all.
    pub const fn is_dead(&self) -> bool {
        self.target.is_err()
    }

    /// The widget whose connector it is.
    pub fn connector(&self) -> Option<WidgetId> {
        self.target.as_ref().ok().and_then(|target| target.connector)
    }

    /// Who sends what did not arrive when its time has come: the endpoint's own tick where it fares badly or has a rate.
    pub fn lane(&self) -> Lane {
        if self.is_held() || self.connector().is_some() { Lane::Held } else { Lane::Open }
    }

    /// Notes that something is held back from it.
    pub fn note_held(&self, now: Timestamp) {
        if !self.fares().is_known_to_be_held_from(now) {
            self.observe(Observed { held_at: Some(now), ..Observed::default() });
        }
    }

    /// Notes what came of an attempt.
    pub fn note(&self, attempt: &Attempt, slow_from: u64) {
        self.observe(Observed::of(attempt, slow_from));
    }

    /// Disables a webhook that is gone, or has failed for too long.
    pub async fn disable_where_hopeless(&self, gone: bool, now: Timestamp) -> Result<(), TableError> {
        let hopeless = self.fares().is_hopeless(now);
        let reason = match (gone, hopeless) {
            (true, _) => DisabledReason::Gone,
            (false, true) => DisabledReason::Failing,
            _ => return Ok(()),
        };
        if self.connector().is_some() || self.is_dead() {
            return Ok(());
        }
        let by = self.id.0;
        let disable = |webhook: &mut Webhook| webhook.disable(reason, now);
        match self.table.change(WebhookId(self.id.0), by, disable).await {
            Ok(_) | Err(TableError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps how it fares, where that has changed.
    pub async fn keep_health(&self, now: Timestamp) -> Result<(), TableError> {
        let _writing = self.writing.lock().await;
        let (same, connector, news) = {
            let mut health = self.health();
            let same = health.known.with(&health.news) == health.known;
            (same, health.known.connector, std::mem::take(&mut health.news))
        };
        if same {
            return Ok(());
        }
        let kept = self.table.keep_endpoint_health((self.id, connector), &news, now).await;
        let mut health = self.health();
        match kept {
            Ok(known) => {
                health.known = known;
                Ok(())
            }
            Err(error) => {
                health.news = news.then(health.news);
                Err(error)
            }
        }
    }

    /// Puts it behind all others that are to be looked after, or leaves it out where nothing is held back from it any more.
    pub async fn look_after_again(&self, now: Timestamp) -> Result<(), TableError> {
        let waiting = self.table.held_back(self.id, Timestamp::MAX, 1).await?;
        if !waiting.is_empty() {
            self.note_held(now);
        }
        self.keep_health(now).await?;
        let health = self.fares();
        if health.may_be_held_from(now) {
            return self.table.look_after_endpoint_again(self.id, now).await;
        }
        // What was known of one that is no longer sent to is of no use.
        let forgotten = self.is_dead() || health.is_good();
        self.table.look_after_endpoint_no_more(&health, forgotten).await
    }

    /// How it fares, as far as is known here.
    fn fares(&self) -> EndpointHealth {
        let health = self.health();
        health.known.with(&health.news)
    }

    fn observe(&self, news: Observed) {
        let mut health = self.health();
        health.news = health.news.then(news);
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Target {
    async fn load(table: &Table, id: EndpointId, connector: bool) -> Result<Result<Self, &'static str>, TableError> {
        if connector { Self::connector(table, id).await } else { Self::webhook(table, id).await }
    }

    async fn webhook(table: &Table, id: EndpointId) -> Result<Result<Self, &'static str>, TableError> {
        let Some(webhook) = table.find::<Webhook>(WebhookId(id.0)).await? else {
            return Ok(Err("the webhook is deleted"));
        };
        if !webhook.enabled {
            return Ok(Err("the webhook is disabled"));
        }
        Ok(Ok(Self { url: webhook.endpoint.clone(), webhook, connector: None }))
    }

    /// A connector is signed for by the webhook of the widget's assistant: its secret is the one that the customer has.
    async fn connector(table: &Table, id: EndpointId) -> Result<Result<Self, &'static str>, TableError> {
        let widget = table.find::<Widget>(WidgetId(id.0)).await?;
        let Some(widget) = widget else { return Ok(Err("the widget is gone")) };
        let Some(url) = widget.connector_url else { return Ok(Err("the widget has no connector")) };
        let assistant = match widget.assistant_id {
            Some(id) => table.find::<Assistant>(id).await?,
            None => None,
        };
        let webhook = match assistant.and_then(|assistant| assistant.webhook_id) {
            Some(id) => table.find::<Webhook>(id).await?,
            None => None,
        };
        let unsigned = "the widget's assistant has no webhook, whose secret would sign";
        Ok(webhook.ok_or(unsigned).map(|webhook| Self { url, webhook, connector: Some(widget.id) }))
    }

    /// The secrets that sign at `now`.
    pub fn secrets(&self, now: Timestamp) -> Vec<&Secret> {
        self.webhook.signing(now)
    }
}
