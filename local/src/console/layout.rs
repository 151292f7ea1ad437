//! The frame of every page: the side bar, the header with the choice of an organisation, and the content below it.

use std::sync::{Mutex, PoisonError};

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};
use shared::request::route::Route;
use shared::routes;
use shared::values::id::OrgId;

use super::icons::{self, Icon, icon};
use super::markup::tabs;
use super::pages::{self, ConsolePage, Group, PAGES, PageScope};
use super::{Asked, Console, Shown};
use crate::api::{ApiRequest, OrganisationWithKey};
use crate::inbox;

/// The numbers of conversations and campaigns of an organisation at a change, for the side bar.
#[derive(Debug, Default)]
pub struct Totals(Mutex<Option<(CountedAt, (u64, u64))>>);

/// The number of the change at which records were counted, and whose they are.
type CountedAt = (u64, OrgId);

/// The head of a page.
pub(super) struct Head<'a> {
    /// The page of the list that is current in the side bar.
    pub(super) page: &'static ConsolePage,
    /// The title, where it is not that of the page: the header then has a link back to the page.
    pub(super) title: Option<String>,
    /// What stands below the title.
    pub(super) says: Markup,
    /// What the address asks for.
    pub(super) asked: &'a Asked,
}

impl<'a> Head<'a> {
    /// The head of a page of the list.
    pub(super) fn of(page: &'static ConsolePage, asked: &'a Asked) -> Self {
        Self { page, title: None, says: html! { (page.says) }, asked }
    }

    /// The head of one thing of a page of the list, such as a request.
    pub(super) fn within(page: &'static ConsolePage, title: &str, says: Markup, asked: &'a Asked) -> Self {
        Self { page, title: Some(title.to_owned()), says, asked }
    }
}

impl Console {
    /// The whole document of a page.
    pub(super) async fn framed(&self, head: Head<'_>, shown: Shown) -> Html<String> {
        let title = head.title.as_deref().unwrap_or(head.page.title);
        let counts = self.counts_of_pages(head.asked).await;
        let page = html! {
            (DOCTYPE)
            html lang="en" data-now=(self.clock.now()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { (title) " · Console" }
                    link rel="stylesheet" href="/console/console.css";
                    script defer src="/console/console.js" {}
                }
                body {
                    a.skip href="#content" { "To the content" }
                    nav.top aria-label="Console" {
                        (brand())
                        button.menu popovertarget="menu" aria-label="Menu" { (icon(icons::MENU)) }
                    }
                    (side_bar(head.page, head.asked, &counts))
                    div.page {
                        header.head {
                            div.heading {
                                h1 {
                                    @if head.title.is_some() { a href=(linked(head.page.path, head.asked.org.as_deref())) { (head.page.title) } " / " }
                                    (title)
                                }
                                p.says { (head.says) }
                            }
                            (self.switch(head.page, head.title.is_some(), head.asked))
                        }
                        main #content {
                            output #notice role="status" {}
                            @match shown {
                                Ok(shown) => { (shown) }
                                Err(failure) => { p.failure { (failure) } }
                            }
                        }
                    }
                }
            }
        };
        Html(page.into_string())
    }

    /// The choice of an organisation, above a page or one thing within it.
    fn switch(&self, page: &ConsolePage, is_within: bool, asked: &Asked) -> Markup {
        let current = match page.scope {
            PageScope::Everything => return html! {},
            // A request belongs to one organisation.
            PageScope::AllOrOne if is_within => return html! {},
            PageScope::AllOrOne => {
                self.api.organisations().iter().find(|one| Some(one.name.as_str()) == asked.org.as_deref())
            }
            PageScope::One => self.organisation(asked.org.as_deref()),
        };
        let all = Some(("all", page.path.to_owned(), current.is_none())).filter(|_| page.scope == PageScope::AllOrOne);
        let choice = self.api.organisations().iter().map(|one| {
            let is_current = current.is_some_and(|current| current.id == one.id);
            (one.name.as_str(), linked(page.path, Some(&one.name)), is_current)
        });
        tabs("Organisations", &all.into_iter().chain(choice).collect::<Vec<_>>())
    }

    /// The counts beside the pages of the side bar.
    async fn counts_of_pages(&self, asked: &Asked) -> Vec<(&'static str, u64)> {
        let mut counts = vec![(pages::REQUESTS, self.journal.count()), (pages::EVENTS, self.inbox.count())];
        if let Some(organisation) = self.organisation(asked.org.as_deref()) {
            counts.extend(self.totals(organisation).await);
        }
        counts
    }

    /// The numbers of records of an organisation. They are read again only after a change.
    async fn totals(&self, organisation: &OrganisationWithKey) -> [(&'static str, u64); 2] {
        let now = (*self.journal.changes().borrow(), organisation.id);
        let known = *self.totals.0.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = match known {
            Some((then, totals)) if then == now => totals,
            _ => {
                let total = async |route| self.total(organisation, route).await;
                tokio::join!(total(&routes::LIST_CONVERSATIONS), total(&routes::LIST_CAMPAIGNS))
            }
        };
        *self.totals.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, totals));
        [(pages::CONVERSATIONS, totals.0), (pages::CAMPAIGNS, totals.1)]
    }

    /// The number of records in a list; 0 if the list has no answer.
    async fn total(&self, organisation: &OrganisationWithKey, route: &Route) -> u64 {
        let list = self.api.ask(organisation, ApiRequest::of(route).query("size=1")).await;
        list.ok().and_then(|list| list["total"].as_u64()).unwrap_or_default()
    }
}

fn brand() -> Markup {
    html! { a.brand href="/" { span.mark aria-hidden="true" {} span { "Assistants" small { "on this machine" } } } }
}

/// The side bar. On a narrow screen it opens from the button at the top.
fn side_bar(current: &ConsolePage, asked: &Asked, counts: &[(&str, u64)]) -> Markup {
    let others: [(&str, Icon, &str); 2] =
        [(routes::READ_DOCS.path, icons::API, "The API"), (inbox::PATH, icons::INBOX, "The inbox, as JSON")];
    html! {
        nav #menu popover aria-label="Pages" {
            (brand())
            @for group in Group::ALL {
                @if let Some(title) = group.title() { p.group { (title) } }
                ul.live id=(format!("pages-{group:?}").to_lowercase()) {
                    @for page in PAGES.iter().filter(|page| page.group == group) {
                        @let count = counts.iter().find(|(path, count)| *path == page.path && *count > 0);
                        li {
                            a href=(linked(page.path, asked.org.as_deref())) aria-current=[(page.path == current.path).then_some("page")] {
                                (icon(page.icon)) span { (page.title) }
                                @if let Some((_, count)) = count { span.count { (count) } }
                            }
                        }
                    }
                }
            }
            p.group { "Elsewhere" }
            ul { @for (to, image, name) in others { li { a href=(to) { (icon(image)) span { (name) } } } } }
        }
    }
}

/// The address of a page for the organisation of this name.
pub(super) fn linked(path: &str, organisation: Option<&str>) -> String {
    match organisation {
        Some(name) => {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("org", name).finish();
            format!("{path}?{query}")
        }
        None => path.to_owned(),
    }
}
