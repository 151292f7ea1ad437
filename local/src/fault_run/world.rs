//! The world of a fault run: the service, its customers with their servers and clocks, and the actions of all of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use embedded_dynamodb::partitions::{Counting, Partitions};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::records::delivery::Delivery;
use shared::routes;
use shared::table::Table;
use shared::table::keys::Key;
use shared::values::id::{AssistantId, ContactId, ConversationId, DeliveryId, Ids, OrgId, Seed, WebhookId, WidgetId};
use shared::values::secret::Secret;
use shared::values::tenant::Tenant;
use shared::values::time::{Clock, Timestamp};
use tokio::sync::{Mutex as AsyncMutex, RwLock};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::api::ApiRequest;
use crate::event_source::StreamFaults;
use crate::fault_run::FaultRunOptions;
use crate::fault_run::captured::{Capturable, Capture};
use crate::fault_run::exported::MadeExport;
use crate::fault_run::outcomes::SentReports;
use crate::fault_run::plan::{ORGANISATIONS, Plan};
use crate::faults::{Fault, Faults};
use crate::lambda::{Freeze, Function, invoke};
use crate::receiver::Receiver;
use crate::stack::{Settings, Stack};
use crate::template::Template;
use crate::{Trouble, database};

/// When a run begins: 2026-02-01T12:00:00Z.
const BEGINNING: i64 = 1_769_947_200_000;
/// The time between two ticks of a schedule.
pub const MINUTE: Duration = Duration::from_mins(1);
/// Contacts that a call imports; the API takes no more.
const IMPORTED_AT_ONCE: usize = 500;
/// Seconds of the service's clock from which a tick counts as long.
pub const LONG_TICK: i64 = 35;
/// The most real time by which one step advances the clock. Later steps do not make up for the rest.
const LATEST: Duration = Duration::from_millis(5);
/// The time between two checks whether the service is idle.
const GLANCE: Duration = Duration::from_millis(10);
/// The largest difference between the clocks of two environments, in milliseconds.
const CLOCKS_APART: i64 = 2000;
/// Organisations that are prepared at the same time, with so many calls each.
const CALLS_AT_ONCE: usize = 4;

/// The complete world.
pub struct World {
    /// The plan of the run.
    pub plan: Plan,
    /// The service.
    pub stack: Stack,
    /// The customers' servers.
    pub receiver: Receiver,
    /// The time.
    pub clock: Clock,
    /// The customers.
    pub organisations: Vec<Organisation>,
    /// The webhooks of the plan.
    pub webhooks: Vec<KnownWebhook>,
    /// The conversations of the plan.
    pub conversations: Vec<ConversationId>,
    /// The widgets and contacts of the plan's campaigns, before they run.
    pub channels: Vec<Channel>,
    /// The form and the intent of each organisation.
    pub capturable: Vec<Capturable>,
    /// What was captured.
    pub captures: Mutex<Vec<Capture>>,
    /// The exports.
    pub exports: AsyncMutex<Vec<MadeExport>>,
    /// What the connectors have reported.
    pub reports: Mutex<SentReports>,
    faults: Faults,
    /// The units that the functions take of the partitions of the table.
    pub partitions: Partitions,
    ticking: Vec<Function>,
    ticks: Mutex<StreamFaults>,
    pub(super) calls: AtomicU64,
    /// Each call of the API locks it for reading, so a write lock succeeds only if no caller waits for an answer.
    pub(super) calling: RwLock<()>,
    /// The number of ticks that crashed or failed: each may have sent an event without a record of it.
    pub failed_ticks: AtomicUsize,
    /// The number of minutes with ticks so far.
    minutes: AtomicUsize,
    /// The number of ticks that took so long that markers and leases expired in the meantime.
    pub long_ticks: AtomicUsize,
}

/// A customer.
pub struct Organisation {
    table: Table,
    pub(super) key: String,
}

/// A webhook, with the knowledge of its owner.
pub struct KnownWebhook {
    /// Its id.
    pub id: WebhookId,
    /// Its signing secret.
    pub secret: Secret,
    /// Its assistant.
    pub assistant: AssistantId,
    /// The widget through which calls with the assistant are held.
    pub phone: WidgetId,
}

/// The widget and the contacts of a campaign.
pub struct Channel {
    /// The widget.
    pub widget: WidgetId,
    /// The signing secret of its connector, if it has one.
    pub secret: Option<Secret>,
    /// The contacts.
    pub contacts: Vec<ContactId>,
}

