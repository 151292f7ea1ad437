//! `POST /api/v1/widget/{widget_id}/rotate_secret`: replaces the secret of a connector, which signs for one more day.

use local::receiver::Received;
use serde_json::{Value, json};
use shared::values::time::Timestamp;

use crate::support::fixture::{ACME, ACME_READ_ONLY, call, data, id, kind, post, stack};
use crate::support::sending::{Org, Setup, id_of, is_signed_with};

const DAY: i64 = 86_400;
/// The end of the time in which both sign, in milliseconds since 1970.
const END: i64 = 1_811_721_600_000;

/// A connector, with the secret of the webhook whose secret signs for it too.
struct Connector {
    setup: Setup,
    org: Org,
    widget: Value,
    webhook: Value,
}

impl Connector {
    /// A widget that was made with a connector.
    async fn new() -> Self {
        let setup = Setup::start().await;
        let org = setup.org().await;
        let webhook = setup.webhook(&org, "/webhook").await;
        let assistant = setup.assistant(&org, &webhook).await;
        let url = format!("{}/connector", setup.receiver.url);
        let body = json!({"widget_type": "sms", "assistant_id": assistant["id"], "connector_url": url});
        let widget = setup.post(&org, "/api/v1/widget", body).await;
        Self { setup, org, widget, webhook }
    }

    async fn rotate(&self) -> Value {
        let path = format!("/api/v1/widget/{}/rotate_secret", id_of(&self.widget));
        self.setup.post(&self.org, &path, Value::Null).await["secret"].clone()
    }

    /// The newest event that the connector got, after a message was sent.
    async fn event(&self) -> Received {
        let path = format!("/api/v1/messaging/{}", id_of(&self.widget));
        self.setup.post(&self.org, &path, json!({"to": "+491512345678", "message": "Hello"})).await;
        self.setup.settle().await;
        // A connector has a rate limit, so the tick may send the event.
        self.setup.minutes(1).await;
        self.setup.receiver.received("/connector").pop().unwrap()
    }

    /// Which of these secrets have signed the next event.
    async fn signed_by<const N: usize>(&self, secrets: [&Value; N]) -> [bool; N] {
        let event = self.event().await;
        secrets.map(|secret| is_signed_with(&event, secret))
    }
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_and_the_webhooks_until_its_end() {
    let connector = Connector::new().await;
    let (first, of_webhook) = (connector.widget["secret"].clone(), connector.webhook["secret"].clone());
    assert_eq!(connector.signed_by([&first, &of_webhook]).await, [true, true]);
    let second = connector.rotate().await;
    assert_eq!(connector.signed_by([&first, &second, &of_webhook]).await, [true, true, true]);
    connector.setup.pass(DAY);
    assert_eq!(connector.signed_by([&first, &second, &of_webhook]).await, [false, true, true]);
    // A minute passes before the event is sent.
    let end = Timestamp::from_unix_millis(END);
    assert_eq!(end.to_string(), "2027-05-31T00:00:00.000Z");
    connector.setup.clock.set(end.plus_seconds(-120));
    assert_eq!(connector.signed_by([&second, &of_webhook]).await, [true, true]);
    connector.setup.clock.set(end);
    assert_eq!(connector.signed_by([&second, &of_webhook]).await, [true, false]);
}

#[tokio::test]
async fn only_the_first_connector_and_a_rotation_answer_a_secret() {
    let stack = stack().await;
    let path = format!("/api/v1/widget/{}", id('a', kind::WIDGET, 1));
    let put = async |body: Value| {
        let call = local::http::Call { body: body.to_string().into(), ..call("PUT", &path, ACME) };
        data(&stack.answer(&call).await)["secret"].clone()
    };
    let url = "https://93.184.215.14/connector";
    assert_eq!(put(json!({"name": "Renamed", "connector_url": null})).await, Value::Null);
    let first = put(json!({"connector_url": url})).await;
    assert!(first.as_str().unwrap().starts_with("whsec_"));
    for body in [
        json!({"connector_url": format!("{url}/moved")}),
        json!({"connector_url": null}),
        json!({"connector_url": url}),
    ] {
        assert_eq!(put(body.clone()).await, Value::Null, "{body}");
    }
    let rotated = data(&stack.answer(&post(&format!("{path}/rotate_secret"), ACME, "")).await);
    assert!(rotated["secret"] != first && rotated["secret"].as_str().unwrap().starts_with("whsec_"));
    for (path, key) in [(path.as_str(), ACME), (path.as_str(), ACME_READ_ONLY), ("/api/v1/widget", ACME)] {
        let answer = stack.answer(&call("GET", path, key)).await;
        assert!(!answer.body.contains("whsec_") && !answer.body.contains("secret"), "{}", answer.body);
    }
    let body = json!({"widget_type": "sms", "connector_url": url}).to_string();
    let made = data(&stack.answer(&post("/api/v1/widget", ACME, body)).await);
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"));
}
