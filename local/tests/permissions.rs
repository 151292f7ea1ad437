//! Each function's role allows the calls that the function makes, on the table alone, and no others.

use std::collections::{BTreeMap, BTreeSet};

use local::faults::{Fault, Faults};
use local::gateway::endpoint;
use local::template::Template;
use local::{Settings, Stack, endpoints};
use serde_json::{Value, json};
use shared::routes;

use crate::fixture::{ACME, root, settings, streaming, valid_call};

/// What invoking `function` with `payload` takes, its start included.
async fn taken(function: &str, payload: &Value) -> BTreeSet<String> {
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..settings() }).await.unwrap();
    faults.plan(|_, _| Fault::None);
    stack.gateway.service.store.warm_up().await.unwrap();
    stack.gateway.invoke_by_name(function, payload.to_string().as_bytes()).await;
    faults.permissions()
}

/// What the functions on the stream take when a tag goes. As soon as there are two of them, each has to be asked for itself.
async fn taken_by_stream() -> BTreeSet<String> {
    assert_eq!(endpoints::CONSUMERS.len(), 1);
    let faults = Faults::default();
    let stack = Stack::start(Settings { faults: faults.clone(), ..streaming() }).await.unwrap();
    stack.answer(&valid_call(&routes::DELETE_TAG, 'a', ACME)).await;
    faults.plan(|_, _| Fault::None);
    stack.gateway.service.store.warm_up().await.unwrap();
    stack.settle().await.unwrap();
    faults.permissions()
}

#[tokio::test]
async fn what_is_allowed_is_what_is_called() {
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in std::fs::read_dir(root().join("events")).unwrap() {
        let file = file.unwrap().path();
        let function = file.file_stem().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        let event = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert!(endpoint(&function).is_some());
        called.entry(function.clone()).or_default().extend(taken(&function, &event).await);
    }
    let acme = "01900000-0000-7000-8000-a00000000001";
    let key = json!({"org_id": acme, "id": "01900000-0000-7000-8000-a00e00000001", "name": "x"});
    for task in endpoints::TASKS {
        called.insert(task.name.to_owned(), taken(task.name, &key).await);
    }
    for consumer in endpoints::CONSUMERS {
        called.insert(consumer.name.to_owned(), taken_by_stream().await);
    }
    let template = Template::read(&root().join("template.yaml")).unwrap();
    let mut allowed = BTreeMap::new();
    for (function, permissions) in template.permissions {
        for permission in &permissions {
            assert_eq!(permission.resource, r#"{"!GetAtt":"Table.Arn"}"#, "{function}");
        }
        allowed.insert(function, permissions.into_iter().flat_map(|permission| permission.actions).collect());
    }
    assert_eq!(allowed, called);
}
