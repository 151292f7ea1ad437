//! Tests of exports: what is in their files, also when others write meanwhile, and when processes crash in between.

use std::collections::{BTreeMap, BTreeSet};

use local::Settings;
use local::faults::Fault;
use serde_json::{Value, json};
use shared::bucket::ObjectKey;
use shared::prelude::{Contact, ContactId};
use shared::records::export::ExportedRecord;
use shared::routes;
use shared::table::quota::{Quota, Quotas};
use shared::table::rows::INSERT_LIMIT;
use shared::values::id::ExportId;
use shared::values::tenant::Tenant;
use shared::values::time::Clock;
use uuid::Uuid;

use crate::support::fixture::{
    ACME, ACME_READ_ONLY, call, data, failure, get, post, send, settings, stack_of_today, valid_call,
};
use crate::support::records::make_key;
use crate::support::sending::{Org, Setup, id_of};
use crate::support::sweep::cases;

/// Seconds of a lease, and one more.
const LEASE: i64 = 121;
/// Seconds of a week.
const WEEK: i64 = 7 * 86_400;

/// Adds contacts, each with so many bytes.
async fn add_wide(org: &Org, count: usize, bytes: usize) -> Vec<ContactId> {
    let ids: Vec<Uuid> = (0..count).map(|_| Uuid::now_v7()).collect();
    let mut made = Vec::new();
    // A transaction has at most 4 MB.
    for ids in ids.chunks(INSERT_LIMIT.min(3_000_000 / bytes)) {
        let wide = |_, id: ContactId| -> Contact {
            let (time, text) = ("2026-01-01T00:00:00Z", "x".repeat(bytes));
            let of = json!({"id": id, "org_id": org.id, "created_at": time, "updated_at": time, "attributes": {"text": text}});
            serde_json::from_value(of).unwrap()
        };
        made.extend(org.table.insert_all::<Contact>((), ids, wide).await.unwrap().into_iter().map(|row| row.id));
    }
    made
}

/// An organisation with contacts, each with so many bytes, and an export of them that has not begun.
async fn exporting(count: usize, bytes: usize) -> (Setup, Org, Vec<ContactId>, String) {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let contacts = add_wide(&org, count, bytes).await;
    let export = setup.export(&org, json!({"records": ["contact"]})).await;
    (setup, org, contacts, export)
}

/// The key of the file of an export.
#[expect(clippy::disallowed_methods, reason = "the tests are their own operator")]
fn object(org: &Org, export: &str) -> ObjectKey {
    ObjectKey::of_export(&Tenant::operator(org.id), ExportId(export.parse().unwrap()))
}

/// The rows of a file of NDJSON.
fn rows(file: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ids of the rows of a file, each once.
fn ids(file: &[u8]) -> BTreeSet<String> {
    let rows = rows(file);
    let ids: BTreeSet<String> = rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), rows.len(), "a row is there twice");
    ids
}

impl Setup {
    async fn export(&self, org: &Org, body: Value) -> String {
        id_of(&self.post(org, "/api/v1/export", body).await).to_owned()
    }

    async fn tick_exports(&self) {
        self.stack.tick("run-exports").await.unwrap();
    }

    /// Lets time pass until an export has ended.
    async fn ended(&self, org: &Org, id: &str) -> Value {
        for _ in 0..100 {
            let export = self.get(org, &format!("/api/v1/export/{id}")).await;
            if export["ended_at"].is_string() {
                return export;
            }
            self.tick_exports().await;
            self.pass(LEASE);
        }
        panic!("{id} does not end")
    }

    /// The file of an export that has ended.
    async fn file(&self, org: &Org, id: &str) -> Vec<u8> {
        let export = self.ended(org, id).await;
        assert_eq!(export["status"], "completed", "{export}");
        let key = object(org, id);
        let file = self.stack.gateway.service.bucket.read(&key).await.unwrap().unwrap_or_default();
        assert_eq!(export["bytes"], file.len() as u64);
        file
    }
}

