//! Quotas: how much of something an organisation may have, and how many sends it may make in a day.

use std::fmt;
use std::str::FromStr;

crate::choice! {
    /// What is limited for an organisation. This is the one list of the quotas.
    pub enum Quota {
        /// Webhooks.
        Webhooks = "webhooks",
        /// Widgets.
        Widgets = "widgets",
        /// Campaigns that are queued or in progress, or wait for an execution.
        RunningCampaigns = "running_campaigns",
        /// Files of data sources.
        Files = "files",
        /// Bytes of these files, as their requests named them.
        FileBytes = "file_bytes",
        /// Custom fields of contacts.
        CustomFields = "custom_fields",
        /// Custom fields by which lists of contacts can be filtered.
        CustomFieldFilters = "custom_field_filters",
        /// Exports that are queued or in progress.
        RunningExports = "running_exports",
        /// Messages and calls of a day (UTC).
        SendsADay = "sends_a_day",
    }
}

impl Quota {
    /// Every quota.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().filter_map(|word| Self::from_word(word))
    }

    /// The limit if a deployment sets none. No honest organisation reaches it, except with custom fields, and with running
    /// exports: one that has finished makes room for the next.
    pub const fn default_limit(self) -> u64 {
        match self {
            Self::Webhooks => 100,
            Self::Widgets => 10_000,
            Self::RunningCampaigns => 1_000,
            Self::Files => 100_000,
            Self::FileBytes => 1 << 40,
            Self::CustomFields => 50,
            Self::CustomFieldFilters => 3,
            Self::RunningExports => 10,
            Self::SendsADay => 1_000_000,
        }
    }

    /// The largest limit of a deployment: one that is set higher is this one. Each write of a contact reads all custom fields, and each filter more
    /// doubles the row sets of a contact.
    const fn largest_limit(self) -> u64 {
        match self {
            Self::CustomFields | Self::CustomFieldFilters => self.default_limit(),
            _ => LARGEST,
        }
    }

    /// What is counted, in plain words.
    const fn counted(self) -> &'static str {
        match self {
            Self::Webhooks => "webhooks",
            Self::Widgets => "widgets",
            Self::RunningCampaigns => "running campaigns",
            Self::Files => "files",
            Self::FileBytes => "bytes of files",
            Self::CustomFields => "custom fields",
            Self::CustomFieldFilters => "custom fields that are filters",
            Self::RunningExports => "running exports",
            Self::SendsADay => "sends of this day (UTC)",
        }
    }
}

/// An amount of each of some quotas.
pub type Amounts = Vec<(Quota, u64)>;

/// The limits of a deployment, which are the same for all organisations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas([u64; Quota::WORDS.len()]);

/// The largest limit: sums of amounts up to it fit into any number of the table.
const LARGEST: u64 = 1_000_000_000_000_000;

/// A text that does not say which limits hold.
#[derive(Debug, thiserror::Error)]
#[error("quotas are written as `webhooks=100,widgets=10000`")]
pub struct NoQuotas;

impl Quotas {
    /// The limit of `quota`.
    pub const fn limit(self, quota: Quota) -> u64 {
        self.0[quota as usize]
    }

    /// The same limits, except that of `quota`.
    #[must_use]
    pub const fn with(mut self, quota: Quota, limit: u64) -> Self {
        self.0[quota as usize] = limit;
        self
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Quota::all().fold(Self([0; Quota::WORDS.len()]), |quotas, quota| quotas.with(quota, quota.default_limit()))
    }
}

impl FromStr for Quotas {
    type Err = NoQuotas;

    /// Reads `webhooks=100,widgets=10000`. A quota that the text does not name has its default.
    fn from_str(text: &str) -> Result<Self, NoQuotas> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(Self::default(), |quotas, part| {
            let (name, limit) = part.split_once('=').ok_or(NoQuotas)?;
            let limit: u64 = limit.parse().map_err(|_| NoQuotas)?;
            let quota = Quota::from_word(name).ok_or(NoQuotas)?;
            let limit = Some(limit).filter(|is| *is <= LARGEST).ok_or(NoQuotas)?;
            Ok(quotas.with(quota, limit.min(quota.largest_limit())))
        })
    }
}

impl fmt::Display for Quotas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> = Quota::all().map(|quota| format!("{}={}", quota.as_str(), self.limit(quota))).collect();
        formatter.write_str(&each.join(","))
    }
}

/// A quota that leaves no room for what a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The quota.
    pub quota: Quota,
    /// Its limit.
    pub limit: u64,
    /// What the organisation has.
    pub used: u64,
    /// What the request needs.
    pub needed: u64,
}

impl fmt::Display for Reached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quota, limit, used, needed } = self;
        write!(formatter, "The organisation has {used} of {limit} {}", quota.counted())?;
        if *needed > 1 { write!(formatter, "; this needs {needed} more") } else { Ok(()) }
    }
}

crate::object! {
    /// What an organisation has of a quota.
    pub struct QuotaUse {
        /// The quota.
        pub quota: Quota,
        /// The most that the organisation may have.
        pub limit: u64,
        /// What it has.
        pub used: u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_sets_the_limits_that_it_names() {
        let quotas: Quotas = "webhooks=3,sends_a_day=0".parse().unwrap();
        assert_eq!(quotas, Quotas::default().with(Quota::Webhooks, 3).with(Quota::SendsADay, 0));
        assert_eq!(quotas.to_string().parse::<Quotas>().unwrap(), quotas);
        assert_eq!("".parse::<Quotas>().unwrap(), Quotas::default());
        let quotas: Quotas = "custom_fields=51,custom_field_filters=2".parse().unwrap();
        assert_eq!(quotas, Quotas::default().with(Quota::CustomFieldFilters, 2), "there are never more");
        for wrong in
            ["webhooks", "webhooks=", "webhooks=-1", "hooks=1", "webhooks=1;widgets=2", "files=1000000000000001"]
        {
            assert!(wrong.parse::<Quotas>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_names_the_quota_its_limit_and_the_use() {
        let reached = Reached { quota: Quota::Webhooks, limit: 100, used: 99, needed: 1 };
        assert_eq!(reached.to_string(), "The organisation has 99 of 100 webhooks");
        let reached = Reached { quota: Quota::FileBytes, limit: 100, used: 60, needed: 50 };
        assert_eq!(reached.to_string(), "The organisation has 60 of 100 bytes of files; this needs 50 more");
    }
}
