//! The schedule of a campaign: from a time on, once or at an interval, on some days of the week, within some hours of
//! the day.
//!
//! An execution outside the days or the hours is left out; a campaign that is sent only once waits for them. An
//! interval of whole days keeps the local time of day; any other interval has a fixed length, even when clocks change.

use jiff::{ToSpan as _, civil};

use super::Campaign;
use crate::input::Location;
use crate::request::error::{Error, Result};
use crate::values::calendar::{DAY, TimeOfDay, Weekdays, Zone};
use crate::values::time::Timestamp;

/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;
/// The number of executions that are searched for one that is not left out: a week's executions, if one begins every
/// minute. If all of them are left out, every execution is, except near a clock change.
const SEARCH: i64 = 7 * DAY;
/// The clock changes of a year. Some executions are inside the window only before or only after such a change.
const CHANGES: usize = 2;
/// The days that are searched for the next opening: two weeks, since clocks may skip the only window of a week, and one
/// day.
const CLOSED: i64 = 15;

/// When a campaign is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The first execution.
    pub start: Timestamp,
    /// Minutes from one execution to the next; `None` if there is only one.
    interval: Option<i64>,
    weekdays: Weekdays,
    from: Option<TimeOfDay>,
    to: Option<TimeOfDay>,
    zone: Zone,
}

impl Campaign {
    /// Its schedule, if it has one.
    pub fn schedule(&self) -> Option<Schedule> {
        Some(Schedule {
            start: self.start_time?.in_zone(&self.time_zone),
            interval: self.interval.map(super::Minutes::get),
            weekdays: self.execution_weekdays.clone(),
            from: self.time_window_start,
            to: self.time_window_end,
            zone: self.time_zone.zone(),
        })
    }

    /// Refuses a schedule that would never send anything.
    ///
    /// # Errors
    /// [`Error::Invalid`] at the end of the window, or at another field that keeps it closed.
    pub(super) fn require_execution(&self) -> Result<()> {
        let refused = |field, message: &'static str| {
            Err(Error::invalid(Location::body().name(field).issue("value_error", message)))
        };
        if self.time_window_start.is_some() && self.time_window_start == self.time_window_end {
            return refused("time_window_end", "Value error, the window never opens: it ends when it begins");
        }
        match self.schedule() {
            Some(schedule) if schedule.first(schedule.start).is_none() => {
                let fields = [
                    ("time_window_end", self.time_window_end.is_some()),
                    ("time_window_start", self.time_window_start.is_some()),
                    ("execution_weekdays", !self.execution_weekdays.is_every_day()),
                ];
                let field = fields.iter().find(|(_, closes)| *closes).map_or("start_time", |(field, _)| field);
                refused(field, "Value error, no execution is ever inside the window and on the weekdays")
            }
            _ => Ok(()),
        }
    }
}

impl Schedule {
    /// The first execution as seen at `now`: if its time has passed, it is at once.
    pub fn first(&self, now: Timestamp) -> Option<Timestamp> {
        match self.interval {
            None => self.opens(self.start.max(now)),
            Some(_) if self.start < now && self.is_open(now) => Some(now),
            Some(interval) => self.execution(interval, self.start.max(now)),
        }
    }

