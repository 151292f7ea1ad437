//! Loads the demo set from its file: organisations, keys, and some records of each kind, with fixed ids. Requests
//! create all records for which there is an operation.

mod particular;

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shared::network::Network;
use shared::network::lanes::LaneTime;
use shared::records::agency::{Agency, BillingPlan};
use shared::records::assistant::Assistant;
use shared::records::captured_form::CapturedForm;
use shared::records::captured_intent::CapturedIntent;
use shared::records::contact::Contact;
use shared::records::contact_custom_field::ContactCustomField;
use shared::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use shared::records::export::Export;
use shared::records::form::Form;
use shared::records::intent::{Intent, IntentLink};
use shared::records::suppression::Suppression;
use shared::records::tag::{Link, Tag};
use shared::records::user::User;
use shared::records::webhook::Webhook;
use shared::records::widget::Widget;
use shared::request::api_key::{ApiKey, ApiKeyRecord, Role};
use shared::request::authentication::KeyCache;
use shared::request::config::Config;
use shared::request::context::Service;
use shared::request::limit::Limiter;
use shared::request::route::Route;
use shared::routes;
use shared::table::declaration::{Declared, FieldRole};
use shared::table::reservation::remove_tokens;
use shared::table::rows::INSERT_LIMIT;
use shared::table::store::Store;
use shared::table::stored::Listed;
use shared::table::{Table, TableError};
use shared::values::cause::chain;
use shared::values::id::{Ids, OrgId, with_ordinal};
use shared::values::tenant::Tenant;
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::api::{Api, ApiRequest, OrganisationWithKey};
use crate::demo::particular::{add_campaign_contacts, deliver, log_events};
use crate::gateway::Gateway;
use crate::template::Template;
use crate::{Trouble, bucket};

/// Loads the records of one kind.
type Load = for<'a> fn(by: &'a Loader<'a>, records: Vec<Value>, time: Timestamp) -> BoxFuture<'a, Result<(), Trouble>>;

/// The kinds of records, in the order in which they are loaded: a record comes after the records to which it refers.
const KINDS: &[(&str, Load)] = &[
    ("users", |by, records, _| Box::pin(by.insert::<User>(Some(&routes::CREATE_USER), (), records))),
    ("tags", |by, records, _| Box::pin(by.insert::<Tag>(Some(&routes::CREATE_TAG), (), records))),
    ("links", |by, records, _| Box::pin(by.insert::<Link>(Some(&routes::CREATE_LINK_TAG_ENTITY), (), records))),
    ("webhooks", |by, records, _| Box::pin(by.insert::<Webhook>(Some(&routes::CREATE_WEBHOOK), (), records))),
    ("assistants", |by, records, _| Box::pin(by.insert::<Assistant>(Some(&routes::CREATE_ASSISTANT), (), records))),
    ("widgets", |by, records, _| Box::pin(by.insert::<Widget>(Some(&routes::CREATE_WIDGET), (), records))),
    ("contact_custom_fields", |by, records, _| {
        Box::pin(by.insert::<ContactCustomField>(Some(&routes::CREATE_CONTACT_CUSTOM_FIELD), (), records))
    }),
    ("contacts", |by, records, _| Box::pin(by.insert::<Contact>(Some(&routes::UPSERT_CONTACT), (), records))),
    ("suppressions", |by, records, _| {
        Box::pin(by.insert::<Suppression>(Some(&routes::CREATE_SUPPRESSION), (), records))
    }),
    ("intents", |by, records, _| Box::pin(by.insert::<Intent>(Some(&routes::CREATE_INTENT), (), records))),
    ("forms", |by, records, _| Box::pin(by.insert::<Form>(Some(&routes::CREATE_FORM), (), records))),
    ("datasources", |by, records, _| Box::pin(by.insert::<Datasource>(Some(&routes::CREATE_DATASOURCE), (), records))),
    ("datasource_files", |by, records, _| {
        Box::pin(by.insert_by::<DatasourceFile>(None, |file| file.datasource_id, records))
    }),
    ("datasource_links", |by, records, _| {
        let route = Some(&routes::LINK_ASSISTANT_DATASOURCE);
        Box::pin(by.insert_by::<DatasourceLink>(route, |link| link.assistant_id, records))
    }),
    ("intent_links", |by, records, _| {
        let route = Some(&routes::LINK_ASSISTANT_INTENT);
        Box::pin(by.insert_by::<IntentLink>(route, |link| link.assistant_id, records))
    }),
    ("agencies", |by, records, _| Box::pin(by.insert::<Agency>(Some(&routes::CREATE_AGENCY), (), records))),
    ("billing_plans", |by, records, _| {
        let route = Some(&routes::CREATE_AGENCY_BILLING_PLAN);
        Box::pin(by.insert_by::<BillingPlan>(route, |plan| plan.agency_id, records))
    }),
    ("campaigns", |by, records, _| Box::pin(by.add_campaigns(records))),
    ("campaign_contacts", |by, records, _| Box::pin(add_campaign_contacts(&by.table, records))),
    ("conversations", |by, records, time| Box::pin(by.converse(records, time))),
    ("captured_forms", |by, records, time| {
        Box::pin(by.capture::<CapturedForm>(&routes::CREATE_CAPTURED_FORM, records, time))
    }),
    ("captured_intents", |by, records, time| {
        Box::pin(by.capture::<CapturedIntent>(&routes::CREATE_CAPTURED_INTENT, records, time))
    }),
    ("exports", |by, records, _| Box::pin(by.insert::<Export>(Some(&routes::CREATE_EXPORT), (), records))),
    ("events", |by, records, _| Box::pin(log_events(&by.table, records))),
    ("deliveries", |by, records, _| Box::pin(deliver(&by.table, records))),
];