/// The items of all pages of a list.
async fn listed(stack: &local::Stack, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for page in 1.. {
        let found = data(&stack.answer(&call("GET", &format!("{path}?size=100&page={page}"), ACME_READ_ONLY)).await);
        items.extend(found["items"].as_array().unwrap().clone());
        if found["next_page"].is_null() {
            break;
        }
    }
    items
}

#[tokio::test]
async fn a_file_has_what_a_read_only_key_lists() {
    let (stack, _) = stack_of_today(settings()).await;
    let lists = [
        ("agency", "/api/v1/agency"),
        ("assistant", "/api/v1/assistant"),
        ("campaign", "/api/v1/campaign/list"),
        ("contact", "/api/v1/contact"),
        ("conversation", "/api/v1/conversation"),
        ("datasource", "/api/v1/datasource"),
        ("form", "/api/v1/form/list"),
        ("intent", "/api/v1/intent/list"),
        ("link_tag_entity", "/api/v1/link_tag_entity/list"),
        ("tag", "/api/v1/tag/list"),
        ("user", "/api/v1/user/get_agent_list/"),
        ("webhook", "/api/v1/outbound_webhook/list"),
        ("widget", "/api/v1/widget"),
    ];
    let inner = [
        ("billing_plan", "agency", "/api/v1/agency/billing/{}/billing_plan/list"),
        ("campaign_contact", "campaign", "/api/v1/campaign/contact/list/{}"),
        ("datasource_file", "datasource", "/api/v1/datasource/{}/data_source_files"),
        ("message", "conversation", "/api/v1/conversation/{}/transcript"),
    ];
    let mut wanted: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (record, path) in lists {
        wanted.insert(record, listed(&stack, path).await);
    }
    for (record, parent, path) in inner {
        let mut all = Vec::new();
        for parent in wanted[parent].clone() {
            all.extend(listed(&stack, &path.replace("{}", id_of(&parent))).await);
        }
        wanted.insert(record, all);
    }
    let records: Vec<_> = wanted.keys().collect();
    let export = data(&stack.answer(&post("/api/v1/export", ACME, json!({"records": records}).to_string())).await);
    stack.tick("run-exports").await.unwrap();
    let path = format!("/api/v1/export/{}", id_of(&export));
    let read = get(&stack, &path).await;
    assert_eq!(read["status"], "completed", "{read}");
    let (status, kind, file) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, &*kind), (200, "application/x-ndjson"));
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut row in rows(&file) {
        let record = row.as_object_mut().unwrap().remove("record").unwrap();
        found.entry(record.as_str().unwrap().to_owned()).or_default().push(row);
    }
    assert_eq!(read["rows"], found.values().map(Vec::len).sum::<usize>());
    for (record, mut wanted) in wanted {
        assert!(!wanted.is_empty(), "the demo set has no {record}");
        let mut found = found.remove(record).unwrap_or_default();
        // The texts of messages are shorter in a transcript.
        if record == "message" {
            wanted.iter_mut().chain(&mut found).for_each(|row| *row = json!({"id": row["id"], "text": row["text"]}));
        }
        assert_eq!(found, wanted, "{record}");
    }
    // The address is made anew by each read, for an hour.
    assert!(read["download_url"].as_str().unwrap().contains("X-Amz-Expires=3600&"));
    let text = serde_json::to_string(&listed(&stack, "/api/v1/export").await).unwrap();
    assert!(!text.contains("X-Amz"), "{text}");
}

