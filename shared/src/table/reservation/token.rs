//! Tokens: the marks that reservations leave on the head of a list.

use std::collections::BTreeSet;
use std::ops::Range;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::item::Item;
use crate::table::keys::{PK, SK};
use crate::table::ordinals::{CUT, LATENESS, NEXT, SPREAD_FROM};
use crate::values::time::Clock;

/// The attributes of a head that are no tokens.
const OTHERS: [&str; 6] = [PK, SK, NEXT, SPREAD_FROM, CUT, LATENESS];
/// Digits of the minute in the name of a token, and of its random part, which no other token has.
const DIGITS: (u32, u32) = (3, 9);
/// A name has the minute modulo this number, so a token's age is known up to 32 days.
const MINUTES: i64 = 36_i64.pow(DIGITS.0);
/// Minutes by which the clock of another process may be ahead of this one's.
const AHEAD: i64 = 60;
/// Minutes after which a reserved row can no longer be written. It is sent within a minute or so of its reservation
/// ([`WRITABLE`](super::WRITABLE)). DynamoDB refuses a request that was signed more than five minutes ago, so no write
/// arrives later than that. The rest is for clocks that differ.
const EXPIRED: i64 = 10;

/// The ordinals whose rows may be missing. A token is an attribute of the head: its name is `<minute><random digits>`,
/// its value the first ordinal. If it covers several ordinals, `_<count>` follows. The rows of one reservation are
/// written all or none. If a token covers several reservations, each row may be missing independently: then `_<count>_`
/// follows. Names are short, so that a head with forty of them is one write unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(super) name: String,
    pub(super) first: u64,
    count: u64,
    /// Whether it covers several reservations.
    pub(super) is_merged: bool,
}

impl Token {
    /// The name of a new token for so many ordinals.
    pub(super) fn name(count: u64) -> String {
        let (minute, own) = (base36(this_minute().cast_unsigned(), DIGITS.0), base36(fastrand::u64(..), DIGITS.1));
        let of_several = if count == 1 { String::new() } else { format!("_{count}") };
        format!("{minute}{own}{of_several}")
    }

    /// The tokens on a head, in the order of their ordinals.
    pub(crate) fn all(head: &Item) -> Vec<Self> {
        let token = |(name, value): (&String, &AttributeValue)| {
            let mut parts = name.split('_').skip(1);
            let count = parts.next().map_or(Ok(1), str::parse).ok()?;
            let first = value.as_n().ok()?.parse().ok()?;
            Some(Self { name: name.clone(), first, count, is_merged: parts.next().is_some() })
        };
        let tokens = head.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
        let mut tokens: Vec<Self> = tokens.filter_map(token).collect();
        tokens.sort_unstable_by_key(|token| token.first);
        tokens
    }

    /// One token that covers all of `tokens`, which are in order. It expires with the youngest.
    pub(super) fn merged(tokens: &[&Self]) -> Option<Self> {
        let (first, end) = (tokens.first()?.first, tokens.iter().map(|token| token.ordinals().end).max()?);
        let youngest = tokens.iter().min_by_key(|token| token.minutes())?;
        let (name, count) = (youngest.name.split('_').next().unwrap_or_default(), end - first);
        Some(Self { name: format!("{name}_{count}_"), first, count, is_merged: true })
    }

    pub(crate) fn ordinals(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }

    /// The ordinals that must be checked: for a single reservation, the first one also decides for the others.
    pub(super) fn ordinals_to_check(&self) -> Range<u64> {
        if self.is_merged { self.ordinals() } else { self.first..self.first.saturating_add(1) }
    }

    /// The ordinals whose rows are missing, according to the checked ones, of which `absent` have no row.
    pub(super) fn missing(&self, absent: &BTreeSet<u64>) -> impl Iterator<Item = u64> {
        let checked = |ordinal| if self.is_merged { ordinal } else { self.first };
        self.ordinals().filter(move |ordinal| absent.contains(&checked(*ordinal)))
    }

    /// Whether its rows can no longer be written.
    pub(super) fn is_expired(&self) -> bool {
        self.minutes() >= EXPIRED
    }

    /// Its age in minutes, modulo 32 days.
    fn minutes(&self) -> i64 {
        let digits = self.name.get(..DIGITS.0 as usize).unwrap_or_default();
        let minutes = i64::from_str_radix(digits, 36).map_or(0, |minute| (this_minute() - minute).rem_euclid(MINUTES));
        if minutes >= MINUTES - AHEAD { 0 } else { minutes }
    }
}

/// The minute of the machine rather than of the request, because processes compare these minutes.
fn this_minute() -> i64 {
    Clock::System.now().unix_seconds() / 60
}

/// The last digits of `number`.
fn base36(number: u64, digits: u32) -> String {
    let digit = |place: u32| char::from_digit((number / 36_u64.pow(place) % 36) as u32, 36).unwrap_or('0');
    (0..digits).rev().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::item::number;

    fn token(age: i64, count: u64) -> Token {
        let name = Token::name(count);
        let minute = base36((this_minute() - age).cast_unsigned(), DIGITS.0);
        let name = format!("{minute}{}", &name[DIGITS.0 as usize..]);
        let head = Item::from([(name, number(7)), ("pk".into(), number(1)), ("next_ordinal".into(), number(99))]);
        Token::all(&head).remove(0)
    }

    #[test]
    fn a_token_encodes_its_ordinals_and_its_age() {
        for (age, minutes) in [(0, 0), (9, 9), (10, 10), (20 * 24 * 60, 20 * 24 * 60), (-1, 0), (-59, 0)] {
            let one = token(age, 1);
            assert_eq!((one.minutes(), one.ordinals(), one.ordinals_to_check()), (minutes, 7..8, 7..8), "{age}");
            let several = token(age, 33);
            assert_eq!(
                (several.minutes(), several.ordinals(), several.ordinals_to_check()),
                (minutes, 7..40, 7..8),
                "{age}"
            );
            assert_eq!(several.is_expired(), minutes >= 10, "{age}");
        }
    }

    #[test]
    fn a_merged_token_has_the_youngest_age_and_all_rows() {
        let at = |first, token: Token| Token { first, ..token };
        let tokens = [at(3, token(12, 1)), at(5, token(4, 2)), at(9, token(30, 1))];
        let merged = Token::merged(&tokens.each_ref()).unwrap();
        assert_eq!((merged.minutes(), merged.ordinals(), merged.ordinals_to_check()), (4, 3..10, 3..10));
        let head = Item::from([(merged.name.clone(), number(merged.first))]);
        assert_eq!(Token::all(&head), std::slice::from_ref(&merged));
        assert_eq!(merged.missing(&[2, 5, 9].into()).collect::<Vec<_>>(), [5, 9]);
        // The rows of one reservation are missing together.
        assert_eq!(tokens[1].missing(&[5].into()).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(tokens[1].missing(&[6].into()).count(), 0);
    }
}