/// The members that every record has.
const COMMON: [&str; 4] = ["id", "org_id", "created_at", "updated_at"];

/// The demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// The creation time of all its records.
    time: Timestamp,
    /// The organisations.
    pub organisations: Vec<DemoOrganisation>,
}

/// An organisation of the demo set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoOrganisation {
    /// Its id.
    pub org_id: OrgId,
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<DemoKey>,
    /// Its records, by kind.
    #[serde(default)]
    records: BTreeMap<String, Vec<Value>>,
}

/// A key of the demo set. No other key is in any file.
#[derive(Debug, Deserialize)]
pub struct DemoKey {
    /// The key itself.
    pub key: String,
    /// Its stored form.
    #[serde(flatten)]
    record: Map<String, Value>,
}

impl DemoKey {
    /// The role of the key.
    pub fn role(&self) -> &str {
        self.record.get("role").and_then(Value::as_str).unwrap_or_default()
    }
}

impl Demo {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`Trouble`] names the error in it.
    pub fn read(path: &Path) -> Result<Self, Trouble> {
        let named = |error: String| Trouble(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        serde_yaml_ng::from_str(&text).map_err(|error| named(error.to_string()))
    }

    /// The key with all permissions, for a new user.
    pub fn admin_key(&self) -> Option<&str> {
        self.organisations.iter().find_map(DemoOrganisation::admin_key)
    }

    /// The organisations that have a key with all permissions.
    pub fn with_keys(&self) -> Vec<OrganisationWithKey> {
        let with_key = |organisation: &DemoOrganisation| {
            let (key, name) = (organisation.admin_key()?.to_owned(), organisation.name.to_lowercase());
            Some(OrganisationWithKey { id: organisation.org_id, name, key })
        };
        self.organisations.iter().filter_map(with_key).collect()
    }

    /// Creates the records of the set, unless they exist already: the last key of an organisation is put last, and
    /// shows this. The requests go to the functions of `template`, which get the time and the ids of the set.
    ///
    /// # Errors
    /// [`Trouble`] names the invalid record.
    pub async fn load(&self, template: &Template, store: &Store, s3_url: &str, config: Config) -> Result<(), Trouble> {
        let given = Arc::<Mutex<Uuid>>::default();
        let service = Service {
            config,
            store: store.clone(),
            bucket: bucket::client(s3_url, bucket::connector()),
            failed_records: bucket::failed_records(s3_url, bucket::connector()),
            clock: Clock::at(self.time),
            ids: Ids::Given(Arc::clone(&given)),
            keys: KeyCache::default(),
            limiter: Limiter::default(),
            lanes: LaneTime::default(),
            // Its addresses are public; nothing is sent to them.
            network: Network::public(),
        };
        let gateway = Gateway::new(template, service, Ids::Random, Arc::default(), None, false)?;
        let api = Api::new(Arc::new(gateway), self.with_keys());
        for organisation in &self.organisations {
            #[expect(clippy::disallowed_methods, reason = "the user of the stack loads the demo set")]
            let table = Table::new(store.clone(), Tenant::operator(organisation.org_id));
            let with_key = api.organisations().iter().find(|one| one.id == organisation.org_id);
            let with_key = with_key.ok_or_else(|| Trouble("demo set: an organisation has no full key".into()))?;
            let by = Loader { api: &api, organisation: with_key, given: &given, store, table };
            organisation.load(self.time, &by).await?;
        }
        Ok(())
    }
}