#[tokio::test]
async fn a_csv_begins_no_formula_and_opens_in_excel() {
    let (stack, _) = stack_of_today(Settings { ..settings() }).await;
    let name = "=HYPERLINK(\"https://example.com\",\"x\")";
    for name in [name, "+1", "-1", "@A1", "two\nlines, and \"more\""] {
        data(&stack.answer(&post("/api/v1/tag", ACME, json!({"name": name}).to_string())).await);
    }
    let body = json!({"records": ["tag"], "format": "csv"}).to_string();
    let export = data(&stack.answer(&post("/api/v1/export", ACME, body)).await);
    stack.tick("run-exports").await.unwrap();
    let read = get(&stack, &format!("/api/v1/export/{}", id_of(&export))).await;
    let (status, kind, file) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, &*kind), (200, "text/csv; charset=utf-8"));
    let text = String::from_utf8(file).unwrap();
    let head = "\u{feff}id,name,color_code,description,";
    assert!(text.starts_with(head), "{}", &text[..100]);
    assert!(text.contains(",\"'=HYPERLINK(\"\"https://example.com\"\",\"\"x\"\")\","), "{text}");
    assert!(["'+1", "'-1", "'@A1"].iter().all(|cell| text.contains(&format!(",{cell},"))), "{text}");
    assert!(text.contains(",\"two\nlines, and \"\"more\"\"\","), "{text}");
    assert_eq!(read["rows"], 8);
    assert_eq!(text.matches("\r\n").count(), 9);
}

