//! The page of a record's list, made from the document: columns, filters, pages, forms for a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Html;
use futures_util::future::join_all;
use maud::{Markup, html};
use serde_json::Value;

use super::cells::{address, cell, id_to_copy, query_of, short};
use super::described::{self, PageOperation, PageRecord};
use super::fields::{InputField, prose, words};
use super::layout::Head;
use super::markup::rows;
use super::{Asked, Console, NO_ORGANISATION, Shown, pages};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::names::name_of;

/// The rows of a page.
const ROWS_OF_A_PAGE: usize = 25;
/// The most columns beside the name and the id.
const COLUMNS: usize = 7;
/// Parameters that are no filters.
const PAGING: [&str; 3] = ["page", "size", "after"];

/// The query of a page: filters of a list, and the parameters of its path.
pub type Given = BTreeMap<String, String>;

/// The page of a record's list.
pub(super) async fn page(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
    Query(given): Query<Given>,
) -> Html<String> {
    let shown = match console.organisation(asked.org.as_deref()) {
        Some(organisation) => console.records(organisation, &name, &given).await,
        None => Err(NO_ORGANISATION.to_owned()),
    };
    let about = described::record(&name).map_or("", |record| record.about.as_str());
    let head = Head::within(pages::page(pages::RECORDS), &words(&name), html! { (prose(about)) }, &asked);
    console.framed(head, shown).await
}

impl Console {
    /// Every record, with how many there are.
    pub(super) async fn all_records(&self, organisation: &OrganisationWithKey) -> Markup {
        let counted = join_all(described::records().iter().map(async |record| {
            let list = record.list().filter(|list| list.route.parameters().next().is_none() && !list.has_cursor);
            let page = self.api.ask(organisation, ApiRequest::of(list?.route).query("size=1")).await.ok()?;
            page["total"].as_u64()
        }));
        let counts = counted.await;
        html! {
            ul.index.live #all-records {
                @for (record, count) in described::records().iter().zip(counts) {
                    li {
                        a.card href=(address(organisation, record, None, &[])) {
                            span.row { strong { (words(record.name)) } @if let Some(count) = count { span.quiet { (count) } } }
                            span.quiet { (record.about.split_once(". ").map_or(record.about.as_str(), |(first, _)| first).trim_end_matches('.')) }
                        }
                    }
                }
            }
        }
    }

    pub(super) async fn records(&self, organisation: &OrganisationWithKey, name: &str, given: &Given) -> Shown {
        let record = described::record(name).ok_or_else(|| format!("There is no record {name}."))?;
        let creates: Vec<_> = record.creates().collect();
        let others: Vec<_> = record.others().collect();
        let mut forms = Vec::new();
        for operation in creates.into_iter().chain(others) {
            forms.push(self.operation(organisation, operation, &parameters(operation, given), None).await);
        }
        let mut rows = html! {};
        if let Some(list) = record.list() {
            rows = self.list(organisation, record, list, given).await?;
        }
        Ok(html! {
            div.operations { @for form in &forms { (form) } }
            (rows)
        })
    }

    async fn list(
        &self,
        organisation: &OrganisationWithKey,
        record: &'static PageRecord,
        list: &PageOperation,
        given: &Given,
    ) -> Shown {
        let request = match self.list_request(organisation, list, given).await {
            Ok(request) => request,
            Err(missing) => return Ok(html! { p.empty { "There is no " (words(missing)) " yet. Make one first." } }),
        };
        let path: Vec<_> = request.path.iter().map(|(name, id)| (*name, id.as_str())).collect();
        let query = query_of(request.query.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let page = ApiRequest::of(list.route).parameters(path.iter().copied()).query(query);
        let answer = self.api.ask(organisation, page).await?;
        let items: Vec<_> = answer["items"].as_array().cloned().unwrap_or_default();
        let names = self.names(organisation, items.iter()).await;
        let columns = columns(list, &items);
        let headings: Vec<String> = columns.iter().map(|field| words(&field.name)).collect();
        let headings: Vec<&str> = ["Name", "Id"].into_iter().chain(headings.iter().map(String::as_str)).collect();
        let shown: Vec<_> = items
            .iter()
            .map(|item| {
                let id = item["id"].as_str().unwrap_or_default();
                let to = address(organisation, record, Some(id), &path);
                html! {
                    td.name { a href=(to) { (name_of(item).unwrap_or_else(|| short(id))) } }
                    td { (id_to_copy(id)) }
                    @for field in &columns { td { (cell(organisation, field, item, names)) } }
                }
            })
            .collect();
        Ok(html! {
            (request.filters(organisation, record))
            (rows(&format!("list-{}", record.name), &headings, &shown, "None."))
            (pages(organisation, record, &answer, given))
        })
    }

    /// What is asked of `list`, or the parameter of its path for which there is no record yet.
    async fn list_request(
        &self,
        organisation: &OrganisationWithKey,
        list: &PageOperation,
        given: &Given,
    ) -> Result<ListRequest, &'static str> {
        let mut request = ListRequest::default();
        let asked = |name: &str| given.get(name).filter(|value| !value.is_empty()).cloned();
        for parameter in list.route.parameters() {
            let choices = self.choices(organisation, parameter).await;
            let first = choices.first().map(|(id, _)| id.clone());
            request.path.push((parameter, asked(parameter).or(first).ok_or(parameter)?));
            request.fields.push((described::id_field(parameter), choices));
        }
        for field in &list.query {
            let value = match field.name.as_str() {
                "size" => Some(ROWS_OF_A_PAGE.to_string()),
                // The newest is what one looks for.
                "order" => asked("order").or(Some("desc".to_owned())),
                name => asked(name),
            };
            request.query.extend(value.map(|value| (field.name.clone(), value)));
            if !PAGING.contains(&field.name.as_str()) {
                request.fields.push((field.clone(), self.choices(organisation, &field.name).await));
            }
        }
        Ok(request)
    }
}

