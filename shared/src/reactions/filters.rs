//! The filters of the stream, which follow from the reactions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::reactions::{ALL, When, count, emit};
use crate::table::change::DYNAMODB;
use crate::table::stamp::STAMP;

/// The filters of the stream: they pass the changes that have a reaction, and few others. An event source may have at most
/// five filters, so reactions to the same kind of change share one, and records that matter when they are made share one
/// with records that also matter when they change.
pub fn filters() -> Vec<Value> {
    let of = |kinds: &[When]| {
        let records = ALL.iter().filter(|reaction| kinds.contains(&reaction.when)).map(|reaction| reaction.record);
        records.collect::<BTreeSet<_>>()
    };
    let (mut removed, mut changed) =
        (of(&[When::Removed, When::Changed]), of(&[When::Changed, When::Written, When::Made]));
    removed.extend(emit::records());
    changed.extend(emit::records());
    changed.extend(count::records());
    let became = ALL.iter().filter(|reaction| !changed.contains(reaction.record)).filter_map(|reaction| match reaction
        .when
    {
        When::Changed | When::Made | When::Written | When::Removed | When::Expired | When::Emitted | When::Counted => {
            None
        }
        When::Stamped => Some(json!({
            "eventName": ["INSERT", "MODIFY"],
            "dynamodb": {"NewImage": {STAMP: {"S": [{"exists": true}]}}},
        })),
        When::Became { field, from, to } => Some(json!({
            "eventName": ["MODIFY"],
            "dynamodb": {
                "OldImage": {"record": {"S": [reaction.record]}, field: {"S": [from]}},
                "NewImage": {field: {"S": [to]}},
            },
        })),
        // A metric counts those without the attribute, too.
        When::Ended { field, to, of: _ } => Some(json!({
            "eventName": ["MODIFY"],
            "dynamodb": {
                "NewImage": {"record": {"S": [reaction.record]}, field: {"S": to}},
            },
        })),
    });
    let written = json!({"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"record": {"S": changed}}}});
    let removals = json!({"eventName": ["REMOVE"], "dynamodb": {"OldImage": {"record": {"S": removed}}}});
    let expiries = json!({
        "eventName": ["REMOVE"],
        "userIdentity": {"principalId": [DYNAMODB]},
        "dynamodb": {"OldImage": {"record": {"S": of(&[When::Expired])}}},
    });
    [removals, expiries, written].into_iter().chain(became).collect()
}
