//! `PUT /api/v1/widget/{widget_id}`: changes a widget.

use serde_json::json;
use shared::records::delivery;
use shared::records::delivery::EndpointHealth;
use shared::values::id::EndpointId;
use shared::values::time::Timestamp;

use crate::support::fixture::{ACME, NOW, acme, call, data, id, kind, stack};

const CONNECTOR: &str = "https://93.184.215.14/connector";

#[tokio::test]
async fn another_connector_address_closes_the_circuit() {
    let now = Timestamp::from_unix_millis(NOW);
    for (body, closes) in [
        (json!({"connector_url": "https://93.184.215.14/elsewhere"}), true),
        (json!({"connector_url": CONNECTOR, "name": "Renamed"}), false),
        (json!({"connector_url": null}), false),
        (json!({"name": "Renamed"}), false),
    ] {
        let stack = stack().await;
        let (table, widget) = (acme(&stack), EndpointId(id('a', kind::WIDGET, 1).parse().unwrap()));
        let update = async |body: &serde_json::Value| {
            let put = call("PUT", &format!("/api/v1/widget/{widget}"), ACME);
            data(&stack.answer(&local::http::Call { body: body.to_string().into(), ..put }).await)
        };
        update(&json!({"connector_url": CONNECTOR})).await;
        let healthy = EndpointHealth { connector: true, deferred_at: Some(now), ..EndpointHealth::healthy(widget) };
        let bad = EndpointHealth { failures: 7, failing_since: Some(now), slow: true, ..healthy.clone() };
        table.put_single(widget, &bad).await.unwrap();
        update(&body).await;
        // The time of the last deferral stays, because the tick finds the deferred deliveries by it.
        let wanted = if closes { healthy } else { bad };
        let is = delivery::health::of(&table, widget).await.unwrap();
        let wanted = EndpointHealth { due_at: is.due_at, reset_at: is.reset_at, version: is.version, ..wanted };
        assert_eq!(is, wanted, "{body}");
    }
}