/// What is asked of a list.
#[derive(Default)]
struct ListRequest {
    /// The parameters of its path.
    path: Vec<(&'static str, String)>,
    /// Its query.
    query: Vec<(String, String)>,
    /// What can be chosen, each with the ids and names of the records from which it is chosen.
    fields: Vec<(InputField, Vec<(String, String)>)>,
}

impl ListRequest {
    /// The form of the filters.
    fn filters(&self, organisation: &OrganisationWithKey, record: &PageRecord) -> Markup {
        let used = |name: &str| {
            let of_path = self.path.iter().map(|(name, id)| (*name, id));
            let used = of_path.chain(self.query.iter().map(|(name, value)| (name.as_str(), value)));
            used.into_iter().find(|(used, _)| *used == name).map_or("", |(_, value)| value)
        };
        html! {
            @if !self.fields.is_empty() {
                form.filters method="get" action=(format!("/console/records/{}", record.name)) {
                    input type="hidden" name="org" value=(organisation.name);
                    @for (field, choices) in &self.fields { (field.filter(used(&field.name), choices)) }
                    button { "Filter" }
                }
            }
        }
    }
}

/// The parameters of the operation's path that are given.
fn parameters<'a>(operation: &PageOperation, given: &'a Given) -> Vec<(&'static str, &'a str)> {
    operation.route.parameters().filter_map(|name| Some((name, given.get(name)?.as_str()))).collect()
}

/// The columns of a list beside name and id: what fits, and is set in any of the items.
fn columns<'a>(list: &'a PageOperation, items: &[Value]) -> Vec<&'a InputField> {
    let is_set = |field: &&InputField| items.is_empty() || items.iter().any(|item| !item[&field.name].is_null());
    let all = list.items.iter().flatten().filter(|field| field.fits_a_column());
    let mut columns: Vec<_> = all.filter(is_set).take(COLUMNS).collect();
    // The time at which each was made says most about a list.
    let made = list.items.iter().flatten().find(|field| ["created_at", "at"].contains(&field.name.as_str()));
    if let Some(made) = made.filter(|made| !columns.iter().any(|field| field.name == made.name)) {
        columns.truncate(COLUMNS - 1);
        columns.push(made);
    }
    columns
}

/// Links to the pages before and after this one.
fn pages(organisation: &OrganisationWithKey, record: &PageRecord, answer: &Value, given: &Given) -> Markup {
    let link = |name: &str, value: String, label: &str| {
        let others = given.iter().filter(|(other, _)| !["org", "page", "after"].contains(&other.as_str()));
        let mut query: Vec<_> = others.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query.push((name, &value));
        html! { a.button href=(address(organisation, record, None, &query)) { (label) } }
    };
    let number = |name: &str| answer[name].as_u64();
    html! {
        nav.pages aria-label="Pages of the list" {
            @if let (Some(page), Some(pages), Some(total)) = (number("page"), number("pages"), number("total")) {
                span.quiet { "Page " (page) " of " (pages.max(1)) " · " (total) " in all" }
            }
            @if let Some(before) = number("previous_page") { (link("page", before.to_string(), "Previous")) }
            @if let Some(after) = number("next_page") { (link("page", after.to_string(), "Next")) }
            @if let Some(next) = answer["next"].as_str() { (link("after", next.to_owned(), "Next")) }
        }
    }
}
