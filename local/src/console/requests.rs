//! The requests: a table with the operation first, its records by their names, and filters in the address.

use std::collections::BTreeSet;
use std::sync::Arc;

use maud::{Markup, html};
use shared::input::schema::capitalised;
use shared::routes;
use uuid::Uuid;

use super::described;
use super::layout::linked;
use super::markup::{duration, empty, record_link, rows, short_id, status, time_of};
use super::pages::REQUESTS;
use super::{Asked, Console};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::journal::Entry;

/// The most requests of the page.
const MOST: usize = 200;

/// The classes of statuses: the first digit, and its words.
const CLASSES: [(&str, &str); 4] =
    [("2", "2xx success"), ("3", "3xx elsewhere"), ("4", "4xx refused"), ("5", "5xx failed")];

/// A record that a request is about.
pub(super) struct AboutRecord {
    pub(super) id: String,
    pub(super) record: &'static str,
    pub(super) name: Option<String>,
}

impl Console {
    pub(super) async fn requests(&self, asked: &Asked) -> Markup {
        self.learn_names().await;
        let entries = self.journal.newest(usize::MAX);
        let operations: BTreeSet<_> =
            entries.iter().filter_map(|entry| entry.route()).map(|route| route.name).collect();
        let found: Vec<_> = entries.iter().filter(|entry| self.is_asked(entry, asked)).collect();
        let listed: Vec<_> = found.iter().take(MOST).map(|entry| self.request_row(entry)).collect();
        let nothing = if entries.is_empty() {
            let next = html! { p { a.button href="/" { "Copy a first request from the start page" } } };
            empty("No request yet. Whatever calls the API shows here at once.", &next)
        } else {
            let all = linked(REQUESTS, asked.org.as_deref());
            empty("No request fits these filters.", &html! { p { a.button href=(all) { "Show all" } } })
        };
        let headings =
            ["Status", "Operation", "About", "#Took", "#Calls", "#Depth", "#Read units", "#Write units", "When"];
        html! {
            (filters(asked, &operations))
            p.quiet.live #shown { (found.len()) " of the last " (entries.len()) " requests" }
            (rows("requests", &headings, &listed, nothing))
        }
    }

    /// Whether the filters of the address let a request through.
    fn is_asked(&self, entry: &Entry, asked: &Asked) -> bool {
        let given = |filter: &Option<String>| filter.clone().filter(|text| !text.is_empty());
        let organisation = self.organisation_of(entry).map(|organisation| organisation.name.as_str());
        let has = |word: &str| {
            let mut texts = vec![entry.name().to_owned(), entry.call.path.clone(), entry.request_id.clone()];
            texts.extend(self.about(entry).into_iter().filter_map(|about| about.name));
            texts.extend(entry.issues.iter().map(|issue| issue.msg.clone()));
            texts.iter().any(|text| text.to_lowercase().contains(&word.to_lowercase()))
        };
        given(&asked.org).is_none_or(|org| organisation == Some(&org))
            && given(&asked.status).is_none_or(|class| entry.status.to_string().starts_with(&class))
            && given(&asked.operation).is_none_or(|name| entry.name() == name)
            && given(&asked.search).is_none_or(|words| words.split_whitespace().all(has))
    }

    fn request_row(&self, entry: &Entry) -> Markup {
        html! {
            td { (status(entry.status.into())) }
            td.wide {
                (request_link(entry))
                @for issue in &entry.issues { div.quiet { code { (location(&issue.loc)) } " " (issue.msg) } }
            }
            td.about { (self.about_line(entry)) }
            td.number { (duration(entry.took)) }
            td.number { (entry.cost.calls) }
            td.number { (entry.cost.depth) }
            td.number { (entry.cost.read_units) }
            td.number { (entry.cost.write_units) }
            td { (time_of(entry.at)) }
        }
    }

    /// The organisation and the records of a request, by their names.
    pub(super) fn about_line(&self, entry: &Entry) -> Markup {
        let organisation = self.organisation_of(entry);
        html! {
            @if let Some(organisation) = organisation {
                span.quiet { (capitalised(&organisation.name)) }
                @for about in self.about(entry) { " / " (about_link(organisation, &about)) }
            }
        }
    }

