//! An endpoint while deliveries are sent to it: its address, its secrets, and the state of its circuit breaker.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::lock::Mutex as AsyncMutex;

use crate::records::assistant::Assistant;
use crate::records::delivery::{self, Delivery, EndpointHealth, Observed, SentBy, health};
use crate::records::webhook::{DisabledReason, SigningSecret, Webhook};
use crate::records::widget::Widget;
use crate::sealing::SealingError;
use crate::table::declaration::Declared as _;
use crate::table::stored::Stored;
use crate::table::{Table, TableError};
use crate::values::id::{EndpointId, WebhookId, WidgetId};
use crate::values::secret::Secret;
use crate::values::time::Timestamp;

/// Seconds between the last deferred delivery in the index and the check of the list of deliveries itself.
const LOOK_AGAIN: i64 = 3600;

/// The end of the time in which the secrets of the webhook of the widget's assistant also sign for a connector with
/// secrets of its own, in seconds since 1970: the beginning of 2027-05-31. `CHANGELOG.md` says so.
pub const BOTH_SIGN_UNTIL: i64 = 1_811_721_600;

/// A webhook or a connector to which deliveries are sent.
pub struct Endpoint {
    /// Webhook or widget.
    pub id: EndpointId,
    /// The table of its organisation.
    pub table: Table,
    /// The target of its deliveries.
    pub target: EndpointTarget,
    /// When the target was read.
    read_at: Timestamp,
    health: Mutex<Health>,
    /// Only one task saves the health at a time, so that the next one sees the saved values.
    saving: AsyncMutex<()>,
}

/// The target of an endpoint's deliveries, if it has one.
pub enum EndpointTarget {
    /// An address, and the secrets that sign.
    Known(Target),
    /// Why there is no target.
    Nowhere(&'static str),
    /// The secrets cannot be opened now: a later attempt may have them.
    Later,
}

/// An address, and the secrets that sign.
pub struct Target {
    /// The address.
    pub url: String,
    /// The secrets of the webhook or the widget itself.
    own: Vec<SigningSecret>,
    /// The secrets of the webhook of the widget's assistant. They sign for a connector without secrets of its own, and for
    /// every connector until [`BOTH_SIGN_UNTIL`].
    former: Vec<SigningSecret>,
    /// The widget whose connector it is.
    connector: Option<WidgetId>,
    /// Whether the message of a user comes with what is needed to answer it.
    context: bool,
}

struct Health {
    /// The health in the table.
    stored: EndpointHealth,
    /// The observations that are not in the table yet.
    unsaved: Observed,
}

impl Endpoint {
    /// The endpoint of `delivery`.
    pub async fn of(table: Table, id: EndpointId, delivery: &Delivery, now: Timestamp) -> Result<Self, TableError> {
        let connector = delivery.event.is_for_connector();
        let (target, stored) =
            futures_util::try_join!(EndpointTarget::load(&table, id, connector), health::of(&table, id))?;
        Ok(Self::new(table, target, EndpointHealth { connector, ..stored }, now))
    }

    /// The endpoint `id` without a delivery: its stored health shows whether it is a webhook or a connector.
    pub async fn stored(table: Table, id: EndpointId, now: Timestamp) -> Result<Self, TableError> {
        let stored = health::of(&table, id).await?;
        let target = EndpointTarget::load(&table, id, stored.connector).await?;
        Ok(Self::new(table, target, stored, now))
    }

    fn new(table: Table, target: EndpointTarget, stored: EndpointHealth, read_at: Timestamp) -> Self {
        let (id, health) = (stored.id, Mutex::new(Health { stored, unsaved: Observed::default() }));
        Self { id, table, target, read_at, health, saving: AsyncMutex::new(()) }
    }

    /// Whether its deliveries are deferred at `now`.
    pub fn circuit_is_open(&self, now: Timestamp) -> bool {
        self.current_health().circuit_is_open(now)
    }

    /// Records that many deliveries have arrived at the same time: unless the last answer was slow, it no longer counts
    /// that others were.
    pub fn note_recovery(&self) {
        if !self.current_health().slow {
            self.observe(Observed { recovered: true, ..Observed::default() });
        }
    }

