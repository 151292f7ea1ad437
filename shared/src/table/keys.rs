//! The forms of the keys of the single table. This file makes the keys of lists, filters, token buckets and markers. The file of any other record
//! makes its key.
//!
//! The partition key of an organisation's item begins with the organisation, and `Key::of` takes it from a [`Tenant`]. Three kinds of items are found
//! before the organisation is known: an API key, the token bucket of a key, and the pointer to an agency with a webhook at the payment provider. The
//! listing of the keys of an organisation is for its customers too: operators name the organisation themselves.
//!
//! Items that are read together share a partition: the rows of a list, the messages of a conversation, the counts of a set. A partition takes a
//! thousand write units a second, so a long list has its later rows in eight partitions.
//!
//! `cargo generate` writes this chart. `docs/TABLE.md` also says how many items each partition gets.
//!
//! ```text
//! KEY#<hash>                                 KEY                      an API key, found by its hash
//! ORG#<org>#API_KEYS                         <key>                    the same API key, in the listing of its organisation
//! ORG#<org>#AUDIT#<shard>                    <entry>                  what a key has done to a record; expires
//! ORG#<org>#CAMPAIGN_CONTACT#<run>#<part>    <contact>                a contact of a campaign
//! ORG#<org>#CAMPAIGN_POINTERS#<run>#<shard>  <contact>                pointer from a contact to its place in a campaign
//! ORG#<org>#CAMPAIGN_RUN#<run>               CAMPAIGN                 pointer from a run to its campaign
//! ORG#<org>#CAMPAIGN_RUN#<run>               CAMPAIGN_SAID#<version>  an earlier text of the campaign
//! ORG#<org>#CAMPAIGN_RUN#<run>               CAMPAIGN_TEXT            the text of the campaign
//! ORG#<org>#CAMPAIGN_RUN#<run>               OUTCOMES#<part>          counts of contacts by status and by outcome
//! ORG#<org>#CAMPAIGN_RUN#<run>               OUTCOMES_DELETED#<part>  deleted places of a partition of contacts
//! ORG#<org>#CAMPAIGN_RUN#<run>               OUTCOMES_STAGED#<place>  marker of contacts that a request adds
//! ORG#<org>#CAMPAIGN_WAITING#<run>           <moment>#<contact>#<version> where a pass finds a contact that waits for another attempt
//! ORG#<org>#CONVERSATION_FORMS#<conversation> <captured>               pointer from a conversation to a form that was filled in in it
//! ORG#<org>#CONVERSATION_INTENTS#<conversation> <captured>               pointer from a conversation to an intent that was recognised in it
//! ORG#<org>#COUNTS#<metric>#<shard>          <day>#<values>           counts of a day, by quarters of an hour; expires
//! ORG#<org>#DATASOURCE_LINK#<datasource>     <assistant>              pointer to the link of a data source with an assistant
//! ORG#<org>#DEFAULT_PLAN#<agency>            DEFAULT_PLAN             pointer from an agency to its default plan
//! ORG#<org>#ENDPOINT_HEALTH#<endpoint>       ENDPOINT_HEALTH          circuit breaker of a webhook or connector
//! ORG#<org>#ENTITY_LINKS#<kind>#<entity>     <tag>                    pointer to the link of a record with a tag
//! ORG#<org>#EVENT#<event>                    EVENT                    an event of the log; expires
//! ORG#<org>#EVENT_LOG                        <page>                   a page of the log: the ids of the events of a batch; expires
//! ORG#<org>#EVENT_PENDING#<conversation>     EVENT_PENDING            changes of a conversation that the next tick emits
//! ORG#<org>#FORM_CAPTURED#<form>             <captured>               pointer from a form to what was filled into it
//! ORG#<org>#IDEMPOTENCY#<hash>               IDEMPOTENCY              claim of an idempotency key, with the answer; expires
//! ORG#<org>#INTENT_CAPTURED#<intent>         <captured>               pointer from an intent to a conversation in which it was recognised
//! ORG#<org>#INTENT_LINK#<intent>             <assistant>              pointer to the link of an intent with an assistant
//! ORG#<org>#LIST#<list>                      HEAD                     head of a list: the next ordinal, and tokens
//! ORG#<org>#LIST#<list>                      SECTION#<section>        holes of each block of a section, counted
//! ORG#<org>#LIST#<list>#HOLES                <block>                  holes of a block of a list
//! ORG#<org>#LIST#<list>#ROWS                 <ordinal>                a record: a row of a list
//! ORG#<org>#LIST#<list>#ROWS#<shard>         <ordinal>                a record: a later row of a list that spreads
//! ORG#<org>#MADE_BY#<origin>                 MADE_BY                  marker: the record that a request or an event has made; expires
//! ORG#<org>#MESSAGE#<conversation>           <ordinal>                a message of a conversation
//! ORG#<org>#METERS#<user>                    BOTS                     count of the assistants of a user
//! ORG#<org>#METERS#<user>#<period>           <part>                   count of what a user has used up in a billing period; expires
//! ORG#<org>#OPENED#<widget>#<contact>        OPENED                   pointer to the conversation that was opened last for a message of a contact; expires
//! ORG#<org>#PAYMENT_CUSTOMER#<hash>          PAYMENT_CUSTOMER         a customer of the payment provider; expires where no user is known
//! ORG#<org>#PAYMENT_EVENT#<hash>             PAYMENT_EVENT            marker: an event of the payment provider has counted; expires
//! ORG#<org>#RATE_LIMIT#<widget>              <limit>                  next free time of a widget to dispatch, or to send
//! ORG#<org>#RECEIVED#<widget>#<hash>         RECEIVED                 a message that a connector has brought in; expires
//! ORG#<org>#REMOVAL#<id>                     REMOVAL                  rest of a cascade
//! ORG#<org>#REMOVED_API_KEYS                 COUNT                    count of the API keys that were revoked, with the last one
//! ORG#<org>#RETIRED_WEBHOOK#<agency>         RETIRED_WEBHOOK          webhook at the payment provider that is to be removed there
//! ORG#<org>#RUN#<hash>                       RUN                      marker: the campaign that a request has made; expires
//! ORG#<org>#SENDS#<day>                      <part>                   count of the sends of a day; expires
//! ORG#<org>#SET#<list>#<terms>               SECTION#<section>        rows of a set in each block of a section, counted
//! ORG#<org>#SET#<list>#<terms>               VOLUME#<volume>          rows of a set in each section of a volume, counted
//! ORG#<org>#SET#<list>#<terms>#BLOCKS        <block>                  rows of a set in a block: a bit for each
//! ORG#<org>#SET#<list>#<terms>#SECTIONS      SECTION#<section>        a section that a volume counts
//! ORG#<org>#SUPPRESSION_GUARD                <part>                   mark of the last suppression
//! ORG#<org>#TAG_LINKS#<tag>                  <kind>#<entity>          pointer to the link of a tag with a record
//! ORG#<org>#THREAD#<widget>#<contact>        <conversation>           pointer to an open conversation
//! ORG#<org>#UNIQUE#<list>#<field>#<hash>     UNIQUE                   pointer from a unique value to the row that has it
//! ORG#<org>#USAGE_REPORT#<hash>              USAGE_REPORT             a report of usage that has counted; expires
//! ORG#<org>#USE                              <quota>                  count of what an organisation has of a quota
//! PAYMENT_WEBHOOK#<agency>                   ORG#<org>                pointer to an agency that gets events of the payment provider
//! RATE#<key>                                 <rate>/<burst>           token bucket of an API key; expires
//! RATE#<org>                                 <key>                    the day on which an API key was last used; expires
//! WARM_UP                                    WARM_UP                  no item: a process reads it when it starts
//!
//! In the index `Due`:
//! CAMPAIGN#<shard>                           <time>                   campaigns that are being sent, or that are sent later
//! CONVERSATION#<shard>                       <time>                   open conversations that may be idle
//! DEFERRED#<endpoint>                        <time>                   deliveries that the tick sends, such as those behind an open circuit
//! DELIVERY#<shard>                           <time>                   deliveries that the stream sends: ready, or waiting for a retry
//! ENDPOINT#<shard>                           <time>                   webhooks and connectors whose circuit is open, or with deferred deliveries
//! EVENT#<shard>                              <time>                   conversations whose changes are to be emitted
//! EXPORT#<shard>                             <time>                   exports that are being made, or whose files are to be removed
//! RETIRED_WEBHOOK#<shard>                    <time>                   webhooks to remove at the payment provider
//! ```

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use uuid::Uuid;