impl World {
    /// Prepares everything, without faults: webhooks, assistants, widgets, contacts, and open conversations.
    ///
    /// # Errors
    /// [`Trouble`] with the service.
    pub async fn prepare(plan: Plan, options: &FaultRunOptions) -> Result<Arc<Self>, Trouble> {
        let (faults, partitions) = (Faults::default(), Partitions::new(Counting::Counted));
        let clock = Clock::at(Timestamp::from_unix_millis(BEGINNING));
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&plan.seed.to_be_bytes());
        let settings = Settings {
            demo: None,
            clock: clock.clone(),
            // Counted ids of two organisations may be the same, because an ordinal replaces most of the count.
            ids: Ids::Seeded(Seed::new(&secret)),
            faults: faults.clone(),
            partitions: partitions.clone(),
            attempt: options.call,
            sends_per_second: options.sends_per_second,
            network: Network::new(Reach::Loopback, Arc::new(SystemLookup), options.attempt),
            processes: true,
            clocks_apart: CLOCKS_APART,
            ..Settings::of(&options.root)
        };
        let template = Template::read(&settings.template)?;
        let stack = Stack::start(settings).await?;
        let ticking = template.schedules.iter().map(|schedule| stack.gateway.event_function(&schedule.function));
        let ticking = ticking.collect::<Result<_, _>>()?;
        let mut world = Self {
            plan,
            stack,
            receiver: Receiver::start().await?,
            clock,
            organisations: Vec::new(),
            webhooks: Vec::new(),
            conversations: Vec::new(),
            channels: Vec::new(),
            capturable: Vec::new(),
            captures: Mutex::default(),
            exports: AsyncMutex::default(),
            reports: Mutex::default(),
            faults,
            partitions,
            ticking,
            ticks: Mutex::default(),
            calls: AtomicU64::default(),
            calling: RwLock::default(),
            failed_ticks: AtomicUsize::default(),
            minutes: AtomicUsize::default(),
            long_ticks: AtomicUsize::default(),
        };
        for number in 0..ORGANISATIONS {
            world.organisations.push(world.found(number).await?);
            world.subscribe(number).await?;
            world.capturable.push(Capturable::made(&world, number).await?);
        }
        for number in 0..world.plan.webhooks.len() {
            world.webhooks.push(world.register(number).await?);
        }
        for number in 0..world.plan.campaigns.len() {
            world.channels.push(world.invite(number).await?);
        }
        world.open_conversations().await
    }

    async fn open_conversations(self) -> Result<Arc<Self>, Trouble> {
        let world = Arc::new(self);
        let count = world.plan.conversations.len();
        let opened = at_once(&world, ORGANISATIONS * CALLS_AT_ONCE, 0..count, |world, number| async move {
            world.converse(number).await
        });
        let opened = opened.await?;
        // All tasks have ended, so this is the only reference.
        let mut world = Arc::into_inner(world).ok_or_else(|| Trouble("a task still prepares".into()))?;
        world.conversations = opened;
        Ok(Arc::new(world))
    }

    async fn found(&self, number: usize) -> Result<Organisation, Trouble> {
        let input = json!({"name": format!("Organisation {number}")}).to_string();
        let answer = self.stack.gateway.invoke_by_name("issue-api-key", input.as_bytes()).await;
        let issued: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let store = self.stack.store();
        let org: OrgId = member(&issued, "org_id")?;
        #[expect(clippy::disallowed_methods, reason = "who runs the stack is its operator")]
        let tenant = Tenant::operator(org);
        Ok(Organisation { table: Table::new(store, tenant), key: member(&issued, "api_key")? })
    }

    async fn register(&self, number: usize) -> Result<KnownWebhook, Trouble> {
        let organisation = self.plan.webhooks[number].organisation;
        let address = format!("{}{}", self.receiver.url, path_of_webhook(number));
        let make = async |route, body| self.make(organisation, ApiRequest::of(route).body(&body)).await;
        let webhook = make(&routes::CREATE_WEBHOOK, json!({"endpoint": address})).await?;
        let id: WebhookId = member(&webhook, "id")?;
        let assistant = make(&routes::CREATE_ASSISTANT, json!({"webhook_id": id})).await?;
        let phone = json!({"assistant_id": assistant["id"], "widget_type": "phone"});
        let phone = make(&routes::CREATE_WIDGET, phone).await?;
        let (secret, assistant) = (member(&webhook, "secret")?, member(&assistant, "id")?);
        Ok(KnownWebhook { id, secret, assistant, phone: member(&phone, "id")? })
    }

    /// A campaign's widget, and its contacts.
    async fn invite(&self, number: usize) -> Result<Channel, Trouble> {
        let run = &self.plan.campaigns[number];
        let organisation = self.plan.webhooks[run.webhook].organisation;
        let widget = json!({
            "assistant_id": self.webhooks[run.webhook].assistant,
            "widget_type": run.channel,
            "opening_message": "Hello",
            "connector_url": run.connector.map(|_| format!("{}{}", self.receiver.url, path_of_connector(number))),
        });
        let made = self.make(organisation, ApiRequest::of(&routes::CREATE_WIDGET).body(&widget)).await?;
        let (widget, secret) = (member(&made, "id")?, member(&made, "secret")?);
        let contact = |place: usize| json!({"first_name": format!("Contact {place}"), "phone_number": format!("+312{number:03}{place:06}")});
        let mut contacts = Vec::new();
        for first in (0..run.contacts).step_by(IMPORTED_AT_ONCE) {
            let some: Vec<Value> = (first..run.contacts).take(IMPORTED_AT_ONCE).map(contact).collect();
            let import = ApiRequest::of(&routes::IMPORT_CONTACTS).body(&json!({"contacts": some}));
            let made = self.make(organisation, import).await?;
            for item in made["items"].as_array().into_iter().flatten() {
                contacts.push(member(item, "id")?);
            }
        }
        Ok(Channel { widget, secret, contacts })
    }

    async fn converse(&self, number: usize) -> Result<ConversationId, Trouble> {
        let conversation = self.plan.conversations[number];
        let organisation = self.plan.webhooks[conversation.webhook].organisation;
        let webhook = &self.webhooks[conversation.webhook];
        let phone = conversation.is_call.then_some(webhook.phone);
        let body = json!({"assistant_id": webhook.assistant, "widget_id": phone});
        let opened = self.make(organisation, ApiRequest::of(&routes::OPEN_CONVERSATION).body(&body)).await?;
        let id: ConversationId = member(&opened, "id")?;
        if conversation.has_messages {
            let words = json!({"sender_type": "user", "text": format!("Until when are you open? ({number})")});
            let add = ApiRequest::of(&routes::ADD_MESSAGE).parameter("conversation_id", id).body(&words);
            self.make(organisation, add).await?;
        }
        Ok(id)
    }

    /// Begins the faults of `options`.
    pub fn start_faults(&self, options: &FaultRunOptions) {
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        let freeze = Some(self.freeze(Duration::from_secs(LONG_TICK.unsigned_abs() + 2)));
        let stream = StreamFaults { random: random.fork(), freeze, ..options.stream.clone() };
        self.stack.stream.set_faults(&stream);
        *self.ticks.lock().unwrap_or_else(PoisonError::into_inner) = StreamFaults { random: random.fork(), ..stream };
        self.faults.set_latency(options.latency);
        // The load of the preparation is left out.
        self.partitions.forget();
        self.partitions.set(Counting::Throttled(options.partitions));
        let kinds = options.database.clone();
        self.faults.plan(move |_, _| {
            let mut roll = random.f64();
            let fault = kinds.iter().find(|(probability, _)| {
                roll -= probability;
                roll < 0.0
            });
            fault.map_or(Fault::None, |(_, fault)| *fault)
        });
    }

    /// Sets the duration of a freeze from now on.
    pub fn set_freeze(&self, time: Duration) {
        let freeze = self.freeze(time);
        self.stack.stream.set_freeze(&freeze);
        self.ticks.lock().unwrap_or_else(PoisonError::into_inner).freeze = Some(freeze);
    }

    /// A freeze that lasts for `time` of the service's clock.
    fn freeze(&self, time: Duration) -> Freeze {
        Freeze { time, clock: self.clock.clone() }
    }

    /// Ends all faults.
    pub fn stop_faults(&self) {
        self.stack.stream.set_faults(&StreamFaults::default());
        self.faults.end();
        self.faults.set_latency(Duration::ZERO);
        self.partitions.set(Counting::Off);
    }

    /// The number of requests that the SDK has sent since the faults began.
    pub fn requests(&self) -> usize {
        self.faults.number_of_requests()
    }

    /// A tick of all functions with a schedule; some of them are killed. Returns the number of failures.
    pub async fn minute(&self) -> usize {
        let minute = self.minutes.fetch_add(1, Ordering::Relaxed);
        let ticks = self.ticking.iter().enumerate().map(async |(number, function)| {
            // In any run, one tick of each function is frozen.
            let fate = {
                let mut faults = self.ticks.lock().unwrap_or_else(PoisonError::into_inner);
                if minute == number { faults.frozen() } else { faults.fate() }
            };
            let begun = self.clock.now();
            let ticked = invoke(function, json!({"source": "aws.events", "detail": {}}).to_string(), fate).await;
            if ticked.is_ok() && self.clock.now() >= begun.plus_seconds(LONG_TICK) {
                self.long_ticks.fetch_add(1, Ordering::Relaxed);
            }
            ticked.is_err()
        });
        let failed = join_all(ticks).await.into_iter().filter(|failed| *failed).count();
        self.failed_ticks.fetch_add(failed, Ordering::Relaxed);
        failed
    }

    /// Advances the clock this many times faster than real time, until the returned guard is dropped. If a busy machine
    /// runs this task late, the clock slows down. Otherwise leases would expire while their holders wait for a
    /// processor.
    pub fn run_clock(&self, times: u32) -> JoinSet<()> {
        let clock = self.clock.clone();
        JoinSet::from_iter([async move {
            let (mut ticks, mut last) = (interval(Duration::from_millis(2)), Instant::now());
            loop {
                ticks.tick().await;
                let passed = last.elapsed();
                last += passed;
                pass(&clock, passed.min(LATEST) * times);
            }
        }])
    }

    /// Runs the functions on the stream, and in each minute of the clock those on schedules, until the returned guard is
    /// dropped. If no function calls the database for the time `idle`, and no caller waits for an answer, the clock
    /// advances to the next minute.
    pub fn run_in_background(self: &Arc<Self>, idle: Duration) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.stack.stream).run(std::future::pending()));
        let world = Arc::clone(self);
        tasks.spawn(async move {
            let (mut ticks, mut calls, mut quiet) = (JoinSet::new(), 0, Duration::ZERO);
            loop {
                let (next, minute) = (world.clock.now().plus_seconds(60), Arc::clone(&world));
                ticks.spawn(async move { minute.minute().await });
                while world.clock.now() < next {
                    sleep(GLANCE).await;
                    while ticks.try_join_next().is_some() {}
                    let before = std::mem::replace(&mut calls, world.requests());
                    let is_quiet = calls == before && world.calling.try_write().is_ok();
                    // This counts checks, not time: a busy machine delays the functions too, and they would seem idle.
                    quiet = if is_quiet { quiet + GLANCE } else { Duration::ZERO };
                    if quiet > idle {
                        world.skip_to(next);
                    }
                }
            }
        });
        tasks
    }

    /// The key of a delivery of a webhook of the plan.
    pub fn key_of_delivery(&self, webhook: usize, id: DeliveryId) -> Key {
        let organisation = &self.organisations[self.plan.webhooks[webhook].organisation];
        organisation.table.key::<Delivery>((self.webhooks[webhook].id.into(), id))
    }

    /// Moves the clock forward.
    pub fn skip(&self, time: Duration) {
        pass(&self.clock, time);
    }

    /// Moves the clock forward to `then`, unless it is later already.
    pub fn skip_to(&self, then: Timestamp) {
        let millis = then.unix_millis() - self.clock.now().unix_millis();
        self.skip(Duration::from_millis(u64::try_from(millis).unwrap_or_default()));
    }

    /// Each partition of the index that has an item, with the time of the first one, without the health of endpoints.
    ///
    /// # Errors
    /// [`Trouble`] with the database.
    pub fn due(&self) -> Result<Vec<(String, Timestamp)>, Trouble> {
        let first = database::first_due(&self.stack.database)?.into_iter();
        let of_health = |item: &Value| item["due_pk"]["S"].as_str().is_some_and(|name| name.starts_with("ENDPOINT#"));
        let due = first.filter(|item| !of_health(item));
        due.map(|item| Ok((member(&item["due_pk"], "S")?, member(&item["due_at"], "S")?))).collect()
    }

    /// When the next item becomes due; `None` if there is none.
    ///
    /// # Errors
    /// [`Trouble`] with the database.
    pub fn next_due(&self) -> Result<Option<Timestamp>, Trouble> {
        Ok(self.due()?.into_iter().map(|(_, at)| at).min())
    }
}

