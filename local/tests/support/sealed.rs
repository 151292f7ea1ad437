//! Sealed secrets in the items of a table.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use local::Stack;
use local::database::TABLE_NAME;
use shared::sealing::Secrets;
use shared::values::id::OrgId;
use shared::values::secret::StoredSecret;

use crate::support::fixture::as_stored;

/// The attributes that may be sealed, each with its record and with the place in which the secret was sealed.
pub const SEALED: [(&str, &str, &str); 8] = [
    ("Agency", "billing_plan", "Agency.billing_plan"),
    ("Agency", "branding", "Agency.branding"),
    ("Agency", "domain", "Agency.domain"),
    ("Agency", "payment_webhook", "Agency.payment_webhook"),
    ("Agency", "user_auth", "Agency.user_auth"),
    // The item of a webhook that is to be removed at the provider has no record. It takes over a sealed billing plan.
    ("", "payment_api_key", "Agency.billing_plan"),
    ("Webhook", "secrets", "Webhook.secrets"),
    ("Widget", "secrets", "Widget.secrets"),
];

/// Opens every sealed secret of `items`.
pub async fn open_secrets(secrets: &Secrets, items: &mut [BTreeMap<String, AttributeValue>]) {
    for item in items {
        let text = |name: &str| item.get(name).map(|text| text.as_s().unwrap().clone()).unwrap_or_default();
        let pk = text("pk");
        let org = pk.strip_prefix("ORG#").and_then(|rest| rest.split('#').next()?.parse().ok().map(OrgId));
        let (record, Some(org)) = (text("record"), org) else { continue };
        for (_, name, place) in SEALED.into_iter().filter(|(of, ..)| *of == record) {
            let Some(value) = item.get_mut(name) else { continue };
            for sealed in bytes(value) {
                if let Ok(StoredSecret::Sealed(secret)) = serde_dynamo::from_attribute_value(sealed.clone()) {
                    let opened = secrets.open(org, place, &secret).await.unwrap();
                    *sealed = AttributeValue::S(opened.expose().to_owned());
                }
            }
        }
    }
}

/// Stores every record with secrets as it was stored before secrets were sealed.
pub async fn unseal(stack: &Stack) {
    let sealed = as_stored(stack);
    let mut open = sealed.clone();
    open_secrets(&stack.kms.secrets(), &mut open).await;
    for item in open.into_iter().filter(|item| !sealed.contains(item)) {
        let put = stack.client.put_item().table_name(TABLE_NAME);
        put.set_item(Some(item.into_iter().collect())).send().await.unwrap();
    }
}

/// The bytes at any depth of `value`.
pub fn bytes(value: &mut AttributeValue) -> Vec<&mut AttributeValue> {
    match value {
        AttributeValue::B(_) => vec![value],
        AttributeValue::L(values) => values.iter_mut().flat_map(bytes).collect(),
        AttributeValue::M(values) => values.values_mut().flat_map(bytes).collect(),
        _ => Vec::new(),
    }
}