#[tokio::test]
async fn filters_select_the_rows_that_the_list_selects() {
    let (stack, _) = stack_of_today(settings()).await;
    let campaign = get(&stack, "/api/v1/campaign/list").await["items"][0]["id"].clone();
    for (record, filters, path) in [
        ("contact", json!({"phone_number": "+31 20 0003"}), "/api/v1/contact?phone_number=%2B31200003"),
        ("contact", json!({"email": "CONTACT4@acme.example"}), "/api/v1/contact?email=contact4@acme.example"),
        ("conversation", json!({"status": "closed", "date_from": "2025-01-01"}), "/api/v1/conversation?status=closed"),
        ("conversation", json!({"date_to": "2025-01-01"}), "/api/v1/conversation?date_to=2025-01-01"),
        ("campaign", json!({"status": "queued"}), "/api/v1/campaign/list?status=queued"),
        (
            "campaign_contact",
            json!({"campaign_id": campaign}),
            &format!("/api/v1/campaign/contact/list/{}", campaign.as_str().unwrap()),
        ),
    ] {
        let body = json!({"records": [record], "filters": {record: filters}}).to_string();
        let export = data(&stack.answer(&post("/api/v1/export", ACME, body)).await);
        stack.tick("run-exports").await.unwrap();
        let read = get(&stack, &format!("/api/v1/export/{}", id_of(&export))).await;
        assert_eq!(
            (&read["status"], &read["rows"]),
            (&json!("completed"), &get(&stack, path).await["total"]),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_export_without_rows_has_no_file_or_a_head() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let none = setup.export(&org, json!({"records": ["tag", "message"]})).await;
    let head = setup.export(&org, json!({"records": ["intent"], "format": "csv"})).await;
    assert!(setup.file(&org, &none).await.is_empty());
    let read = setup.get(&org, &format!("/api/v1/export/{none}")).await;
    assert_eq!((&read["rows"], &read["download_url"]), (&json!(0), &Value::Null));
    assert!(setup.file(&org, &head).await.starts_with("\u{feff}id,name,".as_bytes()));
    let read = setup.get(&org, &format!("/api/v1/export/{head}")).await;
    assert!(read["rows"] == 0 && read["download_url"].is_string(), "{read}");
}

#[tokio::test]
async fn an_unknown_record_or_filter_is_refused_by_name() {
    let (stack, _) = stack_of_today(settings()).await;
    let refused = async |body: Value| failure(&stack.answer(&post("/api/v1/export", ACME, body.to_string())).await);
    for (body, wanted) in [
        (json!({}), r#"["body","records"] missing"#),
        (json!({"records": []}), r#"["body","records"] too_short"#),
        (json!({"records": ["key"]}), r#"["body","records",0] enum"#),
        (json!({"records": ["tag", "tag"]}), r#"["body","records",1] value_error"#),
        (json!({"records": ["tag", "form"], "format": "csv"}), r#"["body","format"] value_error"#),
        (json!({"records": ["tag"], "filters": {"form": {}}}), r#"["body","filters","form"] extra_forbidden"#),
        (json!({"records": ["tag"], "filters": {"tag": 1}}), r#"["body","filters","tag"] dict_type"#),
        (
            json!({"records": ["tag"], "filters": {"tag": {"name": "x"}}}),
            r#"["body","filters","tag","name"] extra_forbidden"#,
        ),
        (
            json!({"records": ["contact"], "filters": {"contact": {"page": 1}}}),
            r#"["body","filters","contact","page"] extra_forbidden"#,
        ),
        (
            json!({"records": ["campaign"], "filters": {"campaign": {"status": "x"}}}),
            r#"["body","filters","campaign","status"] enum"#,
        ),
        (
            json!({"records": ["message"], "filters": {"message": {"conversation_id": "x"}}}),
            r#"["body","filters","message","conversation_id"] uuid_parsing"#,
        ),
    ] {
        assert_eq!(refused(body.clone()).await, (422, vec![wanted.to_owned()]), "{body}");
    }
}

#[tokio::test]
async fn a_key_needs_the_scope_of_each_record() {
    let (stack, _) = stack_of_today(settings()).await;
    let key = async |scopes: &[&str]| make_key(&stack, ACME, &json!({"name": "Shop", "scopes": scopes})).await.0;
    let all = key(&["export:write", "contact:read", "conversation:read"]).await;
    let some = key(&["export:write", "contact:read"]).await;
    let body = json!({"records": ["contact", "message"]}).to_string();
    let answer = stack.answer(&post("/api/v1/export", &some, body.clone())).await;
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("The API key needs the scope conversation:read"), "{}", answer.body);
    let export = data(&stack.answer(&post("/api/v1/export", &all, body)).await);
    let path = format!("/api/v1/export/{}", id_of(&export));
    assert_eq!(stack.answer(&call("GET", &path, &some)).await.status, 403);
    assert_eq!(stack.answer(&call("GET", &path, &all)).await.status, 200);
    // A key that may only read makes no export.
    assert_eq!(stack.answer(&valid_call(&routes::CREATE_EXPORT, 'a', ACME_READ_ONLY)).await.status, 403);
}

#[tokio::test]
async fn an_organisation_has_a_bounded_number_of_exports() {
    let quotas = Quotas::default().with(Quota::RunningExports, 1);
    let setup = Setup::with(|settings| Settings { quotas, ..settings }).await;
    let org = setup.org().await;
    let body = json!({"records": ["tag"]});
    let first = setup.export(&org, body.clone()).await;
    let refused = setup.ask(&org, "POST", "/api/v1/export", &body).await;
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("The organisation has 1 of 1 running exports"), "{}", refused.body);
    setup.ended(&org, &first).await;
    setup.export(&org, body).await;
}

/// What can be listed can be exported, except what is about the service and not about customers.
#[tokio::test]
async fn each_record_with_a_list_can_be_exported() {
    let (stack, _) = stack_of_today(settings()).await;
    let (key, _) = make_key(&stack, ACME, &json!({"name": "Shop", "scopes": ["export:write"]})).await;
    let left_out = ["audit", "delivery", "event", "export", "key"];
    let mut exported: BTreeSet<String> = left_out.map(str::to_owned).into();
    for word in ExportedRecord::WORDS {
        // The key lacks the scope of the record, so the refusal names it.
        let answer = stack.answer(&post("/api/v1/export", &key, json!({"records": [word]}).to_string())).await;
        let (_, scope) = answer.body.split_once("The API key needs the scope ").unwrap();
        exported.insert(scope.split_once(":read").unwrap().0.to_owned());
    }
    let lists =
        |name: &str| name.starts_with("list-") || ["get-agent-list", "read-link-tag-entity-list"].contains(&name);
    let listed = routes::ALL.iter().filter(|route| lists(route.name)).map(|route| route.record.to_owned());
    assert_eq!(exported, listed.collect());
}

/// Each call of the database takes a second, so a tick ends before its export does.
#[tokio::test]
async fn a_row_that_is_there_all_the_time_is_there_once() {
    let (setup, org, contacts, export) = exporting(120, 300_000).await;
    let clock = setup.clock.clone();
    setup.faults.plan(move |_, _| {
        clock.set(clock.now().plus_seconds(1));
        Fault::None
    });
    let (mut ticks, mut removed, mut seen) = (0, BTreeSet::new(), BTreeSet::new());
    while setup.get(&org, &format!("/api/v1/export/{export}")).await["status"] != "completed" {
        setup.tick_exports().await;
        let read = setup.get(&org, &format!("/api/v1/export/{export}")).await;
        seen.insert(read["rows"].as_u64().unwrap());
        // Rows are removed before and after what has been read, and others are added.
        for place in [ticks * 3, 119 - ticks * 3] {
            org.table.remove::<Contact>(contacts[place]).await.unwrap();
            removed.insert(contacts[place].to_string());
        }
        add_wide(&org, 3, 1_000).await;
        ticks += 1;
        assert!(ticks < 18, "the export does not end");
    }
    setup.faults.end();
    assert!(ticks > 2 && seen.len() > 2, "{ticks} ticks, {seen:?}");
    let found = ids(&setup.file(&org, &export).await);
    let stayed = contacts.iter().map(ToString::to_string).filter(|id| !removed.contains(id));
    assert!(stayed.clone().all(|id| found.contains(&id)), "a row is missing");
    // What was added after the beginning is left out.
    assert!(found.iter().all(|id| contacts.iter().any(|contact| contact.to_string() == *id)));
}

/// Two parts, so the process crashes before, between and after them.
#[tokio::test]
async fn a_crash_after_any_write_changes_nothing_in_the_file() {
    let count = {
        let (setup, ..) = exporting(250, 30_000).await;
        setup.faults.watch();
        setup.tick_exports().await;
        setup.faults.writes()
    };
    assert!((7..20).contains(&count), "{count} writes");
    for writes in cases(0..=count) {
        let (setup, org, contacts, export) = exporting(250, 30_000).await;
        setup.faults.die_after_writes(writes);
        let died = setup.faults.kill(setup.stack.tick("run-exports")).await;
        assert_eq!(died, writes <= count, "{writes}");
        setup.faults.end();
        setup.pass(LEASE);
        let file = setup.file(&org, &export).await;
        let wanted: Vec<String> = contacts.iter().map(ToString::to_string).collect();
        let found: Vec<String> = rows(&file).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found, wanted, "{writes}");
        assert_eq!(setup.ended(&org, &export).await["rows"], 250, "{writes}");
    }
}

/// The lease of a slow process expires, and another one makes the file. Then the slow one goes on.
#[tokio::test]
async fn a_late_process_replaces_no_part() {
    let (setup, org, contacts, export) = exporting(250, 30_000).await;
    let mut puts = 0;
    let pause = setup.faults.pause_at(move |action, _| {
        // The begin of the upload, and its first part.
        puts += usize::from(action == "PutObject");
        action == "PutObject" && puts == 2
    });
    let slow = setup.stack.tick("run-exports");
    let other = async {
        pause.reached().await;
        // The slow process has read the rows; these are changed before the other one reads them.
        for id in &contacts[..5] {
            org.table
                .change::<Contact>(*id, Uuid::max(), |row| row.first_name = Some("New".parse().unwrap()))
                .await
                .unwrap();
        }
        setup.pass(LEASE);
        let file = setup.file(&org, &export).await;
        pause.end();
        file
    };
    let (slow, file) = tokio::join!(slow, other);
    slow.unwrap();
    assert_eq!(ids(&file).len(), 250);
    assert_eq!(rows(&file).iter().filter(|row| row["first_name"] == "New").count(), 5);
    assert_eq!(setup.file(&org, &export).await, file);
}

#[tokio::test]
async fn two_ticks_make_one_file() {
    let (setup, org, _, export) = exporting(50, 1_000).await;
    let (one, other) = tokio::join!(setup.stack.tick("run-exports"), setup.stack.tick("run-exports"));
    one.and(other).unwrap();
    assert_eq!(ids(&setup.file(&org, &export).await).len(), 50);
}

/// A query returns a megabyte, and a part has six of them. So this bounds what a process holds.
#[tokio::test]
async fn a_process_holds_a_part_and_a_piece_at_most() {
    let (setup, org, _, export) = exporting(900, 30_000).await;
    setup.faults.watch();
    setup.tick_exports().await;
    let requests = setup.faults.requests();
    let queries = requests.iter().filter(|action| *action == "Query").count();
    let puts = requests.iter().filter(|action| *action == "PutObject").count();
    // 27 MB: four parts, and the begin and the end of the upload.
    assert!(queries >= 27 && puts == 6, "{queries} queries, {puts} puts");
    assert_eq!(ids(&setup.file(&org, &export).await).len(), 900);
}

#[tokio::test]
async fn exports_of_all_organisations_take_turns() {
    let setup = Setup::start().await;
    let (large, small) = (setup.org().await, setup.org().await);
    add_wide(&large, 300, 30_000).await;
    for _ in 0..8 {
        setup.export(&large, json!({"records": ["contact"]})).await;
    }
    setup.post(&small, "/api/v1/tag", json!({"name": "VIP"})).await;
    let export = setup.export(&small, json!({"records": ["tag"]})).await;
    let clock = setup.clock.clone();
    let begin = clock.now();
    setup.faults.plan(move |_, _| {
        clock.set(clock.now().plus_seconds(1));
        Fault::None
    });
    setup.tick_exports().await;
    setup.faults.end();
    assert!(setup.clock.now() < begin.plus_seconds(200), "a tick takes longer than its budget");
    assert_eq!(setup.get(&small, &format!("/api/v1/export/{export}")).await["status"], "completed");
}

#[tokio::test]
async fn an_export_and_its_file_are_removed_after_a_week() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    setup.post(&org, "/api/v1/tag", json!({"name": "VIP"})).await;
    let export = setup.export(&org, json!({"records": ["tag"]})).await;
    let path = format!("/api/v1/export/{export}");
    assert_eq!(rows(&setup.file(&org, &export).await).len(), 1);
    let ended = setup.get(&org, &path).await;
    setup.clock.set(serde_json::from_value(ended["ended_at"].clone()).unwrap());
    setup.pass(WEEK - 60);
    setup.tick_exports().await;
    assert!(setup.get(&org, &path).await["download_url"].is_string());
    assert_eq!(setup.stack.objects.objects().unwrap().len(), 1);
    setup.pass(60);
    // Nobody gets an address any more, even before the next tick.
    assert_eq!(setup.get(&org, &path).await["download_url"], Value::Null);
    setup.tick_exports().await;
    assert_eq!(setup.ask(&org, "GET", &path, &Value::Null).await.status, 404);
    assert_eq!(setup.get(&org, "/api/v1/export").await["total"], 0);
    assert_eq!(setup.stack.objects.objects().unwrap(), []);
}

/// What a stopped process leaves in the bucket is removed after a day, so the export begins again.
#[tokio::test]
async fn an_export_without_its_upload_begins_again() {
    let (setup, org, _, export) = exporting(250, 30_000).await;
    // The process crashes after its first part is stored: lease, begin, part, store.
    setup.faults.die_after_writes(4);
    assert!(setup.faults.kill(setup.stack.tick("run-exports")).await);
    setup.faults.end();
    let id = ExportId(export.parse().unwrap());
    let stored: shared::prelude::Export = org.table.get(id).await.unwrap();
    let upload = stored.progress.upload.clone().unwrap();
    let key = object(&org, &export);
    setup.stack.gateway.service.bucket.abort_upload(&key, &upload).await.unwrap();
    setup.pass(LEASE);
    assert_eq!(ids(&setup.file(&org, &export).await).len(), 250);
}

/// S3 has ended the upload, and still joins its parts: the object comes later.
#[tokio::test]
async fn parts_that_are_being_joined_are_waited_for() {
    let (setup, org, _, export) = exporting(250, 30_000).await;
    let mut puts = 0;
    setup.faults.plan(move |action, _| {
        // The begin of the upload, its two parts, and its end.
        puts += usize::from(action == "PutObject");
        if puts == 4 { Fault::LoseRequest } else { Fault::None }
    });
    assert!(setup.faults.kill(setup.stack.tick("run-exports")).await);
    setup.faults.end();
    let id = ExportId(export.parse().unwrap());
    let stored: shared::prelude::Export = org.table.get(id).await.unwrap();
    let (key, bucket) = (object(&org, &export), &setup.stack.gateway.service.bucket);
    bucket.abort_upload(&key, &stored.progress.upload.unwrap()).await.unwrap();
    setup.pass(LEASE);
    setup.tick_exports().await;
    assert_eq!(setup.get(&org, &format!("/api/v1/export/{export}")).await["rows"], 250);
    bucket.put(&key, "application/x-ndjson", b"{}\n".to_vec()).await.unwrap();
    setup.pass(LEASE);
    setup.tick_exports().await;
    let read = setup.get(&org, &format!("/api/v1/export/{export}")).await;
    assert_eq!((&read["status"], &read["rows"]), (&json!("completed"), &json!(250)));
}

#[tokio::test]
async fn a_completed_export_emits_an_event() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let hook = json!({"endpoint": format!("{}/exports", setup.receiver.url), "events": ["export.*"]});
    setup.post(&org, "/api/v1/outbound_webhook", hook).await;
    setup.settle().await;
    setup.export(&org, json!({"records": ["webhook"]})).await;
    setup.settle().await;
    setup.minutes(2).await;
    let events: Vec<Value> =
        setup.receiver.received("/exports").iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
    let kinds: BTreeSet<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, BTreeSet::from(["export.created", "export.updated", "export.completed"]));
    let completed = events.iter().find(|event| event["event"] == "export.completed").unwrap();
    assert_eq!((&completed["data"]["status"], &completed["data"]["rows"]), (&json!("completed"), &json!(1)));
    assert!(events.iter().all(|event| !event.to_string().contains("X-Amz")));
}

/// Figures for `docs/adr/0063`: `cargo test --test stack -- --ignored fifty_thousand --nocapture`.
#[tokio::test]
#[ignore = "it measures"]
async fn fifty_thousand_rows_are_measured() {
    let setup = Setup::with(|settings| Settings { clock: Clock::System, ..settings }).await;
    let org = setup.org().await;
    add_wide(&org, 50_000, 300).await;
    let export = setup.export(&org, json!({"records": ["contact"]})).await;
    let before = std::time::Instant::now();
    setup.faults.watch();
    while setup.get(&org, &format!("/api/v1/export/{export}")).await["status"] != "completed" {
        setup.tick_exports().await;
    }
    let read = setup.get(&org, &format!("/api/v1/export/{export}")).await;
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for action in setup.faults.requests() {
        *calls.entry(action).or_default() += 1;
    }
    println!("{:?}: {} rows, {} bytes, {calls:?}", before.elapsed(), read["rows"], read["bytes"]);
}