impl DemoOrganisation {
    /// Its key with all permissions.
    pub fn admin_key(&self) -> Option<&str> {
        self.keys.iter().find(|key| key.role() == "admin").map(|key| key.key.as_str())
    }

    async fn load(&self, time: Timestamp, by: &Loader<'_>) -> Result<(), Trouble> {
        let mut keys = self.keys.iter().map(|key| self.key(key, time)).collect::<Result<Vec<_>, _>>()?;
        // The requests need a full key.
        keys.sort_by_key(|(_, record)| record.role != Role::Admin);
        let Some((last, last_record)) = keys.last() else { return Ok(()) };
        if by.store.api_key(&last.hash()).await.map_err(trouble)?.is_some() {
            return Ok(());
        }
        if let Some(kind) = self.records.keys().find(|kind| KINDS.iter().all(|(known, _)| known != kind)) {
            return Err(Trouble(format!("demo set: no kind of record is called {kind}")));
        }
        for (key, record) in keys.iter().take(keys.len().max(2) - 1) {
            by.store.add_api_key(&key.hash(), record).await.map_err(trouble)?;
        }
        for (kind, load) in KINDS {
            load(by, self.records_of(kind, time)?, time).await?;
        }
        by.store.add_api_key(&last.hash(), last_record).await.map_err(trouble)
    }

