//! The page of one record, made from the document: its members, a form that changes it, tags, what belongs to it, its
//! other operations.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Html;
use maud::{Markup, html};
use serde_json::Value;
use shared::request::route::Route;
use shared::routes;

use super::cells::{address, id_to_copy, parents, short, wide_cell};
use super::described::{self, PageOperation, PageRecord};
use super::fields::{FieldInput, prose, words};
use super::layout::Head;
use super::records::Given;
use super::{Asked, Console, NO_ORGANISATION, ROWS, Shown, pages};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::names::{KnownNames, name_of};

/// The most pages of a list in which a record is looked for that no operation reads.
const LOOKED_THROUGH: u64 = 10;

/// A record, and the parameters of its path beside its own id.
struct FoundRecord {
    value: Value,
    parents: Vec<(&'static str, String)>,
}

/// The page of one record.
pub(super) async fn page(
    State(console): State<Arc<Console>>,
    Path((name, id)): Path<(String, String)>,
    Query(asked): Query<Asked>,
    Query(given): Query<Given>,
) -> Html<String> {
    let shown = match console.organisation(asked.org.as_deref()) {
        Some(organisation) => console.record(organisation, &name, &id, &given).await,
        None => Err(NO_ORGANISATION.to_owned()),
    };
    let list = described::record(&name).zip(console.organisation(asked.org.as_deref()));
    let says = html! {
        @if let Some((record, organisation)) = list { a href=(address(organisation, record, None, &[])) { "List" } " · " }
        (id_to_copy(&id))
    };
    let head = Head::within(pages::page(pages::RECORDS), &words(&name), says, &asked);
    console.framed(head, shown).await
}

impl Console {
    pub(super) async fn record(
        &self,
        organisation: &OrganisationWithKey,
        name: &str,
        id: &str,
        given: &Given,
    ) -> Shown {
        let record = described::record(name).ok_or_else(|| format!("There is no record {name}."))?;
        let found = self.found(organisation, record, id, given).await?;
        let names = self.names(organisation, std::iter::once(&found.value)).await;
        let mut known: Vec<_> = found.parents.iter().map(|(name, id)| (*name, id.as_str())).collect();
        known.extend(record.own.map(|own| (own, id)));
        let mut forms = Vec::new();
        for operation in record.actions() {
            forms.push(self.operation(organisation, operation, &known, None).await);
        }
        let (mut change, mut tags) = (html! {}, html! {});
        if let Some(update) = record.update() {
            change = self.operation(organisation, update, &known, Some(&found.value)).await;
        }
        if let Some(kind) = described::tagged(name) {
            tags = self.tags(organisation, &kind, id).await?;
        }
        Ok(html! {
            h2 #record-name { (name_of(&found.value).unwrap_or_else(|| short(id))) }
            (related(organisation, record, id))
            div.columns {
                section.card {
                    h2 { "What it is" }
                    (members(organisation, record, &found.value, names))
                }
                div.operations {
                    (change)
                    (tags)
                    @for form in &forms { (form) }
                    @if let Some(delete) = record.delete() { (deletion(organisation, delete, &known)) }
                }
            }
        })
    }

