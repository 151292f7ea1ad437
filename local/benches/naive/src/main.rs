//! Two routes of the service in the form in which most people would first write them, with default settings. The real
//! ones are compared with them.

use std::collections::HashMap;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_http::{Body, Error, Request, RequestExt, Response, run, service_fn, tracing};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const CREATE: &str = "/api/v1/assistant";
const LIST: &str = "/api/v1/user/get_agent_list";

#[derive(Deserialize, Serialize)]
#[serde(default)]
struct Assistant {
    name: Option<String>,
    description: Option<String>,
    attributes: Map<String, Value>,
    system_prompt: String,
    voice: bool,
    custom_voice: bool,
    voice_languages: Vec<String>,
    org_id: Option<Uuid>,
    show_images: bool,
    hide_ds: bool,
    webhook_id: Option<Uuid>,
    has_human_agent: bool,
    use_tools: bool,
    conversation_flow_id: Option<Uuid>,
    assistant_type: String,
    llm_model: String,
}

impl Default for Assistant {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            attributes: Map::new(),
            system_prompt: String::new(),
            voice: false,
            custom_voice: false,
            voice_languages: Vec::new(),
            org_id: None,
            show_images: false,
            hide_ds: false,
            webhook_id: None,
            has_human_agent: false,
            use_tools: false,
            conversation_flow_id: None,
            assistant_type: "simple".to_owned(),
            llm_model: "gpt-4-0125-preview".to_owned(),
        }
    }
}

#[derive(Serialize)]
struct Stored<'a> {
    pk: String,
    sk: &'static str,
    id: Uuid,
    #[serde(flatten)]
    assistant: &'a Assistant,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let client = &Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let table = &std::env::var("TABLE_NAME")?;
    run(service_fn(async |request: Request| answer(client, table, &request).await)).await
}

async fn answer(client: &Client, table: &str, request: &Request) -> Result<Response<Body>, Error> {
    let query = request.query_string_parameters();
    let Some(org) = organisation(client, table, query.first("api_key").unwrap_or_default()).await? else {
        return reply(401, &json!({"detail": "Invalid API key"}));
    };
    match (request.method().as_str(), request.raw_http_path().trim_end_matches('/')) {
        ("POST", CREATE) => match serde_json::from_slice(request.body()) {
            Ok(assistant) => create(client, table, &org, assistant).await,
            Err(error) => reply(422, &json!({"detail": error.to_string()})),
        },
        ("GET", LIST) => {
            let number = |name, default| query.first(name).and_then(|text| text.parse().ok()).unwrap_or(default);
            list(client, table, &org, number("page", 1).max(1), number("size", 50).clamp(1, 100)).await
        }
        _ => reply(404, &json!({"detail": "Not Found"})),
    }
}

async fn organisation(client: &Client, table: &str, key: &str) -> Result<Option<String>, Error> {
    let hash: String = Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    let call = client.get_item().table_name(table).key("pk", AttributeValue::S(format!("KEY#{hash}")));
    let output = call.key("sk", AttributeValue::S("KEY".to_owned())).send().await?;
    Ok(output.item.and_then(|item| item.get("org_id")?.as_s().ok().cloned()))
}

async fn create(client: &Client, table: &str, org: &str, mut assistant: Assistant) -> Result<Response<Body>, Error> {
    let id = Uuid::now_v7();
    assistant.org_id = Some(org.parse()?);
    let stored = Stored { pk: format!("ORG#{org}#ASSISTANT#{id}"), sk: "ASSISTANT", id, assistant: &assistant };
    client.put_item().table_name(table).set_item(Some(serde_dynamo::to_item(stored)?)).send().await?;
    let mut data = serde_json::to_value(&assistant)?;
    data["id"] = json!(id);
    reply(201, &json!({"message": "Data created successfully", "meta": {}, "data": data}))
}

async fn list(client: &Client, table: &str, org: &str, page: i32, size: i32) -> Result<Response<Body>, Error> {
    let query = async |partition: String, from: i32, limit: Option<i32>| {
        let call = client.query().table_name(table).key_condition_expression("pk = :pk AND sk >= :from");
        let call = call.expression_attribute_values(":pk", AttributeValue::S(partition));
        let from = if from == 0 { " ".to_owned() } else { format!("{from:010}") };
        call.expression_attribute_values(":from", AttributeValue::S(from)).set_limit(limit).send().await
    };
    let head = query(format!("ORG#{org}#LIST#USER"), 0, None).await?;
    let next = head.items().first().and_then(|head| head.get("next_ordinal")?.as_n().ok());
    let total: i32 = next.and_then(|next| next.parse().ok()).unwrap_or_default();
    let rows = query(format!("ORG#{org}#LIST#USER#ROWS"), (page - 1) * size, Some(size)).await?;
    let mut items: Vec<HashMap<String, Value>> = serde_dynamo::from_items(rows.items.unwrap_or_default())?;
    for item in &mut items {
        item.retain(|name, _| !["pk", "sk", "record"].contains(&name.as_str()));
    }
    let pages = (total + size - 1) / size;
    let data = json!({
        "items": items, "total": total, "page": page, "size": size, "pages": pages,
        "previous_page": (page > 1).then(|| page - 1), "next_page": (page < pages).then(|| page + 1),
    });
    reply(200, &json!({"message": "", "meta": {}, "data": data}))
}

fn reply(status: u16, body: &Value) -> Result<Response<Body>, Error> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(body.to_string().into())?)
}