    /// The organisation of a request, if its key is known.
    pub(super) fn organisation_of(&self, entry: &Entry) -> Option<&OrganisationWithKey> {
        let all = self.api.organisations();
        let has_key = |one: &&OrganisationWithKey| entry.key().is_some_and(|key| key.ends_with(&one.key));
        all.iter().find(|one| Some(one.id) == entry.organisation).or_else(|| all.iter().find(has_key))
    }

    /// The records in the path of a request, and the one that it made.
    pub(super) fn about(&self, entry: &Entry) -> Vec<AboutRecord> {
        let Some(route) = entry.route() else { return Vec::new() };
        let in_path = route.match_path(&entry.call.path).unwrap_or_default();
        let ids = in_path
            .into_iter()
            .map(|(name, id)| (id.to_owned(), described::referred(name).map_or(route.record, |record| record.name)));
        let made = entry.made.iter().map(|id| (id.clone(), route.record));
        let mut about: Vec<AboutRecord> = Vec::new();
        for (id, record) in ids.chain(made) {
            if Uuid::try_parse(&id).is_err() || about.iter().any(|one| one.id == id) {
                continue;
            }
            let name = self.journal.names.find(record, &id);
            about.push(AboutRecord { id, record, name });
        }
        about
    }

    /// Reads the lists of all records once, so that the records of the demo set have names.
    pub(super) async fn learn_names(&self) {
        let learn = async || {
            let lists = routes::ALL.iter().filter(|route| route.method == "GET" && route.parameters().next().is_none());
            for route in lists {
                for organisation in self.api.organisations() {
                    if let Ok(data) = self.api.ask(organisation, ApiRequest::of(route).query("size=100")).await {
                        self.journal.names.learn(route, &data);
                    }
                }
            }
        };
        self.names_are_known.get_or_init(learn).await;
    }

    /// A link to the request with which a trace began; nothing where it is not known, or no longer kept.
    pub(super) fn request_of(&self, trace: Option<&str>) -> Markup {
        let found: Option<Arc<Entry>> = trace.and_then(|trace| self.journal.find(trace));
        html! { @if let Some(entry) = found { (request_link(&entry)) } }
    }
}

/// A link to the page of a request, with the name of its operation.
pub(super) fn request_link(entry: &Entry) -> Markup {
    html! {
        a.operation href=(address(entry)) {
            @match entry.route() {
                Some(route) => { strong { (route.name) } }
                None => { code { (entry.call.method) " " (entry.call.path) } }
            }
        }
    }
}

/// The address of the page of a request.
pub(super) fn address(entry: &Entry) -> String {
    format!("{REQUESTS}/{}", entry.request_id)
}

fn about_link(organisation: &OrganisationWithKey, about: &AboutRecord) -> Markup {
    let unnamed = || html! { (about.record) " " (short_id(&about.id)) };
    let name = about.name.as_ref().map_or_else(unnamed, |name| html! { (name) });
    record_link(&organisation.name, about.record, &about.id, name)
}

/// The location of an issue as a reader would write it: `body.name`.
pub(super) fn location(loc: &serde_json::Value) -> String {
    let words = loc.as_array().into_iter().flatten();
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect::<Vec<_>>().join(".")
}

fn filters(asked: &Asked, operations: &BTreeSet<&str>) -> Markup {
    let is = |filter: &Option<String>, value: &str| filter.as_deref() == Some(value);
    html! {
        form.filters method="get" action=(REQUESTS) role="search" {
            @if let Some(org) = &asked.org { input type="hidden" name="org" value=(org); }
            label { "Search " input type="search" name="search" value=(asked.search.as_deref().unwrap_or_default()) placeholder="name, path, id or issue"; }
            label { "Status " select name="status" {
                option value="" { "all" }
                @for (class, words) in CLASSES { option value=(class) selected[is(&asked.status, class)] { (words) } }
            } }
            label { "Operation " select name="operation" {
                option value="" { "all" }
                @for name in operations { option value=(name) selected[is(&asked.operation, name)] { (name) } }
            } }
            button { "Filter" }
        }
    }
}