    /// The record with this id: from the operation that reads it, or from its list. A record within another one is
    /// looked for in each of these, where the address does not say in which it is.
    async fn found(
        &self,
        organisation: &OrganisationWithKey,
        record: &'static PageRecord,
        id: &str,
        given: &Given,
    ) -> Result<FoundRecord, String> {
        let operation = record.read().or(record.list()).ok_or("No operation reads it.")?;
        let missing = || format!("There is no {} {id}.", words(record.name).to_lowercase());
        let others = operation.route.parameters().filter(|parameter| Some(*parameter) != record.own);
        let mut ways: Vec<Vec<(&'static str, String)>> = vec![Vec::new()];
        for parameter in others {
            let ids = match given.get(parameter) {
                Some(id) => vec![id.clone()],
                None => self.choices(organisation, parameter).await.into_iter().map(|(id, _)| id).collect(),
            };
            ways = ways
                .iter()
                .flat_map(|way| ids.iter().map(|id| [&way[..], &[(parameter, id.clone())]].concat()))
                .collect();
        }
        let mut failure = missing();
        for parents in ways {
            match self.look(organisation, operation, record, id, &parents).await {
                Ok(Some(value)) => return Ok(FoundRecord { value, parents }),
                Ok(None) => {}
                Err(says) => failure = says,
            }
        }
        Err(failure)
    }

    /// The record with this id within `parents`.
    async fn look(
        &self,
        organisation: &OrganisationWithKey,
        operation: &PageOperation,
        record: &PageRecord,
        id: &str,
        parents: &[(&'static str, String)],
    ) -> Result<Option<Value>, String> {
        let mut path: Vec<_> = parents.iter().map(|(name, id)| (*name, id.as_str())).collect();
        let Some(list) = operation.items.as_ref().map(|_| operation) else {
            path.extend(record.own.map(|own| (own, id)));
            return self.api.ask(organisation, ApiRequest::of(operation.route).parameters(path)).await.map(Some);
        };
        let order = if list.query.iter().any(|field| field.name == "order") { "&order=desc" } else { "" };
        let mut place = if list.has_cursor { String::new() } else { "&page=1".to_owned() };
        for _ in 0..LOOKED_THROUGH {
            let list = ApiRequest::of(list.route).parameters(path.iter().copied());
            let mut page = self.api.ask(organisation, list.query(format!("size={ROWS}{order}{place}"))).await?;
            let items = page["items"].as_array_mut().into_iter().flatten();
            if let Some(found) = items.into_iter().find(|item| item["id"] == id) {
                return Ok(Some(found.take()));
            }
            place = match (page["next"].as_str(), page["next_page"].as_u64()) {
                (Some(next), _) => format!("&after={next}"),
                (None, Some(next)) => format!("&page={next}"),
                (None, None) => break,
            };
        }
        Ok(None)
    }

    /// The form of an operation, closed until it is needed. `known` are the parameters of its path that are decided, and
    /// `stored` is the record that it changes.
    pub(super) async fn operation(
        &self,
        organisation: &OrganisationWithKey,
        operation: &PageOperation,
        known: &[(&str, &str)],
        stored: Option<&Value>,
    ) -> Markup {
        let id = known.last().map_or("", |(_, id)| *id);
        let form = format!("{}-{id}", operation.route.name);
        let known_one = |name: &str| known.iter().find(|(known, _)| *known == name);
        let mut fields = Vec::new();
        for parameter in operation.route.parameters().filter(|parameter| known_one(parameter).is_none()) {
            let field = described::id_field(parameter);
            fields.push(field.shown(&form, None, &self.choices(organisation, parameter).await));
        }
        // A GET has no body: what it asks for stands in its query.
        let asked = if operation.route.method == "GET" { &operation.query } else { &operation.body };
        for field in asked.iter().filter(|field| field.name != "org_id") {
            let choices =
                if field.input == FieldInput::Id { self.choices(organisation, &field.name).await } else { Vec::new() };
            let stored = stored.map(|stored| &stored[&field.name]);
            fields.push(field.shown(&form, stored, &choices));
        }
        let label = if stored.is_some() { "Change" } else { label(operation) };
        html! {
            details.card.operation id=(format!("{form}-details")) {
                summary { (words(operation.route.name)) }
                p.quiet { (prose(&operation.about)) }
                (request_form(organisation, operation.route, &form, known, &html! { @for field in &fields { (field) } }, label, if stored.is_some() { FormKind::Change } else { FormKind::Whole }))
            }
        }
    }

    /// The tags of a record, with forms to add and remove one.
    async fn tags(&self, organisation: &OrganisationWithKey, kind: &str, id: &str) -> Shown {
        let links = ApiRequest::of(&routes::READ_LINK_TAG_ENTITY_LIST);
        let links = links.query(format!("entity_type={kind}&entity_id={id}&size={ROWS}"));
        let links = self.api.ask(organisation, links).await?;
        let links = links["items"].as_array().cloned().unwrap_or_default();
        let tags = self.choices(organisation, "tag_id").await;
        let is_linked = |tag: &str| links.iter().any(|link| link["tag_id"] == tag);
        let name =
            |tag: &str| tags.iter().find(|(id, _)| id == tag).map_or_else(|| short(tag), |(_, name)| name.clone());
        let text = |link: &Value, name: &str| link[name].as_str().unwrap_or_default().to_owned();
        let choice = html! {
            label for="tag-choice" { "Tag" }
            select #tag-choice name="tag_id" {
                @for (id, name) in tags.iter().filter(|(id, _)| !is_linked(id)) { option value=(id) { (name) } }
            }
        };
        Ok(html! {
            section.card {
                h2 { "Tags" }
                div.live.tags #tags {
                    @for link in &links {
                        @let (link, tag) = (text(link, "id"), name(&text(link, "tag_id")));
                        (request_form(organisation, &routes::DELETE_LINK_TAG_ENTITY, &format!("untag-{link}"),
                            &[("link_tag_entity_id", &link)], &html! { span.badge.quiet { (tag) } }, &format!("Remove {tag}"), FormKind::Within))
                    }
                    @if links.is_empty() { p.quiet { "It has no tag." } }
                }
                @if tags.iter().any(|(id, _)| !is_linked(id)) {
                (request_form(organisation, &routes::CREATE_LINK_TAG_ENTITY, "tag", &[("entity_type", kind), ("entity_id", id)], &choice, "Add", FormKind::Within))
                }
            }
        })
    }
}

/// The members of a record, with their names.
fn members(organisation: &OrganisationWithKey, record: &PageRecord, value: &Value, names: &KnownNames) -> Markup {
    let fields = match (record.read(), record.list()) {
        (Some(read), _) => &read.answer[..],
        (None, list) => list.and_then(|list| list.items.as_deref()).unwrap_or_default(),
    };
    html! {
        dl.facts.live #members {
            @for field in fields {
                div { dt { (words(&field.name)) } dd { (wide_cell(organisation, field, value, names)) } }
            }
        }
    }
}

/// Links to what belongs to the record, and to its own pages.
fn related(organisation: &OrganisationWithKey, record: &PageRecord, id: &str) -> Markup {
    let own_page = [("conversation", "Open as a chat"), ("campaign", "Over time")];
    let own_page = own_page.into_iter().find(|(name, _)| *name == record.name);
    html! {
        nav.related aria-label="What belongs to it" {
            @if let Some((name, label)) = own_page { a href=(format!("/console/{name}s?org={}&{name}={id}", organisation.name)) { (label) } }
            @for (other, parameter) in record.belongings() {
                a href=(address(organisation, other, None, &[(parameter, id)])) { (words(other.name)) }
            }
            a href=(format!("/console/table?org={}&record={id}", organisation.name)) { "Stored items" }
        }
    }
}

/// The form that removes a record, after a question.
fn deletion(organisation: &OrganisationWithKey, delete: &PageOperation, known: &[(&str, &str)]) -> Markup {
    let form = format!("{}-{}", delete.route.name, known.last().map_or("", |(_, id)| id));
    let label = words(delete.route.name);
    html! {
        details.card.operation.danger id=(format!("{form}-details")) {
            summary { (label) " …" }
            p { (prose(&delete.about)) }
            p { "Nothing brings it back." }
            (request_form(organisation, delete.route, &form, known, &html! {}, &label, FormKind::Whole))
        }
    }
}

/// A form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormKind {
    /// It sends all that was put in. Then the page of the record follows.
    Whole,
    /// It changes a record, and sends what is new.
    Change,
    /// It sends all, and the page stays.
    Within,
}

