//! The plan of a fault run, made from a seed before anything happens.

use std::time::Duration;

use fastrand::Rng;
use shared::records::widget::WidgetType;

use crate::receiver::Behaviour;

/// The number of organisations. Each has a webhook of every manner.
pub const ORGANISATIONS: usize = 3;
/// Contacts of a campaign whose connector never recovers: each is attempted ten times, and such a connector gets one
/// attempt per minute.
const NEVER_RECOVERING: usize = 3;

/// How an endpoint answers until it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
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

impl Manner {
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
    pub manner: Manner,
}

/// A conversation.
#[derive(Debug, Clone, Copy)]
pub struct Talk {
    /// The webhook that gets the event.
    pub webhook: usize,
    /// Whether it is closed.
    pub closes: bool,
    /// Whether it has messages.
    pub spoken: bool,
}

/// An act of a caller while a campaign is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// No act: all of it is sent.
    Whole,
    /// It is cancelled after its connector has got so many requests.
    Cancelled(usize),
    /// It is paused after its connector has got so many requests, and then resumed.
    Paused(usize),
    /// The contacts at these places are deleted.
    Thinned(Vec<u32>),
}

/// A campaign, through a widget of its own.
#[derive(Debug, Clone)]
pub struct Run {
    /// The webhook of its assistant; its secret signs.
    pub webhook: usize,
    /// The widget's channel.
    pub channel: WidgetType,
    /// How the widget's connector answers, if it has one.
    pub connector: Option<Manner>,
    /// The number of its contacts.
    pub contacts: usize,
    /// Whether it has a schedule: it begins some minutes later, and contacts are added in the meantime.
    pub later: bool,
    /// The act of a caller.
    pub end: End,
}

/// The plan.
#[derive(Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The webhooks.
    pub webhooks: Vec<PlannedWebhook>,
    /// The conversations, in the order in which they are closed.
    pub talks: Vec<Talk>,
    /// The campaigns.
    pub runs: Vec<Run>,
}

impl Plan {
    /// The plan of `seed`, with these numbers of closed conversations and of contacts.
    pub fn of(seed: u64, conversations: usize, contacts: usize) -> Self {
        let mut random = Rng::with_seed(seed);
        let of_organisation = |organisation| Manner::ALL.map(|manner| PlannedWebhook { organisation, manner });
        let webhooks: Vec<_> = (0..ORGANISATIONS).flat_map(of_organisation).collect();
        let of_manner = |manner: Manner, organisation: usize| {
            let found = webhooks.iter().position(|own| own.manner == manner && own.organisation == organisation);
            found.unwrap_or_default()
        };
        // Half of the work is for healthy endpoints. One in twenty conversations stays open: no event about it may
        // arrive.
        let mut talks: Vec<_> = (0..conversations + conversations / 20)
            .map(|number| {
                let manner = match random.usize(0..20) {
                    0..10 => Manner::Prompt,
                    10..12 => Manner::Slow,
                    12..14 => Manner::Broken,
                    14..16 => Manner::Busy,
                    16..18 => Manner::Dropping,
                    18 => Manner::Silent,
                    _ => Manner::Dead,
                };
                let webhook = of_manner(manner, random.usize(0..ORGANISATIONS));
                Talk { webhook, closes: number < conversations, spoken: random.usize(0..4) == 0 }
            })
            .collect();
        random.shuffle(&mut talks);
        let shapes = [
            (WidgetType::Chat, Some(Manner::Prompt), 10),
            (WidgetType::FbMessenger, Some(Manner::Prompt), 10),
            (WidgetType::PlivoCall, Some(Manner::Prompt), 10),
            (WidgetType::Html, None, 15),
            (WidgetType::Phone, Some(Manner::Broken), 10),
            (WidgetType::Sms, Some(Manner::Slow), 8),
            (WidgetType::Telegram, Some(Manner::Prompt), 15),
            (WidgetType::Whatsapp, Some(Manner::Busy), 12),
            (WidgetType::Sip, Some(Manner::Dropping), 8),
            (WidgetType::WebCall, Some(Manner::Silent), 2),
            (WidgetType::Instagram, Some(Manner::Dead), 0),
        ];
        let mut run = |(number, (channel, connector, share)): (usize, (WidgetType, Option<Manner>, usize))| {
            let contacts = if share == 0 { NEVER_RECOVERING } else { (contacts * share / 100).max(1) };
            let places = 0..u32::try_from(contacts).unwrap_or(u32::MAX);
            let end = match channel {
                WidgetType::Telegram => End::Cancelled(contacts / 3),
                WidgetType::Whatsapp => End::Cancelled(1),
                WidgetType::FbMessenger => End::Paused(contacts / 3),
                WidgetType::Sip => End::Thinned(places.filter(|_| random.usize(0..3) == 0).collect()),
                _ => End::Whole,
            };
            let later = matches!(channel, WidgetType::Html | WidgetType::PlivoCall | WidgetType::Sms);
            let webhook = of_manner(Manner::Prompt, number % ORGANISATIONS);
            Run { webhook, channel, connector, contacts, later, end }
        };
        let runs = shapes.into_iter().enumerate().map(&mut run).collect();
        Self { seed, webhooks, talks, runs }
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
        assert_eq!(plan.talks.iter().filter(|talk| talk.closes).count(), 1000);
        assert!(plan.talks.iter().any(|talk| !talk.closes));
        let told: BTreeSet<_> = plan.talks.iter().map(|talk| plan.webhooks[talk.webhook].manner).collect();
        assert_eq!(told, Manner::ALL.into());
        let connected: BTreeSet<_> = plan.runs.iter().filter_map(|run| run.connector).collect();
        assert_eq!(connected, Manner::ALL.into());
        assert!(plan.runs.iter().any(|run| run.connector.is_none() && run.contacts > 0));
        assert_eq!(plan.runs.iter().map(|run| run.contacts).sum::<usize>(), 1000 + NEVER_RECOVERING);
        let thinned = |run: &Run| matches!(&run.end, End::Thinned(places) if !places.is_empty());
        assert!(plan.runs.iter().any(thinned));
        assert!(plan.runs.iter().any(|run| matches!(run.end, End::Paused(1..))));
        assert!(plan.runs.iter().any(|run| run.later && run.contacts > 1));
    }
}
