//! Measures the cost of each operation and compares it with `docs/COST.md`.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use embedded_dynamodb::partitions::{Counting, Partitions, Unit};
use local::faults::Faults;
use local::http::Call;
use local::receiver::Behaviour;
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::delivery::Delivery;
use shared::records::widget::WidgetType;
use shared::routes;
use shared::table::keys::Key;
use shared::table::meter::Cost;
use shared::table::stored::Listed as _;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::exercises::{EXERCISES, Exercise};
use crate::support::fixture::{ACME, ACME_READ_ONLY, call, data, settings, stack, valid_call};
use crate::support::generated::{generated, generated_in_part};
use crate::support::sender::{Sender, all};
use crate::support::sending::{Setup, events, id_of, loopback};
use crate::support::sweep::{cases, takes_all};

const HEAD: &str = "\
# What an operation costs

This page says what each operation asks of the table. Use it to estimate a bill, or to see what a change made more expensive. [Prices](OPERATIONS.md#cost) are in dollars.

A row has the name of the operation, with the case if there are several, and four figures:

- *Calls* are the calls of DynamoDB, without retries.
- *Depth* is the number of these calls that wait for one another. Each takes about 3 ms in the same region, so a depth of 3 takes about 9 ms.
- *Read units* and *write units* are capacity units as AWS bills them, for the small records of the demo set. Larger records cost in proportion, per 4 KB read and per
  1 KB written.

`cargo generate` writes the figures from measurements on the local stack. A test measures again and compares.

All rows are of a warm function that has seen the key in the last 5 seconds. Three cases cost more:

- The first request of a key adds one call, one to the depth, and one read unit.
- The first request of a key on a day adds another call, one to the depth, and one write unit, in each process
  ([ADR 47](adr/0047-customers-manage-their-keys.md)).
- If one process answers more than a hundredth of the key's limit, about one request a second adds a call, one to the depth and a write unit
  ([ADR 26](adr/0026-limits-per-key.md)).

*The first of a process* is the first append of a process to a list: the process asks about the list first.

| Operation | Calls | Depth | Read units | Write units |
| --- | ---: | ---: | ---: | ---: |
";

const OBJECTS: &str = "
The calls do not include requests to S3. A request to S3 takes some 20 ms, and the function sends it after all calls of the table:

";

const WHOLE: &str = "
## With all that follows

A row of the table above is the request alone. The functions on the stream and on schedules do the rest: they update filters, make and
send events, and continue campaigns. The table below has the sum, in two cases:

- The request comes alone.
- The request is one of fifty that come at the same time (*each of 50*). The functions on the stream handle the changes together.

The columns mean:

- *Requests* are sent by a caller.
- *Invocations* are those of the functions on the stream and on schedules.
- *Units* are rounded to the nearest half.

What the rows include:

- The rows of a campaign include its two ticks.
- A further attempt includes the tick that finds it.
- All rows include [counts over time](ANALYTICS.md). A change that counts takes 4 write units alone, and 2 to 2.4 in a batch of 100.

What events cost:

- An organisation without a webhook pays nothing for events. Each process of the function on the stream reads its webhooks once in 30 seconds, with
  one call of one read unit, if a record of it changes. At 500 changes a second that is some seven calls for 10,000 changes.
- With a webhook, the log takes some four write units for an event alone, and 2.3 in a batch of 100. A delivery of it takes six or five more until it is sent.
- While lanes of the stream write to the log at the same time, transactions are refused and made again. At 500 changes a second an event took 4.4 units
  ([figures](performance.json)).

| What | Requests | Invocations | Read units | Write units |
| --- | ---: | ---: | ---: | ---: |
";

/// The number of conversations, contacts or deliveries that come at the same time: as many as the stream sends at once for
/// one organisation. Further ones would wait for two seconds at most, and then cost more on a slow machine.
const MANY: u32 = 50;
/// The default of the template: with the audit list, requests write a little more.
const AUDIT_DAYS: u32 = 400;
/// The time limit of an attempt. An answer is slow if it takes a fifth of it, so here none is.
const ATTEMPT: Duration = Duration::from_mins(5);

/// The cost of `call`, with its key already known.
async fn warm(stack: &Stack, call: &Call) -> Cost {
    let (method, path) = ("GET".into(), "/api/v1/user/get_agent_list/".into());
    stack.answer(&Call { method, path, query: call.query.clone(), ..Call::default() }).await;
    let answer = stack.answer(call).await;
    assert!(answer.status < 300, "{} {}", call.path, answer.body);
    answer.cost
}

#[tokio::test]
async fn the_table_of_costs_has_the_measured_costs() {
    let (mut table, mut objects) = (String::new(), String::new());
    let mut row = |name: &str, cost: Cost| {
        let Cost { calls, depth, read_units, write_units } = cost;
        table += &format!("| {name} | {calls} | {depth} | {read_units} | {write_units} |\n");
    };
    for Exercise { route, costs, first_costs_more, .. } in cases(EXERCISES) {
        let (name, faults) = (route.name, Faults::default());
        let stack =
            Stack::start(Settings { faults: faults.clone(), audit_days: AUDIT_DAYS, ..settings() }).await.unwrap();
        let first = if *first_costs_more { Some(warm(&stack, &valid_call(route, 'a', ACME)).await) } else { None };
        let mut calls = costs();
        if calls.is_empty() {
            calls.push(("", valid_call(route, 'a', ACME)));
        }
        for (which, call) in calls {
            row(&format!("`{name}`{which}"), warm(&stack, &call).await);
        }
        let requests: BTreeSet<_> = faults.requests().into_iter().filter(|action| action.ends_with("Object")).collect();
        objects.extend(requests.into_iter().map(|action| format!("- `{name}`: one `{action}`\n")));
        // A process reads the head of a list only before its first insert.
        if let Some(first) = first {
            row(&format!("`{name}`, the first of a process"), first);
        }
    }
    let whole = Whole::rows().await;
    if takes_all() {
        generated("docs/COST.md", &[HEAD, &table, OBJECTS, &objects, WHOLE, &whole].concat());
    } else {
        generated_in_part("docs/COST.md", &[table, objects, whole].concat());
    }
}

/// A service whose requests, invocations and units are all counted.
struct Whole {
    sender: Sender,
    partitions: Partitions,
    rows: String,
}

impl Whole {
    async fn rows() -> String {
        let partitions = Partitions::default();
        let counted = partitions.clone();
        // With one lane, concurrent changes are handled together in each run.
        let settings = |settings| Settings {
            partitions: counted,
            lanes: Some(1),
            audit_days: AUDIT_DAYS,
            sends_per_second: MANY,
            network: loopback(ATTEMPT),
            ..settings
        };
        let setup = Setup::with(settings).await;
        let sender = Sender::of(setup, WidgetType::Whatsapp, true, MANY as usize).await;
        let mut whole = Self { sender, partitions, rows: String::new() };
        let with_event = whole.sender.assistant.clone();
        let without = whole.sender.setup.post(&whole.sender.org, "/api/v1/assistant", json!({})).await;
        let conversations = [
            ("", &without, "agency.deleted"),
            (", its event delivered", &with_event, "agency.deleted"),
            (", its events sent to a webhook that subscribes", &without, "conversation.*"),
        ];
        for (case, assistant, wanted) in conversations {
            whole.subscribe(wanted).await;
            // The first conversation also makes the heads of lists.
            whole.converse(assistant, 1).await;
            for count in [1, MANY] {
                whole.begin().await;
                whole.converse(assistant, count).await;
                whole.end(&format!("a conversation with a contact, opened and closed{case}"), count, 2 * count);
            }
        }
        let received = whole.sender.setup.receiver.received("/webhook");
        let closed = 1 + 1 + MANY as usize;
        assert_eq!(events(&received).len(), closed + 2 * closed, "the events are not the ones of the last two cases");
        whole.subscribe("agency.deleted").await;
        whole.further_attempt().await;
        whole.campaign(1).await;
        for count in [1, MANY] {
            whole.begin().await;
            let id = whole.campaign(count).await;
            whole.end("a contact of a campaign with a connector", count, 1);
            assert_eq!(whole.sender.outcome(&id).await, all("sent", count as usize));
        }
        whole.sender.setup.pass(31 * 86_400);
        for count in [1, MANY] {
            whole.begin().await;
            whole.expire(count).await;
            whole.end("the expiry of a delivery", count, 0);
        }
        whole.rows
    }

    /// Has the webhook subscribe to this type of events alone.
    async fn subscribe(&self, wanted: &str) {
        let Sender { setup, org, assistant, .. } = &self.sender;
        let path = format!("/api/v1/outbound_webhook/{}", assistant["webhook_id"].as_str().unwrap());
        data(&setup.ask(org, "PUT", &path, &json!({"events": [wanted]})).await);
        setup.settle().await;
    }

    /// Finishes all pending work and begins to count.
    async fn begin(&self) {
        self.sender.setup.minutes(1).await;
        self.count();
    }

    /// Begins to count.
    fn count(&self) {
        self.partitions.set(Counting::Counted);
        self.partitions.forget();
        self.sender.setup.stack.gateway.invocations.store(0, Ordering::Relaxed);
    }

    /// Adds a row with the counts since [`Whole::begin`], divided by `count`.
    fn end(&mut self, case: &str, count: u32, requests: u32) {
        let each = |total: f64, parts: f64| (total / f64::from(count) * parts).round() / parts + 0.0;
        let heat = self.partitions.heat();
        // Concurrent last deliveries of a campaign read it again a random number of times, so units are rounded.
        let units = |unit| {
            let all: f64 = heat.iter().filter(|(of, _)| of.unit == unit).map(|(_, heat)| heat.units).sum();
            each(all, 2.0)
        };
        let (read, written) = (units(Unit::Read), units(Unit::Write));
        let invocations = each(f64::from(self.sender.setup.stack.gateway.invocations.load(Ordering::Relaxed)), 100.0);
        let (requests, each) =
            (each(f64::from(requests), 100.0), if count == 1 { String::new() } else { format!(", each of {count}") });
        self.rows += &format!("| {case}{each} | {requests} | {invocations} | {read} | {written} |\n");
    }

    async fn converse(&self, assistant: &Value, count: u32) {
        let Sender { setup, org, widget, .. } = &self.sender;
        let contact = self.sender.contacts()[0];
        let body = json!({"assistant_id": assistant["id"], "widget_id": widget.id, "contact_id": contact});
        for _ in 0..count {
            let conversation = setup.post(org, "/api/v1/conversation", body.clone()).await;
            setup.close(org, &conversation).await;
        }
        setup.settle().await;
    }

    /// Measures the second attempt at an event, which succeeds.
    async fn further_attempt(&mut self) {
        self.sender.setup.receiver.behave("/webhook", Behaviour::Recovering { failures: 1, then: 200 });
        self.converse(&self.sender.assistant, 1).await;
        let waiting = self.waiting().await;
        self.count();
        let Sender { setup, .. } = &self.sender;
        setup.clock.set(waiting.unwrap());
        setup.stack.tick("release-deliveries").await.unwrap();
        setup.settle().await;
        self.end("a further attempt at an event", 1, 0);
        assert_eq!(self.waiting().await, None);
    }

    /// Expires `count` deliveries of the webhook.
    async fn expire(&self, count: u32) {
        let Sender { setup, webhook, .. } = &self.sender;
        let (list, mut left) = (Delivery::list(id_of(webhook).parse::<Uuid>().unwrap().into()), count);
        let mut chosen = |key: &Key| {
            let is_chosen = left > 0 && key.pk.contains(&list);
            left -= u32::from(is_chosen);
            is_chosen
        };
        assert_eq!(setup.stack.expire(&mut chosen).unwrap(), count as usize);
        setup.settle().await;
    }

    /// The time of the next attempt, if a delivery waits.
    async fn waiting(&self) -> Option<Timestamp> {
        let Sender { setup, org, webhook, .. } = &self.sender;
        setup.outbox(org, webhook).await.into_iter().find_map(|delivery| delivery.due_at)
    }

    /// Sends a campaign to `count` contacts and returns its id.
    async fn campaign(&self, count: u32) -> String {
        let Sender { setup, .. } = &self.sender;
        // The same request within ten minutes would be a repeat.
        setup.pass(3600);
        let id = self.sender.run_for(&self.sender.contacts()[..count as usize], json!({})).await;
        setup.settle().await;
        for _ in 0..2 {
            setup.pass(60);
            setup.stack.tick("send-campaigns").await.unwrap();
            setup.settle().await;
        }
        id
    }
}

#[tokio::test]
async fn each_operation_has_depth_three_or_less_and_a_new_key_adds_two() {
    for route in cases(routes::ALL) {
        let call = valid_call(route, 'a', ACME);
        let cold = stack().await.answer(&call).await.cost;
        let warm = warm(&stack().await, &call).await;
        // The function has the catalogue of models and the types of events itself.
        let least = u32::from(![routes::LIST_LLM_MODELS.name, routes::LIST_EVENT_TYPES.name].contains(&route.name));
        // A recovery compares the log with the deliveries, step by step.
        // An import of suppressions makes them hold for all dispatches after it has written them. The custom fields of
        // contacts are read first, once in half a minute.
        let most = match **route {
            routes::RECOVER_WEBHOOK => 10,
            routes::IMPORT_SUPPRESSIONS | routes::UPSERT_CONTACT | routes::IMPORT_CONTACTS => 4,
            _ => 3,
        };
        assert!((least..=most).contains(&warm.depth), "{} {warm:?}", route.name);
        // The process reads the key, and notes its use on this day.
        assert_eq!((cold.calls, cold.depth), (warm.calls + 2, warm.depth + 2), "{}", route.name);
        let units = (warm.read_units + 1.0, warm.write_units + 1.0);
        assert_eq!((cold.read_units, cold.write_units), units, "{}", route.name);
    }
}

#[tokio::test]
async fn a_refusal_without_a_look_up_costs_nothing() {
    let stack = stack().await;
    for key in ["", "in-short", "xx-demo-acme-admin-000000000000000000000000000"] {
        let answer = stack.answer(&call("DELETE", "/api/v1/tag/x", key)).await;
        assert_eq!((answer.status, answer.cost), (401, Cost::default()), "{key}");
    }
    let read_only = call("DELETE", "/api/v1/tag/x", ACME_READ_ONLY);
    assert_eq!(stack.answer(&read_only).await.cost.calls, 2);
    assert_eq!(stack.answer(&read_only).await.cost, Cost::default(), "a cached key cost a call");
}