/// A form that sends a request of `route`, with its answer below it. If it changes a record, it sends what was changed.
fn request_form(
    organisation: &OrganisationWithKey,
    route: &Route,
    id: &str,
    known: &[(&str, &str)],
    inputs: &Markup,
    label: &str,
    kind: FormKind,
) -> Markup {
    let sent = |name: &str| route.parameters().any(|parameter| parameter == name) || name.starts_with("entity_");
    html! {
        form.request id=(id) data-method="POST" data-changes[kind == FormKind::Change]
            action=(format!("/console/forms/{}?org={}{}", route.name, organisation.name, if kind == FormKind::Within { "&stay=yes" } else { "" }))
        {
            @for (name, value) in known.iter().filter(|(name, _)| sent(name)) { input type="hidden" name=(name) value=(value); }
            (inputs)
            button.main[route.method != "DELETE" && route.method != "GET"] { (label) }
            pre.answer tabindex="0" role="region" aria-label="Answer" hidden {}
        }
    }
}

/// The label of the button of an operation.
fn label(operation: &PageOperation) -> &'static str {
    match (operation.route.method, operation.route.success) {
        ("GET", _) => "Ask",
        ("DELETE", _) => "Remove",
        (_, 201) => "Create",
        _ => "Send",
    }
}

/// The address to which a browser goes after a request was answered with `data`; none where the page stays.
pub fn next_address<'a>(
    organisation: &OrganisationWithKey,
    operation: &PageOperation,
    path: &[(&'a str, &'a str)],
    data: &'a Value,
) -> Option<String> {
    let record = described::record(operation.route.record)?;
    let own = record.own?;
    let of_path: Vec<_> = path.iter().filter(|(name, _)| *name != own).copied().collect();
    let same = |other: Option<&PageOperation>| other.is_some_and(|other| other.route == operation.route);
    if same(record.delete()) {
        return Some(address(organisation, record, None, &of_path));
    }
    let id = match operation.route.success {
        _ if same(record.update()) => path.iter().find(|(name, _)| *name == own).map(|(_, id)| *id),
        201 if record.creates().any(|create| create.route == operation.route) => data["id"].as_str(),
        _ => None,
    };
    // The answer says it, or else the path of the request.
    let mut known: Vec<(&str, &str)> = parents(record, data).collect();
    let needed: Vec<_> =
        record.read().or(record.list()).into_iter().flat_map(|found| found.route.parameters()).collect();
    known.extend(of_path.into_iter().filter(|(name, _)| needed.contains(name) && data[*name].is_null()));
    id.map(|id| address(organisation, record, Some(id), &known))
}
