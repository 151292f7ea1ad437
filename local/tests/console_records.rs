//! Asks the console's pages of records, conversations, campaigns and the table over HTTP.

use std::collections::BTreeSet;

use repository::root;
use serde_json::{Map, Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::support::console::{send, skip, text, watched};
use crate::support::fixture::{ACME, GLOBEX, as_stored, data, get, http_client, id, kind, path, post};
use crate::support::keyed::keyed;

/// The form of `operation` on a page.
fn form<'a>(page: &'a str, operation: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("action=\"/console/forms/{operation}?"))?;
    rest.split("</form>").next()
}

/// The value of the input `name` of a form: the hidden one, or the first that can be chosen.
fn value_of(form: &str, name: &str) -> Option<String> {
    let (_, rest) = form.split_once(&format!("name=\"{name}\""))?;
    let values = rest.split("value=\"").skip(1).filter_map(|value| value.split('"').next());
    values.into_iter().find(|value| !value.is_empty()).map(str::to_owned)
}

/// What a page says where it has no content.
fn failure(page: &str) -> Option<&str> {
    page.split_once("<p class=\"failure\">")?.1.split("</p>").next()
}

/// The example of the document for the body of `route`.
fn example(document: &Value, route: &Route) -> Map<String, Value> {
    let described = &document["paths"][route.path][route.method.to_lowercase()];
    let examples = described["requestBody"]["content"]["application/json"]["examples"].as_object();
    let usual = examples.and_then(|examples| examples.get("usual").or(examples.values().next()));
    usual.and_then(|example| example["value"].as_object()).cloned().unwrap_or_default()
}

/// The fields of a form for the body of an example: lists and objects are JSON in a text.
fn as_put_in(body: Map<String, Value>) -> Map<String, Value> {
    let put = |value: Value| if value.is_array() || value.is_object() { value.to_string().into() } else { value };
    body.into_iter().map(|(name, value)| (name, put(value))).collect()
}

/// The parameters of the path of `route`, from its form on `page`.
fn parameters(page: &str, route: &Route) -> Map<String, Value> {
    let form = form(page, route.name).unwrap_or_else(|| panic!("no form of {}: {page}", route.name));
    let value = |name: &str| value_of(form, name).unwrap_or_else(|| panic!("{} has no {name}: {form}", route.name));
    route.parameters().map(|name| (name.to_owned(), value(name).into())).collect()
}

/// The plain operation of `record` whose name begins with one of `verbs`, and whose form is on the page.
fn operation(page: &str, record: &str, verbs: &[&str]) -> Option<&'static Route> {
    let is_it = |route: &&&Route| {
        route.record == record
            && verbs.iter().any(|verb| route.name.starts_with(verb))
            && form(page, route.name).is_some()
    };
    // The shortest name is the plain one: `delete-datasource`, not `delete-linked-assistant-datasource`.
    routes::ALL.iter().filter(is_it).min_by_key(|route| route.name.len()).copied()
}