use crate::values::id::{ApiKeyId, SPREAD};
use crate::values::limits::Limits;
use crate::values::tenant::Tenant;

/// Name of the partition key's attribute.
pub const PK: &str = "pk";
/// Name of the sort key's attribute.
pub const SK: &str = "sk";
/// Name of the attribute with the time at which DynamoDB removes an item, in seconds since 1970.
pub const TTL: &str = "ttl";

/// Name of the attribute with the record name of a row.
pub const RECORD: &str = "record";

/// Sort key of a list's head.
pub const LIST_HEAD: &str = "HEAD";

/// The index of due items, over all organisations: only its items have the attributes `due_pk` and `due_at`.
pub const DUE_INDEX: &str = "Due";
/// Partitions of each kind of due items, so that no single one takes all writes: a delivery makes two writes to the
/// index, one when it becomes due and one when it has arrived, and a partition takes a thousand units per second. 5,000
/// deliveries per second need ten partitions.
pub const DUE_SHARDS: u32 = 16;

/// SHA-256 of the values that make two requests the same: to run a campaign, or under an idempotency key.
pub type Fingerprint = [u8; 32];

/// The token bucket of a key with these limits. Its partition key has a prefix of its own: every function may write
/// such an item, and some functions may write nothing else. Other limits have another bucket, which starts full.
pub fn rate(key: ApiKeyId, limits: Limits) -> Key {
    Key::new(format!("{RATE}{key}"), format_args!("{}/{}", limits.requests_per_second, limits.burst))
}

