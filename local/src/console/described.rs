//! The records and their operations as the document of the API has them: what a page of a record shows, and what its
//! forms ask for.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use shared::request::route::Route;
use shared::routes;

use super::fields::InputField;

/// The document. Where it is older than the route table, the pages lack the fields of the new operations.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(repository::root().join("openapi.json"));
    serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
});

static RECORDS: LazyLock<Vec<PageRecord>> = LazyLock::new(|| {
    let mut records: Vec<PageRecord> = Vec::new();
    for route in routes::ALL {
        let operation = PageOperation::of(route);
        match records.iter_mut().find(|record| record.name == route.record) {
            Some(record) => record.operations.push(operation),
            None => records.push(PageRecord {
                name: route.record,
                about: about_record(route.record),
                own: None,
                operations: vec![operation],
            }),
        }
    }
    for record in &mut records {
        record.own = own_parameter(record);
    }
    records
});

/// A record of the route table.
#[derive(Debug)]
pub struct PageRecord {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// What it is.
    pub about: String,
    /// The parameter of paths that names one of them; none where no path does.
    pub own: Option<&'static str>,
    /// Its operations, in the order of the route table.
    pub operations: Vec<PageOperation>,
}

/// An operation, as the document has it.
#[derive(Debug)]
pub struct PageOperation {
    /// Its route.
    pub route: &'static Route,
    /// Its description.
    pub about: String,
    /// The parameters of its query.
    pub query: Vec<InputField>,
    /// The members of its body.
    pub body: Vec<InputField>,
    /// The members of its answer.
    pub answer: Vec<InputField>,
    /// The members of each item, where it answers with a list of records.
    pub items: Option<Vec<InputField>>,
    /// Whether the answer has a cursor to the next page in place of numbered pages.
    pub has_cursor: bool,
}

/// All records, in the order of the route table.
pub fn records() -> &'static [PageRecord] {
    &RECORDS
}

/// The record with this name.
pub fn record(name: &str) -> Option<&'static PageRecord> {
    RECORDS.iter().find(|record| record.name == name)
}

/// The operation with this name.
pub fn operation(name: &str) -> Option<&'static PageOperation> {
    RECORDS.iter().flat_map(|record| &record.operations).find(|operation| operation.route.name == name)
}

/// The record that a member with this name refers to: `assistant_id`, `assistant_ids`, `active_billing_plan_id`.
pub fn referred(member: &str) -> Option<&'static PageRecord> {
    let member = member.trim_end_matches('s');
    let names = |record: &&PageRecord| {
        record
            .own
            .is_some_and(|own| member.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
    };
    // `campaign_contact_id` ends with `contact_id` as well: the longest name counts.
    RECORDS.iter().filter(names).max_by_key(|record| record.own.map(str::len))
}

/// The field for a parameter of a path.
pub fn id_field(parameter: &str) -> InputField {
    let about = referred(parameter).map(|record| record.about.as_str()).unwrap_or_default();
    InputField::of(parameter, true, &json!({"type": "string", "format": "uuid", "description": about}))
}

/// The kinds of records to which a tag can be linked, as the links name them.
pub fn tagged(record: &str) -> Option<String> {
    let types = DOCUMENT.pointer("/components/schemas/EntityType/enum")?.as_array()?;
    let found = types.iter().filter_map(Value::as_str).find(|kind| compact(kind) == compact(record));
    found.map(str::to_owned)
}

impl PageRecord {
    /// The list of these records, if there is one. If there are several, it is the one whose path needs least.
    pub fn list(&self) -> Option<&PageOperation> {
        let lists = self.operations.iter().filter(|operation| operation.items.is_some() && !self.is_of_one(operation));
        lists.min_by_key(|operation| (operation.route.parameters().count(), operation.route.name.len()))
    }

    /// The operation that reads one of them.
    pub fn read(&self) -> Option<&PageOperation> {
        self.of_one("GET").find(|operation| operation.route.name.starts_with("read-") && operation.ends_with(self.own))
    }

    /// The operation that changes one of them.
    pub fn update(&self) -> Option<&PageOperation> {
        self.of_one("PUT").find(|operation| operation.ends_with(self.own))
    }

    /// The operation that removes one of them.
    pub fn delete(&self) -> Option<&PageOperation> {
        let is_plain = |operation: &&PageOperation| !operation.route.name.contains("-linked-");
        self.of_one("DELETE").filter(is_plain).find(|operation| operation.ends_with(self.own))
    }

    /// The operations that make a record.
    pub fn creates(&self) -> impl Iterator<Item = &PageOperation> {
        self.of_all().filter(|operation| operation.route.success == 201)
    }

    /// The other operations that are for no single record.
    pub fn others(&self) -> impl Iterator<Item = &PageOperation> {
        let list = self.list().map(|list| list.route);
        self.of_all().filter(move |operation| {
            operation.route.success != 201 && operation.items.is_none() && Some(operation.route) != list
        })
    }

