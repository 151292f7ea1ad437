//! Schedules: invokes functions at the rates of the template.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::Trouble;
use crate::lambda::{Failed, Fate, Function, invoke};
use crate::template::Template;

/// When Lambda retries a failed asynchronous invocation, unless the template allows fewer retries: after one minute,
/// then after two minutes, and after that never.
const RETRIES: [Duration; 2] = [Duration::from_mins(1), Duration::from_mins(2)];

/// The functions that have a schedule.
pub struct Schedules(Vec<Timer>);

#[derive(Clone)]
struct Timer {
    name: String,
    function: Function,
    every: Duration,
    retries: usize,
}

impl Schedules {
    /// The functions with a schedule in `template`. `function` finds them by their names.
    ///
    /// # Errors
    /// [`Trouble`] where there is no such function.
    pub fn new(template: &Template, function: impl Fn(&str) -> Result<Function, Trouble>) -> Result<Self, Trouble> {
        let timer = |schedule: &crate::template::ScheduleSource| {
            let every = Duration::from_secs(schedule.every_seconds);
            let (name, retries) = (schedule.function.clone(), schedule.max_retries.min(RETRIES.len()));
            Ok(Timer { function: function(&name)?, name, every, retries })
        };
        template.schedules.iter().map(timer).collect::<Result<_, _>>().map(Self)
    }

    /// Invokes all of them once, at the same time.
    ///
    /// # Errors
    /// [`Trouble`] names one that failed.
    pub async fn minute(&self) -> Result<(), Trouble> {
        let tick = async |timer: &Timer| {
            tick(&timer.function).await.map_err(|failed| Trouble(format!("{}: {failed}", timer.name)))
        };
        join_all(self.0.iter().map(tick)).await.into_iter().collect()
    }

    /// Invokes each at its rate, the first time at once, until `stop` resolves.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut timers: JoinSet<()> = self.0.iter().cloned().map(Timer::run).collect();
        stop.await;
        timers.shutdown().await;
    }
}

impl Timer {
    async fn run(self) {
        let mut rate = interval(self.every);
        rate.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A slow invocation, or one that waits for its retry, does not delay the next one.
        let mut under_way = JoinSet::new();
        loop {
            rate.tick().await;
            while under_way.try_join_next().is_some() {}
            let Self { name, function, retries, .. } = self.clone();
            under_way.spawn(async move {
                if let Err(failed) = tick_until(&function, &RETRIES[..retries]).await {
                    eprintln!("{name}: {failed}");
                }
            });
        }
    }
}

/// Invokes `function` as its schedule does.
///
/// # Errors
/// [`Failed`].
pub async fn tick(function: &Function) -> Result<(), Failed> {
    // The event of EventBridge Scheduler.
    let event = json!({
        "version": "0",
        "id": "00000000-0000-0000-0000-000000000000",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "000000000000",
        "time": "2026-02-01T12:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": "{}",
    });
    invoke(function, event.to_string(), Fate::default()).await.map(drop)
}

/// Invokes it, and retries after each of `pauses` while it fails.
async fn tick_until(function: &Function, pauses: &[Duration]) -> Result<(), Failed> {
    let mut outcome = tick(function).await;
    for pause in pauses {
        if outcome.is_ok() {
            break;
        }
        sleep(*pause).await;
        outcome = tick(function).await;
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_failed_tick_is_retried_twice() {
        for (failures, succeeds, attempts) in [(0, true, 1), (2, true, 3), (3, false, 3)] {
            let calls = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&calls);
            let function: Function = Arc::new(move |_| {
                let call = counted.fetch_add(1, Ordering::SeqCst);
                let answer = if call < failures { Err(Failed::new("Error", call)) } else { Ok("null".into()) };
                Box::pin(std::future::ready(answer))
            });
            assert_eq!(tick_until(&function, &[Duration::ZERO; 2]).await.is_ok(), succeeds);
            assert_eq!(calls.load(Ordering::SeqCst), attempts);
        }
    }

    #[tokio::test]
    async fn a_slow_tick_does_not_delay_the_next_one() {
        let second = Arc::new(Notify::new());
        let (calls, news) = (AtomicU32::new(0), Arc::clone(&second));
        let function: Function = Arc::new(move |_| {
            if calls.fetch_add(1, Ordering::SeqCst) == 1 {
                news.notify_one();
            }
            Box::pin(std::future::pending())
        });
        let timer = Timer { name: "slow".into(), function, every: Duration::from_millis(1), retries: 2 };
        Arc::new(Schedules(vec![timer])).run(second.notified()).await;
    }
}
