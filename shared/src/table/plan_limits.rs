//! What a billing plan limits for a user, and the refusal of what goes beyond it.

use std::fmt;

use crate::values::time::Timestamp;

crate::choice! {
    /// What a billing plan limits. This is the one list of the meters.
    pub enum PlanMeter {
        /// Assistants that exist.
        Bots = "bots",
        /// Answers of assistants.
        Queries = "queries",
        /// Words of data sources.
        Words = "words",
        /// Seconds of voice.
        VoiceSeconds = "voice_seconds",
    }
}

impl PlanMeter {
    /// Every meter.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().filter_map(|word| Self::from_word(word))
    }

    /// The attribute with the time at which a count first passed its limit, in milliseconds since 1970.
    pub(super) const fn exceeded_at(self) -> &'static str {
        match self {
            Self::Bots => "bots_exceeded_at",
            Self::Queries => "queries_exceeded_at",
            Self::Words => "words_exceeded_at",
            Self::VoiceSeconds => "voice_seconds_exceeded_at",
        }
    }
}

crate::choice! {
    /// What happens where a user would use more than the plan allows.
    pub enum Overage {
        /// It is allowed.
        Allow = "allow",
        /// It is allowed, and the usage says since when the limit is exceeded.
        Notify = "notify",
        /// It is refused with 402.
        Block = "block",
    }
}

/// An amount of each of some meters.
pub type MeterAmounts = Vec<(PlanMeter, u64)>;

/// What a plan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// What happens beyond the limits.
    pub overage: Overage,
    /// The limits, in the order of the meters.
    pub limits: [u64; PlanMeter::WORDS.len()],
}

impl PlanLimits {
    /// The limit of `meter`.
    pub const fn limit(self, meter: PlanMeter) -> u64 {
        self.limits[meter as usize]
    }
}

/// A billing period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingPeriod {
    /// When it starts.
    pub starts_at: Timestamp,
    /// When the next one starts, whose counts begin with 0.
    pub resets_at: Timestamp,
}

/// A meter of a user that has no room for what a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The meter.
    pub meter: PlanMeter,
    /// The limit of the plan.
    pub limit: u64,
    /// What is used.
    pub used: u64,
    /// What the request needs.
    pub needed: u64,
    /// When the billing period ends.
    pub resets_at: Timestamp,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { meter, limit, used, needed, resets_at } = self;
        let meter = meter.as_str();
        write!(formatter, "The plan of the user has no room: meter {meter}, limit {limit}, use {used}")?;
        if *needed > 1 {
            write!(formatter, ", needed {needed}")?;
        }
        write!(formatter, ", resets_at {resets_at}")?;
        // Assistants that exist go on counting in the next period.
        if self.meter == PlanMeter::Bots { write!(formatter, "; a deleted assistant makes room") } else { Ok(()) }
    }
}

crate::object! {
    /// What a user has used up of a meter.
    pub struct MeterUse {
        /// The meter.
        pub meter: PlanMeter,
        /// The limit of the plan; null without a plan.
        pub limit: Option<u64>,
        /// What is used: assistants that exist, or what was used up of another meter in the billing period.
        pub used: u64,
        /// Since when the limit is exceeded; null if it is not, or if `overage` is `allow`.
        pub exceeded_at: Option<Timestamp>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_meter_limit_use_and_reset() {
        let resets_at = Timestamp::from_unix_millis(0);
        let full = Exceeded { meter: PlanMeter::Queries, limit: 10, used: 10, needed: 1, resets_at };
        let start = "The plan of the user has no room: meter";
        assert_eq!(full.to_string(), format!("{start} queries, limit 10, use 10, resets_at 1970-01-01T00:00:00.000Z"));
        let words = Exceeded { meter: PlanMeter::Words, needed: 5, ..full };
        assert!(words.to_string().starts_with(&format!("{start} words, limit 10, use 10, needed 5, resets_at 1970")));
        let bots = Exceeded { meter: PlanMeter::Bots, ..full };
        assert!(bots.to_string().ends_with("Z; a deleted assistant makes room"));
    }
}
