//! The plan of a fault run, made from a seed before anything happens.

use std::time::Duration;

use fastrand::Rng;
use shared::records::widget::WidgetType;

use crate::receiver::Behaviour;

/// The number of organisations. Each has a webhook of every kind.
pub const ORGANISATIONS: usize = 3;
/// Contacts of a campaign whose connector never recovers: each is attempted ten times, and such a connector gets one
/// attempt per minute.
const NEVER_RECOVERING: usize = 3;

/// The channels whose campaigns try contacts again.
const RETRYING: [WidgetType; 4] = [WidgetType::Chat, WidgetType::FbMessenger, WidgetType::PlivoCall, WidgetType::Phone];

/// How an endpoint answers until it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {
    /// 200, at once.
    Prompt,
    /// 200, but slowly: its circuit opens. It never recovers.
    Slow,
    /// 500.
    Broken,
    /// 429, with `Retry-After`.
    Busy,
    /// No answer: it drops the connection.
    Dropping,
    /// No answer, and the connection stays open.
    Silent,
    /// 500, and it never recovers.
    Dead,
}

impl EndpointKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Prompt, Self::Slow, Self::Broken, Self::Busy, Self::Dropping, Self::Silent, Self::Dead];

    /// The name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prompt => "at once",
            Self::Slow => "slow",
            Self::Broken => "500",
            Self::Busy => "429",
            Self::Dropping => "drops",
            Self::Silent => "never answers",
            Self::Dead => "500 for ever",
        }
    }

    /// Whether it accepts events, now or after it has recovered.
    pub fn recovers(self) -> bool {
        self != Self::Dead
    }

    /// How it answers at first. `attempt` is the time limit of an attempt.
    pub fn at_first(self, attempt: Duration, random: &mut Rng) -> Behaviour {
        match self {
            Self::Prompt => Behaviour::Answer(200),
            // An answer that takes more than a fifth is slow.
            Self::Slow => Behaviour::Slow(attempt * 3 / 10, 200),
            Self::Broken | Self::Dead => Behaviour::Answer(500),
            Self::Busy => Behaviour::RetryAfter(429, random.u64(30..=7200)),
            Self::Dropping => Behaviour::DropConnection,
            Self::Silent => Behaviour::Never,
        }
    }

    /// How it answers at the end.
    pub fn in_the_end(self, attempt: Duration) -> Behaviour {
        match self {
            Self::Slow | Self::Dead => self.at_first(attempt, &mut Rng::with_seed(0)),
            _ => Behaviour::Answer(200),
        }
    }
}

/// A webhook, with an assistant of its own.
#[derive(Debug, Clone, Copy)]
pub struct PlannedWebhook {
    /// The organisation to which it belongs.
    pub organisation: usize,
    /// How it answers.
    pub kind: EndpointKind,
}

/// A conversation.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn independently of the others")]
pub struct PlannedConversation {
    /// The webhook that gets the event.
    pub webhook: usize,
    /// Whether it is closed.
    pub closes: bool,
    /// Whether it has messages.
    pub has_messages: bool,
    /// Whether it is a call, of which a connector reports how it ended.
    pub is_call: bool,
    /// Whether a form and an intent are captured in it.
    pub captures: bool,
}

impl PlannedConversation {
    fn of(closes: bool, random: &mut Rng, of_kind: impl Fn(EndpointKind, usize) -> usize) -> Self {
        let kind = match random.usize(0..20) {
            0..10 => EndpointKind::Prompt,
            10..12 => EndpointKind::Slow,
            12..14 => EndpointKind::Broken,
            14..16 => EndpointKind::Busy,
            16..18 => EndpointKind::Dropping,
            18 => EndpointKind::Silent,
            _ => EndpointKind::Dead,
        };
        let webhook = of_kind(kind, random.usize(0..ORGANISATIONS));
        let mut one_of = |count: usize| random.usize(0..count) == 0;
        Self { webhook, closes, has_messages: one_of(4), is_call: one_of(5), captures: one_of(8) }
    }
}

/// An act of a caller while a campaign is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerAct {
    /// No act: all of it is sent.
    None,
    /// It is cancelled after its connector has got so many requests.
    Cancel(usize),
    /// It is paused after its connector has got so many requests, and then resumed.
    Pause(usize),
    /// The contacts at these places are deleted.
    DeleteContacts(Vec<u32>),
}

/// A campaign, through a widget of its own.
#[derive(Debug, Clone)]
pub struct PlannedCampaign {
    /// The webhook of its assistant; its secret signs.
    pub webhook: usize,
    /// The widget's channel.
    pub channel: WidgetType,
    /// How the widget's connector answers, if it has one.
    pub connector: Option<EndpointKind>,
    /// The number of its contacts.
    pub contacts: usize,
    /// Whether it has a schedule: it begins some minutes later, and contacts are added in the meantime.
    pub later: bool,
    /// Whether it has a policy by which its contacts are tried again after some outcomes.
    pub retries: bool,
    /// The act of a caller.
    pub act: CallerAct,
}