    /// Whether there is no address, or no secret to sign with.
    pub const fn has_no_target(&self) -> bool {
        matches!(self.target, EndpointTarget::Nowhere(_))
    }

    /// The name of its record, if that is deleted.
    pub fn deleted(&self) -> Option<&'static str> {
        match self.target {
            EndpointTarget::Nowhere(WEBHOOK_DELETED) => Some(Webhook::NAME),
            EndpointTarget::Nowhere(WIDGET_DELETED) => Some(Widget::NAME),
            _ => None,
        }
    }

    /// The widget whose connector it is.
    pub fn connector(&self) -> Option<WidgetId> {
        match &self.target {
            EndpointTarget::Known(target) => target.connector,
            EndpointTarget::Nowhere(_) | EndpointTarget::Later => None,
        }
    }

    /// Whether the message of a user comes with what is needed to answer it.
    pub const fn wants_context(&self) -> bool {
        matches!(self.target, EndpointTarget::Known(Target { context: true, .. }))
    }

    /// Whether the stream or the tick makes the next attempt of a delivery: the tick, if the circuit is open or the
    /// endpoint has a rate limit.
    pub fn retried_by(&self, now: Timestamp) -> SentBy {
        if self.circuit_is_open(now) || self.connector().is_some() { SentBy::Tick } else { SentBy::Stream }
    }

    /// Records that a delivery is deferred.
    pub fn note_deferral(&self, now: Timestamp) {
        if !self.current_health().has_noted_deferral(now) {
            self.observe(Observed { deferred_at: Some(now), ..Observed::default() });
        }
    }