#[tokio::test]
async fn each_record_is_made_shown_changed_and_deleted_by_its_pages() {
    let stack = watched().await;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(root().join("openapi.json")).unwrap()).unwrap();
    let records: BTreeSet<_> = routes::ALL.iter().map(|route| route.record).collect();
    let all = text(&stack, "/console/records?org=acme").await;
    let (mut made, mut changed, mut deleted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in &records {
        assert!(all.contains(&format!("\"/console/records/{record}?org=acme\"")), "{record}: {all}");
        let list = text(&stack, &format!("/console/records/{record}?org=acme")).await;
        assert_eq!(failure(&list), None, "{record}");
        let makes = |route: &&&Route| {
            route.record == *record
                && route.success == 201
                && route.method == "POST"
                && form(&list, route.name).is_some()
        };
        for create in routes::ALL.iter().filter(makes) {
            let mut fields = as_put_in(example(&document, create));
            fields.extend(parameters(&list, create));
            let says = send(&stack, create.name, &fields.into()).await;
            assert!(says["message"] == "Answered 201.", "{}: {says}", create.name);
            // The answer of `create-key` and `create-webhook` has a secret, which is shown in place of the record's page.
            let answer = says["answer"].as_str().map(|answer| serde_json::from_str::<Value>(answer).unwrap());
            let id = answer.and_then(|answer| answer["id"].as_str().map(str::to_owned));
            let shown = id.map(|id| format!("/console/records/{record}/{id}?org=acme"));
            let Some(to) = says["to"].as_str().or(shown.as_deref()) else { continue };
            made.insert(*record);
            let page = text(&stack, to).await;
            assert!(failure(&page).is_none() && page.contains("id=\"members\""), "{to}: {page}");
            if let Some(update) = operation(&page, record, &["update-"]) {
                let (fields, path) = (as_put_in(example(&document, update)), parameters(&page, update));
                let with_path =
                    |fields: Map<String, Value>| Value::Object(fields.into_iter().chain(path.clone()).collect());
                let mut says = send(&stack, update.name, &with_path(fields.clone())).await;
                // The example is for another record. If it does not suit this one, one of its members does, or one of those
                // with which the record was made.
                for (name, value) in fields.into_iter().chain(as_put_in(example(&document, create))) {
                    if says["to"].is_null() {
                        says = send(&stack, update.name, &with_path([(name, value)].into_iter().collect())).await;
                    }
                }
                assert_eq!(says["to"], to, "{}: {says}", update.name);
                changed.insert(*record);
            }
            if let Some(delete) = operation(&page, record, &["delete-", "revoke-"]) {
                // A record that is in use ends first.
                if let Some(end) = operation(&page, record, &["close-", "cancel-"]) {
                    send(&stack, end.name, &parameters(&page, end).into()).await;
                }
                let says = send(&stack, delete.name, &parameters(&page, delete).into()).await;
                let back = says["to"].as_str().unwrap_or_else(|| panic!("{}: {says}", delete.name));
                assert!(back.starts_with(&format!("/console/records/{record}?")), "{says}");
                assert!(failure(&text(&stack, to).await).is_some(), "{to} is still shown");
                deleted.insert(*record);
            }
        }
    }
    let with = |verb: &str| {
        let plain = routes::ALL.iter().filter(|route| route.name == format!("{verb}-{}", route.record));
        plain.map(|route| route.record).collect::<BTreeSet<_>>()
    };
    let missing = |verb: &str, done: &BTreeSet<&'static str>| with(verb).difference(done).copied().collect::<Vec<_>>();
    assert_eq!(missing("create", &made), [""; 0]);
    assert_eq!(missing("update", &changed), [""; 0]);
    // No operation makes a contact of a campaign alone.
    assert_eq!(missing("delete", &deleted), ["campaign-contact"]);
}