/// The plan.
#[derive(Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The webhooks.
    pub webhooks: Vec<PlannedWebhook>,
    /// The conversations, in the order in which they are closed.
    pub conversations: Vec<PlannedConversation>,
    /// The campaigns.
    pub campaigns: Vec<PlannedCampaign>,
}

impl Plan {
    /// The plan of `seed`, with these numbers of closed conversations and of contacts.
    pub fn of(seed: u64, conversations: usize, contacts: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        let of_organisation = |organisation| EndpointKind::ALL.map(|kind| PlannedWebhook { organisation, kind });
        let webhooks: Vec<_> = (0..ORGANISATIONS).flat_map(of_organisation).collect();
        let of_kind = |kind: EndpointKind, organisation: usize| {
            let found = webhooks.iter().position(|own| own.kind == kind && own.organisation == organisation);
            found.unwrap_or_default()
        };
        // Half of the work is for healthy endpoints. One in twenty conversations stays open: no event about it may
        // arrive.
        let mut planned: Vec<_> = (0..conversations + conversations / 20)
            .map(|number| PlannedConversation::of(number < conversations, &mut random, of_kind))
            .collect();
        random.shuffle(&mut planned);
        let shapes = [
            (WidgetType::Chat, Some(EndpointKind::Prompt), 10),
            (WidgetType::FbMessenger, Some(EndpointKind::Prompt), 10),
            (WidgetType::PlivoCall, Some(EndpointKind::Prompt), 10),
            (WidgetType::Html, None, 15),
            (WidgetType::Phone, Some(EndpointKind::Broken), 10),
            (WidgetType::Sms, Some(EndpointKind::Slow), 8),
            (WidgetType::Telegram, Some(EndpointKind::Prompt), 15),
            (WidgetType::Whatsapp, Some(EndpointKind::Busy), 12),
            (WidgetType::Sip, Some(EndpointKind::Dropping), 8),
            (WidgetType::WebCall, Some(EndpointKind::Silent), 2),
            (WidgetType::Instagram, Some(EndpointKind::Dead), 0),
        ];
        let mut campaign =
            |(number, (channel, connector, share)): (usize, (WidgetType, Option<EndpointKind>, usize))| {
                let contacts = if share == 0 { NEVER_RECOVERING } else { (contacts * share / 100).max(1) };
                let places = 0..u32::try_from(contacts).unwrap_or(u32::MAX);
                let act = match channel {
                    WidgetType::Telegram => CallerAct::Cancel(contacts / 3),
                    WidgetType::Whatsapp => CallerAct::Cancel(1),
                    WidgetType::FbMessenger => CallerAct::Pause(contacts / 3),
                    WidgetType::Sip => CallerAct::DeleteContacts(places.filter(|_| random.usize(0..3) == 0).collect()),
                    _ => CallerAct::None,
                };
                let later = matches!(channel, WidgetType::Html | WidgetType::PlivoCall | WidgetType::Sms);
                let retries = RETRYING.contains(&channel);
                let webhook = of_kind(EndpointKind::Prompt, number % ORGANISATIONS);
                PlannedCampaign { webhook, channel, connector, contacts, later, retries, act }
            };
        let campaigns = shapes.into_iter().enumerate().map(&mut campaign).collect();
        Self { seed, webhooks, conversations: planned, campaigns }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_one_plan_with_every_case() {
        let plan = Plan::of(7, 1000, 1000);
        assert_eq!(format!("{:?}", Plan::of(7, 1000, 1000)), format!("{plan:?}"));
        assert_ne!(format!("{:?}", Plan::of(8, 1000, 1000)), format!("{plan:?}"));
        assert_eq!(plan.conversations.iter().filter(|conversation| conversation.closes).count(), 1000);
        assert!(plan.conversations.iter().any(|conversation| !conversation.closes));
        let kinds: BTreeSet<_> =
            plan.conversations.iter().map(|conversation| plan.webhooks[conversation.webhook].kind).collect();
        assert_eq!(kinds, EndpointKind::ALL.into());
        let connected: BTreeSet<_> = plan.campaigns.iter().filter_map(|run| run.connector).collect();
        assert_eq!(connected, EndpointKind::ALL.into());
        assert!(plan.campaigns.iter().any(|run| run.connector.is_none() && run.contacts > 0));
        assert_eq!(plan.campaigns.iter().map(|run| run.contacts).sum::<usize>(), 1000 + NEVER_RECOVERING);
        let thinned =
            |run: &PlannedCampaign| matches!(&run.act, CallerAct::DeleteContacts(places) if !places.is_empty());
        assert!(plan.campaigns.iter().any(thinned));
        assert!(plan.campaigns.iter().any(|run| matches!(run.act, CallerAct::Pause(1..))));
        assert!(plan.campaigns.iter().any(|run| run.later && run.contacts > 1));
        assert!(plan.campaigns.iter().any(|run| run.retries && run.later));
        assert!(plan.campaigns.iter().any(|run| run.retries && run.connector == Some(EndpointKind::Broken)));
        let closed = || plan.conversations.iter().filter(|conversation| conversation.closes);
        assert!(closed().any(|conversation| conversation.is_call && conversation.captures));
    }
}