    /// The next execution after `now`, if there was one before.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.execution(self.interval?, Timestamp::from_unix_millis(now.unix_millis() + 1))
    }

    /// Whether the window is open at `at`.
    pub fn is_open(&self, at: Timestamp) -> bool {
        let local = self.zone.local(at);
        let minutes = i64::from(local.hour()) * 60 + i64::from(local.minute());
        let (from, to) = self.hours();
        let day = if from < to {
            (from..to).contains(&minutes).then(|| local.date())
        } else if minutes >= from {
            Some(local.date())
        } else {
            // A window that opened yesterday belongs to that day.
            (minutes < to).then(|| local.date().yesterday().ok()).flatten()
        };
        day.is_some_and(|day| self.weekdays.has(day))
    }

    /// The first moment at or after `from` at which the window is open.
    pub fn opens(&self, from: Timestamp) -> Option<Timestamp> {
        if self.is_open(from) {
            return Some(from);
        }
        let today = self.zone.local(from).date();
        let openings =
            (0..=CLOSED).filter_map(|days| self.moments(today.checked_add(days.days()).ok()?, self.hours().0));
        let opening = openings.flatten().find(|at| *at >= from && self.is_open(*at));
        // A clock change may also jump into the window and skip its beginning.
        let changed = self.zone.changes(from).take(CHANGES).find(|at| self.is_open(*at));
        opening.into_iter().chain(changed).min()
    }

    /// The first moment after `at` at which the window is closed, if it closes.
    pub fn closes(&self, at: Timestamp) -> Option<Timestamp> {
        if self.from.is_none() && self.to.is_none() && self.weekdays.is_every_day() {
            return None;
        }
        let (today, (_, to)) = (self.zone.local(at).date(), self.hours());
        let ends = [0, 1].iter().filter_map(|days| self.moments(today.checked_add(days.days()).ok()?, to));
        ends.flatten().find(|end| *end > at)
    }

    /// The minutes of the day at which the window opens and closes.
    fn hours(&self) -> (i64, i64) {
        (self.from.map_or(0, TimeOfDay::minutes), self.to.map_or(DAY, TimeOfDay::minutes))
    }

    /// The moments at which `minutes` of `day` have passed by local clocks.
    fn moments(&self, day: civil::Date, minutes: i64) -> Option<[Timestamp; 2]> {
        self.zone.moments(day.to_datetime(civil::Time::midnight()).checked_add(minutes.minutes()).ok()?)
    }

    /// The first execution at or after `from` that is not left out.
    fn execution(&self, interval: i64, from: Timestamp) -> Option<Timestamp> {
        let mut searches = std::iter::once(from).chain(self.zone.changes(from).take(CHANGES));
        searches.find_map(|from| self.execution_soon(interval, from))
    }

    /// The same, among the next [`SEARCH`] executions.
    fn execution_soon(&self, interval: i64, from: Timestamp) -> Option<Timestamp> {
        let waited = (from.unix_millis() - self.start.unix_millis()).max(0);
        // One less than the whole intervals that have passed, since a day may have fewer hours.
        let first = (waited / (interval * MINUTE) - 1).max(0);
        let at = |turn: i64| -> Option<Timestamp> {
            let minutes = turn.checked_mul(interval)?;
            if interval % DAY == 0 {
                return self.zone.at(self.zone.local(self.start).checked_add((minutes / DAY).days()).ok()?);
            }
            let millis = self.start.unix_millis() + minutes.checked_mul(MINUTE)?;
            Some(Timestamp::from_unix_millis(millis)).filter(|at| *at <= Timestamp::MAX && at.unix_millis() == millis)
        };
        let executions = (first..first + SEARCH + 3).map_while(at);
        executions.into_iter().find(|at| *at >= from && self.is_open(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::calendar::ZoneName;

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(text.into()).unwrap()
    }

    /// A schedule in `zone`, with its window as `HH:MM-HH:MM`.
    fn schedule(start: &str, interval: Option<i64>, days: &[i64], window: &str, zone: &str) -> Schedule {
        let (from, to) = window.split_once('-').unwrap_or_default();
        Schedule {
            start: at(start),
            interval,
            weekdays: serde_json::from_value(days.into()).unwrap(),
            from: TimeOfDay::new(from),
            to: TimeOfDay::new(to),
            zone: ZoneName::new(zone).unwrap().zone(),
        }
    }

    /// The first executions, as UTC.
    fn executions(schedule: &Schedule, count: usize) -> Vec<String> {
        let next = |was: &Timestamp| schedule.next(*was);
        std::iter::successors(schedule.first(schedule.start), next).take(count).map(|at| at.to_string()).collect()
    }

    #[test]
    fn daily_executions_keep_the_local_hour_across_clock_changes() {
        let daily = |start| schedule(start, Some(DAY), &[], "", "Europe/Berlin");
        let wanted = [
            "2026-03-27T09:00:00.000Z",
            "2026-03-28T09:00:00.000Z",
            "2026-03-29T08:00:00.000Z",
            "2026-03-30T08:00:00.000Z",
        ];
        assert_eq!(executions(&daily("2026-03-27T09:00:00Z"), 4), wanted);
        let wanted = ["2026-10-24T08:00:00.000Z", "2026-10-25T09:00:00.000Z", "2026-10-26T09:00:00.000Z"];
        assert_eq!(executions(&daily("2026-10-24T08:00:00Z"), 3), wanted);
        let twice = schedule("2026-03-28T09:00:00Z", Some(DAY / 2), &[], "", "Europe/Berlin");
        assert_eq!(executions(&twice, 4).last().unwrap(), "2026-03-29T21:00:00.000Z");
    }

    #[test]
    fn a_skipped_or_repeated_local_time_is_executed_once() {
        // 02:30 in Berlin. New York changes its clocks on other days.
        let spring = schedule("2026-03-28T01:30:00Z", Some(DAY), &[], "", "Europe/Berlin");
        let wanted = ["2026-03-28T01:30:00.000Z", "2026-03-29T01:30:00.000Z", "2026-03-30T00:30:00.000Z"];
        assert_eq!(executions(&spring, 3), wanted);
        let autumn = schedule("2026-10-31T05:30:00Z", Some(DAY), &[], "", "America/New_York");
        let wanted = ["2026-10-31T05:30:00.000Z", "2026-11-01T05:30:00.000Z", "2026-11-02T06:30:00.000Z"];
        assert_eq!(executions(&autumn, 3), wanted);
    }

    #[test]
    fn executions_outside_weekdays_or_window_are_left_out() {
        // 2026-11-27 is a Friday.
        let weekdays = schedule("2026-11-27T10:00:00Z", Some(DAY), &[1, 2, 3, 4, 5], "", "UTC");
        assert_eq!(executions(&weekdays, 2), ["2026-11-27T10:00:00.000Z", "2026-11-30T10:00:00.000Z"]);
        let hourly = schedule("2026-11-27T15:30:00Z", Some(60), &[5, 6], "09:00-17:00", "UTC");
        let wanted = ["2026-11-27T15:30:00.000Z", "2026-11-27T16:30:00.000Z", "2026-11-28T09:30:00.000Z"];
        assert_eq!(executions(&hourly, 3), wanted);
        let once = schedule("2026-11-27T20:00:00Z", None, &[1], "09:00-17:00", "Europe/Berlin");
        assert_eq!(executions(&once, 2), ["2026-11-30T08:00:00.000Z"]);
        let never = schedule("2026-11-27T08:00:00Z", Some(DAY), &[], "09:00-17:00", "UTC");
        assert_eq!(executions(&never, 1), [""; 0]);
    }

    #[test]
    fn an_execution_is_found_in_the_last_minute_of_a_week() {
        // 2026-11-30 is a Monday, and the window of the day has just closed.
        let weekly = schedule("2026-11-30T10:01:00Z", Some(1), &[1], "10:00-10:01", "UTC");
        assert_eq!(executions(&weekly, 2), ["2026-12-07T10:00:00.000Z", "2026-12-14T10:00:00.000Z"]);
    }

    #[test]
    fn a_past_start_is_executed_at_once_within_the_window() {
        let daily = schedule("2026-11-23T10:00:00Z", Some(DAY), &[], "09:00-17:00", "UTC");
        let first = |now: &str| daily.first(at(now)).unwrap().to_string();
        assert_eq!(first("2026-11-22T12:00:00Z"), "2026-11-23T10:00:00.000Z");
        assert_eq!(first("2026-11-25T12:00:00Z"), "2026-11-25T12:00:00.000Z");
        assert_eq!(first("2026-11-25T18:00:00Z"), "2026-11-26T10:00:00.000Z");
    }

    #[test]
    fn a_window_follows_local_clocks_across_clock_changes() {
        // Clocks go from 02:00 to 03:00, and from 03:00 to 02:00.
        let daily = |window| schedule("2026-01-01T00:00:00Z", None, &[], window, "Europe/Berlin");
        let opens = |window, from: &str| daily(window).opens(at(from)).unwrap().to_string();
        let closes = |window, from: &str| daily(window).closes(at(from)).unwrap().to_string();
        assert_eq!(opens("09:00-17:00", "2026-03-28T12:00:00Z"), "2026-03-28T12:00:00.000Z");
        assert_eq!(opens("09:00-17:00", "2026-03-28T17:00:00Z"), "2026-03-29T07:00:00.000Z");
        assert_eq!(opens("09:00-17:00", "2026-10-24T17:00:00Z"), "2026-10-25T08:00:00.000Z");
        // Half of the window is skipped, or all of it.
        assert_eq!(opens("02:30-04:00", "2026-03-28T22:00:00Z"), "2026-03-29T01:00:00.000Z");
        assert_eq!(opens("02:15-02:45", "2026-03-28T22:00:00Z"), "2026-03-30T00:15:00.000Z");
        assert_eq!(closes("01:00-02:30", "2026-03-29T00:30:00Z"), "2026-03-29T01:00:00.000Z");
        // Half an hour that clocks show twice is open twice.
        let twice = daily("02:00-02:30");
        let open = ["00:00", "00:29", "00:30", "00:59", "01:00", "01:29", "01:30"];
        let open = open.map(|time| twice.is_open(at(&format!("2026-10-25T{time}:00Z"))));
        assert_eq!(open, [true, true, false, false, true, true, false]);
        assert_eq!(opens("02:00-02:30", "2026-10-25T00:45:00Z"), "2026-10-25T01:00:00.000Z");
        assert_eq!(closes("02:00-02:30", "2026-10-25T01:10:00Z"), "2026-10-25T01:30:00.000Z");
    }

    #[test]
    fn a_window_over_midnight_belongs_to_its_opening_day() {
        // Friday night, until Saturday morning.
        let night = schedule("2026-11-27T00:00:00Z", None, &[5], "22:00-06:00", "UTC");
        assert_eq!(night.opens(at("2026-11-27T03:00:00Z")), Some(at("2026-11-27T22:00:00Z")));
        assert!(night.is_open(at("2026-11-28T05:59:00Z")) && !night.is_open(at("2026-11-28T06:00:00Z")));
        assert_eq!(night.closes(at("2026-11-27T23:00:00Z")), Some(at("2026-11-28T06:00:00Z")));
        assert_eq!(night.opens(at("2026-11-28T22:00:00Z")), Some(at("2026-12-04T22:00:00Z")));
    }

    #[test]
    fn a_window_that_ends_when_it_begins_is_open_at_that_moment() {
        let (midnight, next) = (at("2026-11-28T00:00:00Z"), at("2026-11-29T00:00:00Z"));
        let always = schedule("2026-11-27T00:00:00Z", None, &[], "-00:00", "UTC");
        assert!(always.is_open(midnight));
        assert_eq!(always.closes(midnight), Some(next));
    }

    #[test]
    fn a_window_opens_again_when_clocks_go_back_into_it() {
        for (window, zone, from, opens) in [
            ("01:00-02:30", "Europe/Berlin", "2030-10-27T00:45:00Z", "2030-10-27T01:00:00Z"),
            ("23:30-00:30", "America/Havana", "2030-11-03T04:40:00Z", "2030-11-03T05:00:00Z"),
        ] {
            let once = schedule("2026-01-01T00:00:00Z", None, &[], window, zone);
            assert!(!once.is_open(at(from)) && once.is_open(at(opens)), "{zone}");
            assert_eq!(once.opens(at(from)), Some(at(opens)), "{zone}");
        }
    }

    #[test]
    fn an_execution_possible_only_in_winter_is_found_in_summer() {
        let rare = schedule("2030-06-30T22:00:00Z", Some(8), &[], "09:07-09:11", "Europe/Berlin");
        assert_eq!(executions(&rare, 1), ["2030-10-27T08:08:00.000Z"]);
        assert_eq!(rare.next(at("2030-03-01T00:00:00Z")), rare.first(at("2030-01-01T00:00:00Z")));
    }

    #[test]
    fn executions_end_at_the_last_representable_time() {
        let rare = schedule("9999-12-30T00:00:00Z", Some(DAY), &[], "", "Pacific/Kiritimati");
        assert!(executions(&rare, 9).len() < 4);
        let rarer = schedule("9995-01-01T00:00:00Z", Some(525_600 * 10 + 7), &[], "", "UTC");
        assert_eq!(executions(&rarer, 9).len(), 1);
    }
}
