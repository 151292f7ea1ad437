//! `PUT /api/v1/widget/{widget_id}`: changes a widget.

use serde_json::json;
use shared::records::delivery::EndpointHealth;
use shared::records::widget::Widget;
use shared::values::id::{EndpointId, WidgetId};
use uuid::Uuid;

use crate::support::fixture::{acme, id, kind, stack};
use crate::support::records::update_with_open_circuit;

const CONNECTOR: &str = "https://93.184.215.14/connector";

#[tokio::test]
async fn another_connector_address_closes_the_circuit() {
    for (body, closes) in [
        (json!({"connector_url": "https://93.184.215.14/elsewhere"}), true),
        (json!({"connector_url": CONNECTOR, "name": "Renamed"}), false),
        (json!({"connector_url": null}), false),
        (json!({"name": "Renamed"}), false),
    ] {
        let stack = stack().await;
        let widget = WidgetId(id('a', kind::WIDGET, 1).parse().unwrap());
        let connect = |widget: &mut Widget| widget.connector_url = Some(CONNECTOR.to_owned());
        acme(&stack).change(widget, Uuid::max(), connect).await.unwrap();
        let healthy = EndpointHealth { connector: true, ..EndpointHealth::healthy(EndpointId(widget.0)) };
        update_with_open_circuit(&stack, "widget", healthy, &body, closes).await;
    }
}