/// The day on which an API key was last used. It is beside the token buckets, because every function may write there;
/// the days of all keys of an organisation are in one partition.
pub fn key_use(tenant: &Tenant, key: ApiKeyId) -> Key {
    Key::new(format!("{RATE}{}", tenant.org()), key)
}

/// The prefix of the partition key of every token bucket, and of the days on which keys were last used.
pub const RATE: &str = "RATE#";

/// The marker of the item that `origin` has made: the delivery of an event, or the record of a keyed request. It
/// prevents a second one.
pub fn made_by(tenant: &Tenant, origin: Uuid) -> Key {
    Key::of(tenant, format_args!("MADE_BY#{origin}"), "MADE_BY")
}

/// A list's head. The counts of its holes follow it, section by section.
pub fn list_head(tenant: &Tenant, list: &str) -> Key {
    Key::of(tenant, format_args!("LIST#{list}"), LIST_HEAD)
}

/// The holes of a section of a list, in the partition of its head.
pub fn list_section(tenant: &Tenant, list: &str, section: u64) -> Key {
    Key::of(tenant, format_args!("LIST#{list}"), format_args!("SECTION#{section:08}"))
}

/// The holes of a block of a list.
pub fn list_block(tenant: &Tenant, list: &str, block: u64) -> Key {
    Key::of(tenant, format_args!("LIST#{list}#HOLES"), format_args!("{block:08}"))
}

/// A row of a list. The rows with ordinals from [`SPREAD`] on are in several partitions, with enough neighbours in each
/// that a page is in one or two of them.
pub fn list_row(tenant: &Tenant, list: &str, ordinal: u64) -> Key {
    Key { pk: rows(tenant, list, shard(ordinal)), sk: format!("{ordinal:010}") }
}

/// The partition of the rows of a list that are not spread.
pub fn list_rows(tenant: &Tenant, list: &str) -> String {
    rows(tenant, list, None)
}

/// The partitions of spread rows.
pub fn list_shards(tenant: &Tenant, list: &str) -> impl Iterator<Item = String> {
    (0..SHARDS).map(move |shard| rows(tenant, list, Some(shard)))
}

/// The partitions that have some of these rows of a list, all of them spread, and the sort keys of the first and the last one.
pub fn list_rows_between(tenant: &Tenant, list: &str, ordinals: Range<u64>) -> (Vec<String>, [String; 2]) {
    let (first, end) = (ordinals.start / NEIGHBOURS, ordinals.end.div_ceil(NEIGHBOURS));
    let partitions = (first..end.min(first + SHARDS)).map(|part| rows(tenant, list, Some(part % SHARDS))).collect();
    (partitions, [ordinals.start, ordinals.end.saturating_sub(1)].map(|ordinal| list_row(tenant, list, ordinal).sk))
}