    fn records_of(&self, kind: &str, time: Timestamp) -> Result<Vec<Value>, Trouble> {
        let templates = self.records.get(kind).into_iter().flatten();
        Ok(templates.map(|template| self.expand(template, time)).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn key(&self, key: &DemoKey, time: Timestamp) -> Result<(ApiKey, ApiKeyRecord), Trouble> {
        let parsed = ApiKey::parse(&key.key).ok_or_else(|| Trouble("demo set: a key is malformed".into()))?;
        let mut record = key.record.clone();
        record.insert("prefix".into(), parsed.display_prefix().into());
        Ok((parsed, record_of(self.complete(record, time))?))
    }

    /// The records of `template`: one, or `repeat` of them, with their number in place of `{n}` and in their ids.
    fn expand(&self, template: &Value, time: Timestamp) -> Result<Vec<Value>, Trouble> {
        let Value::Object(members) = template else { return Err(Trouble("demo set: a record is no mapping".into())) };
        let Some(count) = members.get("repeat") else { return Ok(vec![self.complete(members.clone(), time)]) };
        let count = count.as_u64().ok_or_else(|| Trouble("demo set: repeat is no number".into()))?;
        let mut members = members.clone();
        members.remove("repeat");
        let numbered = |n: u64| {
            let text = Value::Object(members.clone()).to_string().replace("{n}", &n.to_string());
            let mut record: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
            if let Some(id) = record.get("id").and_then(|id| id.as_str()?.parse::<Uuid>().ok()) {
                record.insert("id".into(), with_ordinal(id, n).to_string().into());
            }
            self.complete(record, time)
        };
        Ok((0..count).map(numbered).collect())
    }

    /// Adds the default fields of every record.
    fn complete(&self, mut members: Map<String, Value>, time: Timestamp) -> Value {
        let time = Value::from(time.to_string());
        let common = [
            ("org_id", self.org_id.to_string().into()),
            ("attributes", Value::Object(Map::new())),
            ("created_at", time.clone()),
            ("updated_at", time),
        ];
        for (name, value) in common {
            members.entry(name).or_insert(value);
        }
        Value::Object(members)
    }
}

/// Creates the records of an organisation: by requests, if there is an operation for them; a record in a state that no
/// operation creates is inserted as a row, such as a user who already pays, or a campaign that has failed.
struct Loader<'a> {
    api: &'a Api,
    organisation: &'a OrganisationWithKey,
    given: &'a Mutex<Uuid>,
    store: &'a Store,
    table: Table,
}

/// The request of `route` whose body has all members of `record` except the common ones.
fn request_of_all(route: &Route, record: &Value) -> ApiRequest {
    let body = record.as_object().into_iter().flatten().filter(|(name, _)| !COMMON.contains(&name.as_str()));
    ApiRequest::of(route).body(&body.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The request of `route` that creates `record`; `None` if the record has fields that only the service sets.
fn request_of<R: Declared>(route: &Route, record: &Map<String, Value>) -> Option<ApiRequest> {
    let roles: BTreeMap<&str, FieldRole> = R::members().into_iter().map(|(role, member)| (member.name, role)).collect();
    let text = |name| Some((name, record.get(name)?.as_str()?));
    let parameters: Vec<_> = route.parameters().filter_map(text).collect();
    let mut body = Map::new();
    for (name, value) in record.iter().filter(|(name, _)| !COMMON.contains(&name.as_str())) {
        match roles.get(name.as_str()) {
            _ if parameters.iter().any(|(parameter, _)| parameter == name) => {}
            Some(FieldRole::Input | FieldRole::Fixed) => {
                body.insert(name.clone(), value.clone());
            }
            // Every template has this member, even if the record has none.
            None if name == "attributes" => {}
            _ => return None,
        }
    }
    let request = ApiRequest::of(route).parameters(parameters);
    Some(if body.is_empty() { request } else { request.body(&body.into()) })
}

impl Loader<'_> {
    /// Makes `request` create the record `id`.
    async fn ask(&self, id: Uuid, request: ApiRequest) -> Result<(), Trouble> {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = id;
        let line = request.to_string();
        let answered = self.api.ask(self.organisation, request).await;
        answered.map(drop).map_err(|answer| Trouble(format!("demo set: {line} of {id} answers {answer}")))
    }

    /// Inserts the records that the list does not have yet, so that an interrupted load is continued: by `route`, or as
    /// rows.
    async fn insert<R: Listed>(
        &self,
        route: Option<&'static Route>,
        of: R::Of,
        records: Vec<Value>,
    ) -> Result<(), Trouble> {
        let table = &self.table;
        let have = appended::<R>(table, of).await?;
        let (mut ids, mut rows) = (Vec::new(), Vec::new());
        for record in records.into_iter().skip(have) {
            let id = id_of(&record)?;
            ids.push(id);
            let request = route.zip(record.as_object());
            match request.and_then(|(route, record)| request_of::<R>(route, record)) {
                Some(request) => {
                    insert_rows(table, of, &mem::take(&mut rows)).await?;
                    self.ask(id, request).await?;
                }
                None => rows.push((id, record_of::<R>(record)?)),
            }
        }
        insert_rows(table, of, &rows).await?;
        let expected = |(ordinal, id): (u64, &Uuid)| R::proof(R::id_at(of, *id, ordinal)) == Some(*id);
        if let Some((_, id)) = (have as u64..).zip(&ids).find(|pair| !expected(*pair)) {
            return Err(Trouble(format!("demo set: {id} does not end in its place in the list of {}", R::NAME)));
        }
        remove_tokens::<R>(table, of).await.map_err(trouble)
    }

    /// Inserts records, each into the list of its owner.
    async fn insert_by<R: Listed<Of: Ord>>(
        &self,
        route: Option<&'static Route>,
        owner: impl Fn(&R) -> R::Of,
        records: Vec<Value>,
    ) -> Result<(), Trouble> {
        let mut by_owner: BTreeMap<R::Of, Vec<Value>> = BTreeMap::new();
        for record in records {
            by_owner.entry(owner(&record_of(record.clone())?)).or_default().push(record);
        }
        for (of, records) in by_owner {
            self.insert::<R>(route, of, records).await?;
        }
        Ok(())
    }
}

/// The number of rows that a list has ever had.
async fn appended<R: Listed>(table: &Table, of: R::Of) -> Result<usize, Trouble> {
    let rows = table.appended::<R>(of).await.map_err(trouble)?;
    usize::try_from(rows).map_err(|error| Trouble(error.to_string()))
}

/// Inserts rows as they are.
async fn insert_rows<R: Listed>(table: &Table, of: R::Of, rows: &[(Uuid, R)]) -> Result<(), Trouble> {
    for rows in rows.chunks(INSERT_LIMIT) {
        let ids: Vec<Uuid> = rows.iter().map(|(id, _)| *id).collect();
        table.insert_all::<R>(of, &ids, |index, _| rows[index].1.clone()).await.map_err(trouble)?;
    }
    Ok(())
}

fn id_of(record: &Value) -> Result<Uuid, Trouble> {
    let id = record["id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Trouble(format!("demo set: {record} has no id")))
}

fn record_of<R: DeserializeOwned>(value: Value) -> Result<R, Trouble> {
    let id = value["id"].clone();
    serde_json::from_value(value).map_err(|error| Trouble(format!("demo set: record {id}: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err passes")]
fn trouble(error: TableError) -> Trouble {
    Trouble(format!("demo set: {}", chain(&error)))
}