    /// The other operations of one of them: those of the record, and those of other records whose path names it.
    pub fn actions(&self) -> impl Iterator<Item = &'static PageOperation> {
        let own = self.own;
        let used = [self.read(), self.update(), self.delete()].map(|used| used.map(|used| used.route));
        let all = RECORDS.iter().flat_map(|record| &record.operations);
        all.filter(move |operation| {
            let of_it = own.is_some_and(|own| operation.route.parameters().any(|parameter| parameter == own));
            let changes_another = record(operation.route.record)
                .and_then(|other| other.own)
                .is_some_and(|other| Some(other) != own && operation.route.parameters().any(|one| one == other));
            let is_own = operation.route.record == self.name;
            of_it && (is_own || !changes_another) && !used.contains(&Some(operation.route)) && operation.items.is_none()
        })
    }

    /// The lists of other records that can be limited to one of these, with the parameter that does it.
    pub fn belongings(&self) -> impl Iterator<Item = (&'static PageRecord, &'static str)> {
        let (own, name) = (self.own, self.name);
        RECORDS.iter().filter(move |other| other.name != name).filter_map(move |other| {
            let (own, list) = (own?, other.list()?);
            let by_query = list.query.iter().any(|field| field.name == own);
            (by_query || list.route.parameters().any(|parameter| parameter == own)).then_some((other, own))
        })
    }

    /// The operations of a method whose path names one of these records.
    fn of_one(&self, method: &'static str) -> impl Iterator<Item = &PageOperation> {
        self.operations.iter().filter(move |operation| operation.route.method == method && self.is_of_one(operation))
    }

    /// The operations whose path names none of these records.
    fn of_all(&self) -> impl Iterator<Item = &PageOperation> {
        self.operations.iter().filter(|operation| !self.is_of_one(operation))
    }

    fn is_of_one(&self, operation: &PageOperation) -> bool {
        self.own.is_some_and(|own| operation.route.parameters().any(|parameter| parameter == own))
    }
}

impl PageOperation {
    fn of(route: &'static Route) -> Self {
        let described = &DOCUMENT["paths"][route.path][route.method.to_lowercase()];
        let body = member_of(&described["requestBody"]["content"]["application/json"], "schema");
        let answer = &described["responses"][route.success.to_string()]["content"]["application/json"];
        let data = member_of(&member_of(answer, "schema")["properties"], "data");
        let items = resolved(&member_of(&data["properties"], "items")["items"]);
        let query = described["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query");
        Self {
            route,
            about: described["description"].as_str().unwrap_or_default().to_owned(),
            query: query.map(InputField::of_parameter).collect(),
            body: fields(&body),
            answer: fields(&data),
            items: items["properties"].get("id").filter(|_| route.method == "GET").map(|_| fields(&items)),
            has_cursor: data["properties"].get("page").is_none(),
        }
    }

    /// Whether the last parameter of its path is `own`.
    fn ends_with(&self, own: Option<&str>) -> bool {
        own.is_some() && self.route.parameters().last() == own
    }
}

/// What the document says about a record.
fn about_record(name: &str) -> String {
    let tags = DOCUMENT["tags"].as_array().into_iter().flatten();
    let about = tags.filter(|tag| tag["name"] == name).find_map(|tag| tag["description"].as_str());
    about.unwrap_or_default().to_owned()
}

/// The parameter of the record's paths that names one of them: the one that is called as the record is, or that has
/// the record's name in it.
fn own_parameter(record: &PageRecord) -> Option<&'static str> {
    let parameters: Vec<_> = record.operations.iter().flat_map(|operation| operation.route.parameters()).collect();
    let name = compact(record.name);
    let exact = parameters.iter().find(|parameter| compact(parameter) == format!("{name}id"));
    exact.or_else(|| parameters.iter().find(|parameter| compact(parameter).contains(&name))).copied()
}

/// A name without its separators.
fn compact(name: &str) -> String {
    name.replace(['-', '_'], "").to_lowercase()
}

/// The members of an object's schema: names first, then what is required, free-form JSON last.
fn fields(schema: &Value) -> Vec<InputField> {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = schema["properties"].as_object().into_iter().flatten();
    let mut fields: Vec<_> =
        members.map(|(name, schema)| InputField::of(name, required.contains(&name.as_str()), schema)).collect();
    fields.sort_by_key(InputField::rank);
    fields
}

fn member_of(around: &Value, name: &str) -> Value {
    resolved(&around[name])
}

/// `schema` without references and without the alternative `null`. What stands beside a reference stays.
pub fn resolved(schema: &Value) -> Value {
    let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let inner = match (reference, schema["anyOf"].as_array()) {
        (Some(reference), _) => DOCUMENT.pointer(reference),
        (None, Some(alternatives)) => alternatives.iter().find(|one| one["type"] != "null"),
        (None, None) => return schema.clone(),
    };
    let Some(inner) = inner.map(resolved) else { return schema.clone() };
    let outer = schema.as_object().cloned().unwrap_or_default();
    let kept = outer.into_iter().filter(|(name, _)| !["$ref", "anyOf"].contains(&name.as_str()));
    let mut members: Map<String, Value> = inner.as_object().cloned().unwrap_or_default();
    members.extend(kept);
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_refers_to_the_record_that_it_names() {
        for (member, wanted) in [
            ("assistant_id", Some("assistant")),
            ("assistant_ids", Some("assistant")),
            ("campaign_contact_id", Some("campaign-contact")),
            ("active_billing_plan_id", Some("billing-plan")),
            ("datasource_id", Some("datasource")),
            ("org_id", None),
            ("id", None),
        ] {
            assert_eq!(referred(member).map(|record| record.name), wanted, "{member}");
        }
    }

    #[test]
    fn a_record_that_can_be_read_or_changed_has_a_parameter_of_its_own() {
        for record in records() {
            let named = record.operations.iter().any(|operation| operation.route.parameters().next().is_some());
            assert!(record.own.is_some() || !named || record.list().is_none(), "{}", record.name);
            let list = record.list();
            assert!(list.is_some() || ["usage", "analytics"].contains(&record.name), "{} has no list", record.name);
        }
    }
}