/// Executes `work` for each of `numbers`, `width` of them at the same time. Returns the results in their order.
///
/// # Errors
/// The first [`Trouble`].
pub async fn at_once<T: Send + 'static, W: Future<Output = Result<T, Trouble>> + Send + 'static>(
    world: &Arc<World>,
    width: usize,
    numbers: impl IntoIterator<Item = usize>,
    work: impl Fn(Arc<World>, usize) -> W,
) -> Result<Vec<T>, Trouble> {
    let begin = |number| {
        let task = tokio::spawn(work(Arc::clone(world), number));
        async move { task.await.map_err(|error| Trouble(error.to_string()))? }
    };
    stream::iter(numbers).map(begin).buffered(width).try_collect().await
}

/// The path of the webhook with this number.
pub fn path_of_webhook(number: usize) -> String {
    format!("/webhook/{number}")
}

/// The path of the connector of the campaign with this number.
pub fn path_of_connector(number: usize) -> String {
    format!("/connector/{number}")
}

/// A member of an answer.
///
/// # Errors
/// [`Trouble`] shows the answer.
pub fn member<T: DeserializeOwned>(value: &Value, name: &str) -> Result<T, Trouble> {
    serde_json::from_value(value[name].clone()).map_err(|error| Trouble(format!("{name}: {error} in {value}")))
}

fn pass(clock: &Clock, time: Duration) {
    if let Clock::Manual(millis) = clock {
        millis.fetch_add(i64::try_from(time.as_millis()).unwrap_or_default(), Ordering::SeqCst);
    }
}