    /// Disables a webhook that is gone, or that has failed for too long.
    pub async fn disable_if_failing(&self, gone: bool, now: Timestamp) -> Result<(), TableError> {
        let failing = self.current_health().has_failed_too_long(now);
        let reason = match (gone, failing) {
            (true, _) => DisabledReason::Gone,
            (false, true) => DisabledReason::Failing,
            _ => return Ok(()),
        };
        let EndpointTarget::Known(Target { url, connector: None, .. }) = &self.target else { return Ok(()) };
        let by = self.id.0;
        let disable = |webhook: &mut Webhook| webhook.disable(url, reason, now);
        match self.table.change(WebhookId(self.id.0), by, disable).await {
            Ok(_) | Err(TableError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Saves the observations, if they change the health.
    pub async fn keep_health(&self, now: Timestamp) -> Result<(), TableError> {
        let _saving = self.saving.lock().await;
        let (stored, unsaved) = {
            let mut health = self.lock();
            (health.stored.clone(), std::mem::take(&mut health.unsaved))
        };
        if stored.with(&unsaved) == stored {
            return Ok(());
        }
        let saved = health::keep(&self.table, &stored, &unsaved, self.read_at, now).await;
        let mut health = self.lock();
        match saved {
            Ok(stored) => {
                health.stored = stored;
                Ok(())
            }
            Err(error) => {
                health.unsaved = unsaved.then(health.unsaved);
                Err(error)
            }
        }
    }

    /// Moves the endpoint to the end of the tick's queue, or removes it if no delivery is deferred any more.
    pub async fn end_drain(&self, now: Timestamp) -> Result<(), TableError> {
        let waiting = delivery::deferred(&self.table, self.id, Timestamp::MAX, 1).await?;
        if !waiting.is_empty() {
            self.note_deferral(now);
        }
        self.keep_health(now).await?;
        let health = self.current_health();
        if health.may_have_deferred(now) {
            return health::drain_later(&self.table, &health, now).await;
        }
        if !health.looked {
            // The index may show a delivery late, or never.
            return health::recheck_at(&self.table, &health, now.plus_seconds(LOOK_AGAIN)).await;
        }
        // The health of an endpoint without a target is useless.
        let forget = self.has_no_target() || health.is_healthy(now);
        health::stop_draining(&self.table, &health, forget).await
    }

    /// Whether the last drain found the index empty.
    pub fn index_was_empty(&self) -> bool {
        self.current_health().looked
    }

    /// Its health, including observations that are not in the table yet.
    fn current_health(&self) -> EndpointHealth {
        let health = self.lock();
        health.stored.with(&health.unsaved)
    }

    /// Adds what was observed of it, such as the result of an attempt.
    pub fn observe(&self, observed: Observed) {
        let mut health = self.lock();
        health.unsaved = health.unsaved.then(observed);
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why nothing is sent if the webhook or the widget is deleted.
const WEBHOOK_DELETED: &str = "the webhook is deleted";
const WIDGET_DELETED: &str = "the widget is gone";
/// Why nothing is sent if a secret was changed or belongs elsewhere. Its owner can rotate it.
const UNOPENABLE: &str = "the secret that signs cannot be opened";

impl EndpointTarget {
    async fn load(table: &Table, id: EndpointId, connector: bool) -> Result<Self, TableError> {
        if connector { Self::connector(table, id).await } else { Self::webhook(table, id).await }
    }

    /// Opens the secrets of `record`. Where that fails, only the deliveries of its endpoint wait.
    ///
    /// # Errors
    /// The target of these deliveries instead.
    async fn open<R: Stored>(table: &Table, record: &mut R) -> Result<(), Self> {
        table.open(record).await.map_err(|error| {
            tracing::error!(org = %table.tenant.org(), cause = %error, "the secrets of an endpoint cannot be opened");
            match error {
                SealingError::Unavailable(_) | SealingError::Refused(_) => Self::Later,
                SealingError::Unopenable(_) => Self::Nowhere(UNOPENABLE),
            }
        })
    }

    async fn webhook(table: &Table, id: EndpointId) -> Result<Self, TableError> {
        let Some(mut webhook) = table.find::<Webhook>(WebhookId(id.0)).await? else {
            return Ok(Self::Nowhere(WEBHOOK_DELETED));
        };
        if !webhook.enabled {
            return Ok(Self::Nowhere("the webhook is disabled"));
        }
        if webhook.endpoint.is_empty() {
            return Ok(Self::Nowhere("the webhook has no endpoint"));
        }
        if let Err(instead) = Self::open(table, &mut webhook).await {
            return Ok(instead);
        }
        let Webhook { endpoint: url, secrets: own, context, .. } = webhook;
        Ok(Self::Known(Target { url, own, former: Vec::new(), connector: None, context }))
    }

    /// A connector that was set before widgets had secrets knows only those of the webhook of the widget's assistant.
    async fn connector(table: &Table, id: EndpointId) -> Result<Self, TableError> {
        let widget = table.find::<Widget>(WidgetId(id.0)).await?;
        let Some(mut widget) = widget else { return Ok(Self::Nowhere(WIDGET_DELETED)) };
        let Some(url) = widget.connector_url.clone() else { return Ok(Self::Nowhere("the widget has no connector")) };
        let assistant = match widget.assistant_id {
            Some(id) => table.find::<Assistant>(id).await?,
            None => None,
        };
        let mut webhook = match assistant.and_then(|assistant| assistant.webhook_id) {
            Some(id) => table.find::<Webhook>(id).await?,
            None => None,
        };
        let mut opened = Self::open(table, &mut widget).await;
        if let (Ok(()), Some(webhook)) = (&opened, &mut webhook) {
            opened = Self::open(table, webhook).await;
        }
        if let Err(instead) = opened {
            return Ok(instead);
        }
        let (own, former) = (widget.secrets, webhook.map_or_else(Vec::new, |webhook| webhook.secrets));
        if own.is_empty() && former.is_empty() {
            return Ok(Self::Nowhere("the widget's assistant has no webhook, whose secret would sign"));
        }
        Ok(Self::Known(Target { url, own, former, connector: Some(widget.id), context: false }))
    }
}

impl Target {
    /// The secrets that sign at `now`.
    pub fn secrets(&self, now: Timestamp) -> Vec<&Secret> {
        let mut secrets = SigningSecret::signing(&self.own, now);
        if secrets.is_empty() || now.unix_seconds() < BOTH_SIGN_UNTIL {
            secrets.extend(SigningSecret::signing(&self.former, now));
        }
        secrets
    }
}