fn rows(tenant: &Tenant, list: &str, shard: Option<u64>) -> String {
    let shard = shard.map(|shard| format!("#{shard}")).unwrap_or_default();
    Key::of(tenant, format_args!("LIST#{list}{ROWS}{shard}"), "").pk
}

/// The shard of a row; `None` if it is not spread.
const fn shard(ordinal: u64) -> Option<u64> {
    if ordinal < SPREAD { None } else { Some(ordinal / NEIGHBOURS % SHARDS) }
}

/// The number of partitions over which rows are spread: each takes a thousand write units per second.
pub const SHARDS: u64 = 8;
/// The number of rows with neighbouring ordinals in the same partition. A list to which a thousand rows per second are
/// appended uses all partitions within that second.
pub const NEIGHBOURS: u64 = 128;

/// The part of a partition key between the name of a list and, if its rows are spread, the number of the partition.
pub const ROWS: &str = "#ROWS";

/// The organisation, the list and the ordinal of the row whose key this is.
pub fn row_of(key: &Key) -> Option<(Tenant, &str, u64)> {
    let tenant = Tenant::of_partition_key(&key.pk)?;
    let list = key.pk.rsplit_once(ROWS)?.0.split_once("#LIST#")?.1;
    let ordinal = key.sk.parse().ok()?;
    (*key == list_row(&tenant, list, ordinal)).then_some((tenant, list, ordinal))
}

/// The prefix of a section's sort key, before its number.
pub const SECTION_KEY: &str = "SECTION#";

/// The prefix of a volume's sort key, before its number.
pub const VOLUME_KEY: &str = "VOLUME#";

/// The number of ordinals of each block that match a filter, by section; for the first sections of a list, which have
/// no volume.
pub fn filter_section(tenant: &Tenant, filter: &str, section: u64) -> Key {
    Key::of(tenant, format_args!("SET#{filter}"), format_args!("{SECTION_KEY}{section:08}"))
}

/// The number of ordinals of each section that match a filter, by volume, in the partition of the first sections.
pub fn filter_volume(tenant: &Tenant, filter: &str, volume: u64) -> Key {
    Key::of(tenant, format_args!("SET#{filter}"), format_args!("{VOLUME_KEY}{volume:08}"))
}

/// A section that a volume counts.
pub fn filter_section_of_volume(tenant: &Tenant, filter: &str, section: u64) -> Key {
    Key::of(tenant, format_args!("SET#{filter}#SECTIONS"), format_args!("{SECTION_KEY}{section:08}"))
}

/// The ordinals of a block that match a filter.
pub fn filter_block(tenant: &Tenant, filter: &str, block: u64) -> Key {
    Key::of(tenant, format_args!("SET#{filter}#BLOCKS"), format_args!("{block:08}"))
}

/// A partition of the index of due items: one of the shards of `kind`. The last bits of an id are its ordinal, so items
/// that are created together use all of them.
pub fn due_partition(kind: &str, item: Uuid) -> String {
    format!("{kind}#{}", item.as_u128() % u128::from(DUE_SHARDS))
}

/// All partitions of `kind` in the index of due items.
pub fn due_partitions(kind: &str) -> impl Iterator<Item = String> {
    (0..DUE_SHARDS).map(move |shard| format!("{kind}#{shard}"))
}

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

impl Key {
    /// An item whose key is made without a tenant.
    pub(crate) fn new(pk: String, sk: impl Display) -> Self {
        Self { pk, sk: sk.to_string() }
    }

    /// The item `sk` of a partition of the organisation.
    pub(crate) fn of(tenant: &Tenant, partition: impl Display, sk: impl Display) -> Self {
        Self::new(format!("ORG#{}#{partition}", tenant.org()), sk)
    }

    /// The two attributes.
    pub fn attributes(&self) -> HashMap<String, AttributeValue> {
        let text = |value: &String| AttributeValue::S(value.clone());
        HashMap::from([(PK.to_owned(), text(&self.pk)), (SK.to_owned(), text(&self.sk))])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::values::id::with_ordinal;

    #[test]
    fn consecutive_ordinals_use_all_due_partitions() {
        let partitions: BTreeSet<String> = (1000..1016)
            .map(|ordinal| due_partition("DELIVERY", with_ordinal(Uuid::from_u128(7 << 64), ordinal)))
            .collect();
        assert_eq!(partitions, due_partitions("DELIVERY").collect());
    }
}
