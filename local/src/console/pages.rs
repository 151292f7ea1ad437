//! The list of the console's pages: the side bar, the routes and the tests follow it.

use super::icons::{self, Icon};

/// A page of the console.
#[derive(Debug)]
pub struct ConsolePage {
    /// Its address.
    pub path: &'static str,
    /// Its title.
    pub title: &'static str,
    /// A sentence below the title.
    pub says: &'static str,
    /// Whose data it shows.
    pub scope: PageScope,
    /// Its place in the side bar.
    pub(super) group: Group,
    /// Its icon in the side bar.
    pub(super) icon: Icon,
}

/// Whose data a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageScope {
    /// Everything; the page has no choice of an organisation.
    Everything,
    /// All organisations, or the chosen one.
    AllOrOne,
    /// One organisation: the chosen one, or the first.
    One,
}

/// A group of the side bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Start,
    Activity,
    Data,
    StandIns,
}

impl Group {
    /// The groups, in their order.
    pub(super) const ALL: [Self; 4] = [Self::Start, Self::Activity, Self::Data, Self::StandIns];

    /// The words above its pages; none above the first page.
    pub(super) const fn title(self) -> Option<&'static str> {
        match self {
            Self::Start => None,
            Self::Activity => Some("Activity"),
            Self::Data => Some("Data"),
            Self::StandIns => Some("Stand-ins"),
        }
    }
}

/// The address of the page of the records.
pub const RECORDS: &str = "/console/records";
/// The address of the page of the requests.
pub const REQUESTS: &str = "/console/requests";
/// The address of the page of the events.
pub const EVENTS: &str = "/console/events";
/// The address of the page of the deliveries.
pub const DELIVERIES: &str = "/console/deliveries";
/// The address of the page of the conversations.
pub const CONVERSATIONS: &str = "/console/conversations";
/// The address of the page of the campaigns.
pub const CAMPAIGNS: &str = "/console/campaigns";
/// The address of the page of the time.
pub const TIME: &str = "/console/time";

/// The pages.
pub const PAGES: [ConsolePage; 11] = [
    ConsolePage {
        path: "/",
        title: "Start",
        says: "The next steps, and what happened last.",
        scope: PageScope::Everything,
        group: Group::Start,
        icon: icons::START,
    },
    ConsolePage {
        path: REQUESTS,
        title: "Requests",
        says: "The last requests to the API, with their calls of the database.",
        scope: PageScope::AllOrOne,
        group: Group::Activity,
        icon: icons::REQUESTS,
    },
    ConsolePage {
        path: EVENTS,
        title: "Events",
        says: "What arrived in the inbox, and how it was answered.",
        scope: PageScope::Everything,
        group: Group::Activity,
        icon: icons::EVENTS,
    },
    ConsolePage {
        path: DELIVERIES,
        title: "Deliveries",
        says: "The webhooks with their health, and every attempt at each event.",
        scope: PageScope::One,
        group: Group::Activity,
        icon: icons::DELIVERIES,
    },
    ConsolePage {
        path: RECORDS,
        title: "Records",
        says: "Every record of the API, to read and to change.",
        scope: PageScope::One,
        group: Group::Data,
        icon: icons::RECORDS,
    },
    ConsolePage {
        path: CONVERSATIONS,
        title: "Conversations",
        says: "What people and assistants say to each other.",
        scope: PageScope::One,
        group: Group::Data,
        icon: icons::CONVERSATIONS,
    },
    ConsolePage {
        path: CAMPAIGNS,
        title: "Campaigns",
        says: "One message to many contacts, and how far it is.",
        scope: PageScope::One,
        group: Group::Data,
        icon: icons::CAMPAIGNS,
    },
    ConsolePage {
        path: "/console/counts",
        title: "Counts",
        says: "What happened on each of the last 30 days, in UTC.",
        scope: PageScope::One,
        group: Group::Data,
        icon: icons::COUNTS,
    },
    ConsolePage {
        path: "/console/table",
        title: "Table",
        says: "The items of the organisation as they are stored. Secrets are masked.",
        scope: PageScope::One,
        group: Group::Data,
        icon: icons::TABLE,
    },
    ConsolePage {
        path: "/console/payments",
        title: "Payments",
        says: "The stand-in for the payment provider sends events.",
        scope: PageScope::One,
        group: Group::StandIns,
        icon: icons::PAYMENTS,
    },
    ConsolePage {
        path: TIME,
        title: "Time",
        says: "Skips time, and shows what became due.",
        scope: PageScope::Everything,
        group: Group::StandIns,
        icon: icons::TIME,
    },
];

/// The page at `path`; the first page where there is none.
pub(super) fn page(path: &str) -> &'static ConsolePage {
    const START: &ConsolePage = &PAGES[0];
    PAGES.iter().find(|page| page.path == path).unwrap_or(START)
}
