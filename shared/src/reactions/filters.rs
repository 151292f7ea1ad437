//! The filters of the stream, which follow from the reactions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::reactions::{ALL, When};
use crate::table::change::DYNAMODB;

/// The filters of the stream: they pass exactly the changes that have a reaction. Reactions to the same kind of change
/// share a filter, since an event source may have at most five.
pub fn filters() -> Vec<Value> {
    let of = |kinds: &[When]| {
        let records = ALL.iter().filter(|reaction| kinds.contains(&reaction.when)).map(|reaction| reaction.record);
        records.collect::<BTreeSet<_>>()
    };
    let (removed, changed) = (of(&[When::Removed, When::Changed]), of(&[When::Changed, When::Written]));
    let made: BTreeSet<_> = of(&[When::Made]).difference(&changed).copied().collect();
    let became =
        ALL.iter().filter(|reaction| !changed.contains(reaction.record)).filter_map(|reaction| match reaction.when {
            When::Changed | When::Made | When::Written | When::Removed | When::Expired => None,
            When::Became { field, from, to } => Some(json!({
                "eventName": ["MODIFY"],
                "dynamodb": {
                    "OldImage": {"record": {"S": [reaction.record]}, field: {"S": [from]}},
                    "NewImage": {field: {"S": [to]}},
                },
            })),
            When::Ended { field, to, of } => Some(json!({
                "eventName": ["MODIFY"],
                "dynamodb": {
                    "NewImage": {"record": {"S": [reaction.record]}, field: {"S": to}, of: {"S": [{"exists": true}]}},
                },
            })),
        });
    let of_new = |events: &[&str], records: &BTreeSet<_>| json!({"eventName": events, "dynamodb": {"NewImage": {"record": {"S": records}}}});
    let removals = json!({"eventName": ["REMOVE"], "dynamodb": {"OldImage": {"record": {"S": removed}}}});
    let expiries = json!({
        "eventName": ["REMOVE"],
        "userIdentity": {"principalId": [DYNAMODB]},
        "dynamodb": {"OldImage": {"record": {"S": of(&[When::Expired])}}},
    });
    let written = [of_new(&["INSERT", "MODIFY"], &changed), of_new(&["INSERT"], &made)];
    [removals, expiries].into_iter().chain(written).chain(became).collect()
}