#[tokio::test]
async fn an_issue_stands_at_the_field_that_it_is_about() {
    let stack = watched().await;
    let fields = json!({"name": "", "voice_languages": "[\"en-GB\", \"x\"]", "attributes": "{", "hide_ds": true});
    let says = send(&stack, "create-assistant", &fields).await;
    let at = |name: &str| says["issues"].as_array().unwrap().iter().find(|issue| issue["field"] == name).cloned();
    assert_eq!(says["error"], "Answered 422.");
    assert!(at("voice_languages").unwrap()["says"].as_str().unwrap().starts_with("1: String should match"), "{says}");
    assert!(at("attributes").is_some() && at("hide_ds").is_none(), "{says}");
    // The page has a place for it.
    let page = text(&stack, "/console/records/assistant?org=acme").await;
    assert!(page.contains("id=\"create-assistant--attributes-issue\""), "{page}");
    let (status, operation) = (http_client(), format!("{}/console/forms/nothing", stack.url));
    assert_eq!(status.post(operation).body("{}").send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn a_list_has_pages_filters_and_names_in_place_of_ids() {
    let stack = watched().await;
    let first = text(&stack, "/console/records/user?org=acme").await;
    assert!(first.contains("Page 1 of 5 · 120 in all"), "{first}");
    let next = first.split("class=\"button\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let second = text(&stack, &next).await;
    assert!(second.contains("Page 2 of 5") && second.contains(">Previous<"), "{second}");
    let widgets = text(&stack, "/console/records/widget?org=acme&widget_type=sms").await;
    assert!(widgets.contains("1 in all") && widgets.contains(">Reception</a>"), "{widgets}");
    assert!(
        widgets.contains(&format!("/console/records/assistant/{}?org=acme", id('a', kind::ASSISTANT, 1))),
        "{widgets}"
    );
    // What belongs to a record is the other list, with a filter.
    let widget = text(&stack, &format!("/console/records/assistant/{}?org=acme", id('a', kind::ASSISTANT, 1))).await;
    assert!(widget.contains("/console/records/widget?org=acme&amp;assistant_id="), "{widget}");
    // Another organisation has no such record.
    let foreign = text(&stack, &format!("/console/records/assistant/{}?org=globex", id('a', kind::ASSISTANT, 1))).await;
    assert!(failure(&foreign).unwrap().contains("not_found"), "{foreign}");
    let nothing = text(&stack, "/console/records/%3Cscript%3E?org=acme").await;
    assert!(failure(&nothing).is_some() && nothing.matches("<script").count() == 1, "{nothing}");
}

#[tokio::test]
async fn a_record_is_tagged_and_untagged_on_its_page() {
    let stack = watched().await;
    let made = send(&stack, "create-tag", &json!({"name": "A new one"})).await;
    assert_eq!(made["message"], "Answered 201.");
    let page = format!("/console/records/contact/{}?org=acme", id('a', kind::CONTACT, 3));
    let before = text(&stack, &page).await;
    let tag = value_of(form(&before, "create-link-tag-entity").unwrap(), "tag_id").unwrap();
    let link = json!({"entity_type": "contact", "entity_id": id('a', kind::CONTACT, 3), "tag_id": tag});
    assert_eq!(send(&stack, "create-link-tag-entity", &link).await["message"], "Answered 201.");
    stack.settle().await.unwrap();
    let tagged = text(&stack, &page).await;
    let link = value_of(form(&tagged, "delete-link-tag-entity").unwrap(), "link_tag_entity_id").unwrap();
    let says = send(&stack, "delete-link-tag-entity", &json!({"link_tag_entity_id": link})).await;
    assert_eq!(says["message"], "Answered 200.");
    stack.settle().await.unwrap();
    let forms = |page: &str| page.matches("/console/forms/delete-link-tag-entity?").count();
    assert_eq!(forms(&tagged), forms(&before) + 1);
    assert_eq!(forms(&text(&stack, &page).await), forms(&before));
}

#[tokio::test]
async fn no_page_of_a_record_shows_a_secret() {
    let stack = watched().await;
    let key = send(&stack, "create-key", &json!({"name": "A new one"})).await;
    assert!(key["to"].is_null() && key["answer"].as_str().unwrap().contains("\"api_key\""), "{key}");
    let webhook = id('a', kind::WEBHOOK, 1);
    let rotated = send(&stack, "rotate-webhook-secret", &json!({"webhook_id": webhook})).await;
    let secret: Value = serde_json::from_str(rotated["answer"].as_str().unwrap()).unwrap();
    let secrets = ["whsec_", ACME, GLOBEX, secret["secret"].as_str().unwrap()];
    for page in ["key".to_owned(), "webhook".to_owned(), format!("webhook/{webhook}")] {
        let shown = text(&stack, &format!("/console/records/{page}?org=acme")).await;
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{page}: {shown}");
    }
}

#[tokio::test]
async fn a_conversation_shows_who_is_typing() {
    let stack = watched().await;
    let conversation = id('a', kind::CONVERSATION, 1);
    let page = format!("/console/conversations?org=acme&conversation={conversation}");
    let says = async |sender: &str, words: &str| {
        let message = json!({"conversation_id": conversation, "sender_type": sender, "text": words});
        assert_eq!(send(&stack, "add-message", &message).await["message"], "Answered 201.");
        text(&stack, &page).await
    };
    assert!(!text(&stack, &page).await.contains(" is typing"));
    let asked = says("user", "Are you there?").await;
    assert!(asked.contains("Reception is typing") && asked.contains("class=\"bubble user\""), "{asked}");
    // Nobody waits for ever.
    skip(&stack, 120).await;
    assert!(text(&stack, &page).await.contains("Reception has not answered."));
    let answered = says("bot", "Yes.").await;
    assert!(!answered.contains(" is typing") && !answered.contains("has not answered"), "{answered}");
    assert!(says("user", "Thanks.").await.contains(" is typing"));
    send(&stack, "close-conversation", &json!({"conversation_id": conversation})).await;
    let closed = text(&stack, &page).await;
    assert!(!closed.contains(" is typing") && closed.contains(">closed</span>"), "{closed}");
}

#[tokio::test]
async fn a_campaign_shows_its_statuses_over_time() {
    let stack = watched().await;
    let campaign = id('a', kind::CAMPAIGN, 0);
    let page = format!("/console/campaigns?org=acme&campaign={campaign}");
    let before = text(&stack, &page).await;
    assert!(before.contains("3 queued") && before.contains("<polygon class=\"queued\""), "{before}");
    send(&stack, "resume-campaign", &json!({"campaign_id": campaign})).await;
    // The campaign is sent by the tick.
    skip(&stack, 60).await;
    let after = text(&stack, &page).await;
    // The chart has both: those who waited, and how they ended.
    assert!(after.contains("<polygon class=\"queued\"") && after.matches("<polygon").count() > 1, "{after}");
    let numbers = after.split("id=\"samples\"").nth(1).unwrap();
    assert!(numbers.contains("<td class=\"number\">3</td>"), "{numbers}");
    assert!(after.contains("id=\"contacts\"") && after.contains(">Contact 0</a>"), "{after}");
}

#[tokio::test]
async fn the_table_page_shows_every_item_and_no_secret() {
    let stack = watched().await;
    let rotated = path(&routes::ROTATE_WEBHOOK_SECRET, |_| id('a', kind::WEBHOOK, 1));
    let secret = data(&stack.answer(&keyed(post(&rotated, ACME, ""), "1")).await);
    let agency = json!({"billing_plan": {"payment_api_key": "canary-of-the-table"}}).to_string();
    data(&stack.answer(&post(routes::CREATE_AGENCY.path, ACME, agency)).await);
    let secrets = [secret["secret"].as_str().unwrap(), "canary-of-the-table", "whsec_", ACME, GLOBEX];
    let mut items = 0;
    for (name, start) in [("acme", "ORG#01900000-0000-7000-8000-a"), ("globex", "ORG#01900000-0000-7000-8000-b")] {
        let mut pages = vec![format!("/console/table?org={name}")];
        while let Some(page) = pages.pop() {
            let shown = text(&stack, &page).await;
            assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{page}: {shown}");
            // Each key is explained, from the page about the keys.
            assert!(
                !shown.contains("An item of a form that") && !shown.contains("<code>other</code>"),
                "{page}: {shown}"
            );
            items += shown.matches("<td class=\"key\">").count();
            let links =
                shown.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap().replace("&amp;", "&"));
            pages.extend(links.filter(|link| link.contains("partition=")));
        }
        // A partition of the other organisation is not shown.
        let foreign = text(&stack, &format!("/console/table?org={name}&partition=ORG%23c")).await;
        assert!(foreign.contains(start), "{foreign}");
    }
    let stored = as_stored(&stack);
    let of_organisations = stored.iter().filter(|item| item["pk"].as_s().unwrap().starts_with("ORG#")).count();
    assert_eq!(items, of_organisations);
}

#[tokio::test]
async fn the_table_page_shows_the_items_of_a_record_and_what_changed() {
    let stack = watched().await;
    let conversation = id('a', kind::CONVERSATION, 1);
    let shown = text(&stack, &format!("/console/table?org=acme&record={conversation}")).await;
    for item in ["a record: a row of a list", "a message of a conversation", "Items of other records that name it"] {
        assert!(shown.contains(item), "{item}: {shown}");
    }
    let foreign = text(&stack, &format!("/console/table?org=globex&record={conversation}")).await;
    assert!(foreign.contains("Nothing is stored here."), "{foreign}");
    let made = data(&stack.answer(&post(routes::CREATE_TAG.path, ACME, json!({"name": "New"}).to_string())).await);
    stack.settle().await.unwrap();
    let changes = text(&stack, "/console/table?org=acme&view=changes").await;
    let of_tag = changes.split("<tr>").find(|row| row.contains("LIST#TAG#ROWS")).unwrap_or_else(|| panic!("{changes}"));
    for part in [">made<", "record-changed", "emit-events", "/console/requests/"] {
        assert!(of_tag.contains(part), "{part}: {of_tag}");
    }
    assert!(made["id"].is_string());
    let others = text(&stack, "/console/table?org=globex&view=changes").await;
    assert!(!others.contains(&stack.api.organisations()[0].id.to_string()), "{others}");
    assert_eq!(get(&stack, routes::LIST_TAGS.path).await["total"], 4);
}
