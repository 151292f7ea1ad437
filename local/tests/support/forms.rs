//! The forms of the keys of the table, each with what it is, how many items its partition gets, and where it is made.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use repository::read;

/// A form of key. `<…>` is a part that differs from item to item: see [`PLACEHOLDERS`].
pub struct Form {
    /// The partition key. That of an organisation begins with [`ORG`].
    pub pk: &'static str,
    /// The sort key.
    pub sk: &'static str,
    /// What the item is.
    pub item: &'static str,
    /// How many items a partition gets at most. `{file:NAME}` stands for the value of that constant.
    pub most: &'static str,
    /// The file that makes the key, in `shared/src`.
    pub made_in: &'static str,
    /// Where `table/keys.rs` makes it: the function that does, and the file that calls it and writes the item.
    pub written_in: Option<(&'static str, &'static str)>,
}

/// With what the partition keys of an organisation begin.
pub const ORG: &str = "ORG#<org>#";

const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// The placeholders that are no UUID: the pattern of each, and how the page tells it.
pub const PLACEHOLDERS: &[(&str, &str, &str)] = &[
    ("hash", "[0-9a-f]{64}", "64 hexadecimal digits"),
    ("entity", "(?:UUID|[0-9a-f]{64})", "an id, or a hash where the entity has none"),
    ("kind", "[a-z]+", "a word"),
    ("field", "[a-z_]+", "the name of a field"),
    ("terms", "(?:[a-z_]+=[^#]+)?", "`field=value`, several with `&` between them, or nothing: all rows"),
    ("list", "[A-Z_]+(?:#(?:UUID|[0-9]{10}))?", "a name from the table of lists"),
    ("page", "[0-9]{12}", "12 digits"),
    ("ordinal", "[0-9]{10}(?:[0-9]{3})?", "10 digits, 13 of a row that is spread"),
    ("version", "[0-9]{10}", "10 digits"),
    ("block", "[0-9]{8}(?:[0-9]{2})?", "8 digits, 10 of rows that are spread"),
    ("section", "[0-9]{8}[0-9]?", "8 digits, 9 of rows that are spread"),
    ("volume", "[0-9]{8}", "8 digits"),
    ("place", "[0-9]{6}", "6 digits"),
    ("part", "[0-9]{2}", "2 digits"),
    ("shard", "[0-9]{1,2}", "1 or 2 digits"),
    ("metric", "[a-z_]+", "a metric"),
    ("values", "[a-z0-9_#-]*", "what the counts are told apart by, with `#` between the values"),
    ("rate", "[0-9]+", "a number"),
    ("burst", "[0-9]+", "a number"),
    ("day", "[0-9]{4}-[0-9]{2}-[0-9]{2}", "a day (UTC)"),
    ("period", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z", "the time at which a billing period starts"),
    ("moment", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z", "a time"),
    ("quota", "(?:webhooks|widgets|running_campaigns|files|custom_fields|running_exports)", "a quota"),
    ("limit", "(?:Dispatch|Send)", "`Dispatch` or `Send`"),
];

const KEYS: &str = "table/keys.rs";

const fn form(
    pk: &'static str,
    sk: &'static str,
    item: &'static str,
    most: &'static str,
    made_in: &'static str,
) -> Form {
    Form { pk, sk, item, most, made_in, written_in: None }
}

/// A form that `table/keys.rs` makes by `function`, for `written_in`.
const fn keyed(
    (pk, sk): (&'static str, &'static str),
    item: &'static str,
    most: &'static str,
    function: &'static str,
    written_in: &'static str,
) -> Form {
    Form { pk, sk, item, most, made_in: KEYS, written_in: Some((function, written_in)) }
}

/// The forms of the keys of items, in their order.
pub const FORMS: &[Form] = &[
    form("KEY#<hash>", "KEY", "an API key, found by its hash", "1", "request/api_key/storage.rs"),
    form(
        "ORG#<org>#API_KEYS",
        "<key>",
        "the same API key, in the listing of its organisation",
        "{keys.rs:MOST_LISTED}, and the keys that operators have issued",
        "request/api_key/storage.rs",
    ),
    form(
        "ORG#<org>#AUDIT#<shard>",
        "<entry>",
        "what a key has done to a record; expires",
        "the entries of `AuditDays` days, in {records/audit.rs:SHARDS} partitions",
        "records/audit.rs",
    ),
    form(
        "ORG#<org>#CAMPAIGN_CONTACT#<run>#<part>",
        "<contact>",
        "a contact of a campaign",
        "{records/campaign.rs:MAX_PLACES} in {records/campaign/contact_partitions.rs:SHARDS} partitions; \
         in an older campaign up to {records/campaign/contact_partitions.rs:WIDE} in each",
        "records/campaign/contact_partitions.rs",
    ),
    form(
        "ORG#<org>#CAMPAIGN_POINTERS#<run>#<shard>",
        "<contact>",
        "pointer from a contact to its place in a campaign",
        "{records/campaign.rs:MAX_PLACES} in {records/campaign/contact_pointers.rs:PARTITIONS} partitions",
        "records/campaign/contact_pointers.rs",
    ),
    form("ORG#<org>#CAMPAIGN_RUN#<run>", "CAMPAIGN", "pointer from a run to its campaign", "1", "records/campaign.rs"),
    form(
        "ORG#<org>#CAMPAIGN_RUN#<run>",
        "CAMPAIGN_SAID#<version>",
        "an earlier text of the campaign",
        "one for each change of the text",
        "records/campaign/text.rs",
    ),
    form("ORG#<org>#CAMPAIGN_RUN#<run>", "CAMPAIGN_TEXT", "the text of the campaign", "1", "records/campaign/text.rs"),
    form(
        "ORG#<org>#CAMPAIGN_RUN#<run>",
        "OUTCOMES#<part>",
        "counts of contacts by status and by outcome",
        "{records/campaign/counts.rs:SHARDS}",
        "records/campaign/counts.rs",
    ),
    form(
        "ORG#<org>#CAMPAIGN_RUN#<run>",
        "OUTCOMES_DELETED#<part>",
        "deleted places of a partition of contacts",
        "one for each partition of contacts",
        "records/campaign/storage.rs",
    ),
    form(
        "ORG#<org>#CAMPAIGN_RUN#<run>",
        "OUTCOMES_STAGED#<place>",
        "marker of contacts that a request adds",
        "1, and one for each request that crashed",
        "records/campaign/storage.rs",
    ),
    form(
        "ORG#<org>#CAMPAIGN_WAITING#<run>",
        "<moment>#<contact>#<version>",
        "where a pass finds a contact that waits for another attempt",
        "the contacts that wait, and those that waited until a time that has not come",
        "records/campaign/contact_partitions.rs",
    ),
    form(
        "ORG#<org>#CONVERSATION_FORMS#<conversation>",
        "<captured>",
        "pointer from a conversation to a form that was filled in in it",
        "what was filled in in the conversation",
        "records/captured_form.rs",
    ),
    form(
        "ORG#<org>#CONVERSATION_INTENTS#<conversation>",
        "<captured>",
        "pointer from a conversation to an intent that was recognised in it",
        "what was recognised in the conversation",
        "records/captured_intent.rs",
    ),
    form(
        "ORG#<org>#COUNTS#<metric>#<shard>",
        "<day>#<values>",
        "counts of a day, by quarters of an hour; expires",
        "an item for each day and each set of values; {records/analytics/counters.rs:SHARDS} partitions where processes count at once",
        "records/analytics/counters.rs",
    ),
    form(
        "ORG#<org>#DATASOURCE_LINK#<datasource>",
        "<assistant>",
        "pointer to the link of a data source with an assistant",
        "one for each assistant that has the data source",
        "records/datasource.rs",
    ),
    form(
        "ORG#<org>#DEFAULT_PLAN#<agency>",
        "DEFAULT_PLAN",
        "pointer from an agency to its default plan",
        "1",
        "records/agency/plans.rs",
    ),
    form(
        "ORG#<org>#ENDPOINT_HEALTH#<endpoint>",
        "ENDPOINT_HEALTH",
        "circuit breaker of a webhook or connector",
        "1",
        "records/delivery/health.rs",
    ),
    form(
        "ORG#<org>#ENTITY_LINKS#<kind>#<entity>",
        "<tag>",
        "pointer to the link of a record with a tag",
        "one for each tag of the record",
        "records/tag.rs",
    ),
    form("ORG#<org>#EVENT#<event>", "EVENT", "an event of the log; expires", "1", "records/event.rs"),
    form(
        "ORG#<org>#EVENT_LOG",
        "<page>",
        "a page of the log: the ids of the events of a batch; expires",
        "the pages of {records/event/log.rs:PAGE_DAYS} days, each with up to {records/event/log.rs:ON_PAGE} events",
        "records/event/log.rs",
    ),
    form(
        "ORG#<org>#EVENT_PENDING#<conversation>",
        "EVENT_PENDING",
        "changes of a conversation that the next tick emits",
        "1",
        "records/event/pending.rs",
    ),
    form(
        "ORG#<org>#FORM_CAPTURED#<form>",
        "<captured>",
        "pointer from a form to what was filled into it",
        "how often the form was filled in",
        "records/captured_form.rs",
    ),
    form(
        "ORG#<org>#IDEMPOTENCY#<hash>",
        "IDEMPOTENCY",
        "claim of an idempotency key, with the answer; expires",
        "1",
        "request/claim.rs",
    ),
    form(
        "ORG#<org>#INTENT_CAPTURED#<intent>",
        "<captured>",
        "pointer from an intent to a conversation in which it was recognised",
        "how often the intent was recognised",
        "records/captured_intent.rs",
    ),
    form(
        "ORG#<org>#INTENT_LINK#<intent>",
        "<assistant>",
        "pointer to the link of an intent with an assistant",
        "one for each assistant that has the intent",
        "records/intent.rs",
    ),
    keyed(
        ("ORG#<org>#LIST#<list>", "HEAD"),
        "head of a list: the next ordinal, and tokens",
        "1",
        "list_head",
        "table/reservation.rs",
    ),
    keyed(
        ("ORG#<org>#LIST#<list>", "SECTION#<section>"),
        "holes of each block of a section, counted",
        "one for {table/ordinals.rs:SECTION} × {table/ordinals.rs:BLOCK} rows",
        "list_section",
        "table/rows.rs",
    ),
    keyed(
        ("ORG#<org>#LIST#<list>#HOLES", "<block>"),
        "holes of a block of a list",
        "one for {table/ordinals.rs:BLOCK} rows",
        "list_block",
        "table/rows.rs",
    ),
    keyed(
        ("ORG#<org>#LIST#<list>#ROWS", "<ordinal>"),
        "a record: a row of a list",
        "all rows of the list; of a list that spreads, about the first {table/reservation.rs:LONG}",
        "list_row",
        "record/src/expand/place.rs",
    ),
    keyed(
        ("ORG#<org>#LIST#<list>#ROWS#<shard>", "<ordinal>"),
        "a record: a later row of a list that spreads",
        "the other rows, in {table/keys.rs:SHARDS} partitions",
        "list_row",
        "record/src/expand/place.rs",
    ),
    keyed(
        ("ORG#<org>#MADE_BY#<origin>", "MADE_BY"),
        "marker: the record that a request or an event has made; expires",
        "1",
        "made_by",
        "table/transaction.rs",
    ),
    form(
        "ORG#<org>#MESSAGE#<conversation>",
        "<ordinal>",
        "a message of a conversation",
        "{records/conversation.rs:MAX_MESSAGES}, with {records/conversation.rs:MAX_TEXT} bytes of text",
        "records/conversation/storage.rs",
    ),
    form("ORG#<org>#METERS#<user>", "BOTS", "count of the assistants of a user", "1", "table/metering.rs"),
    form(
        "ORG#<org>#METERS#<user>#<period>",
        "<part>",
        "count of what a user has used up in a billing period; expires",
        "17",
        "table/metering.rs",
    ),
    form(
        "ORG#<org>#OPENED#<widget>#<contact>",
        "OPENED",
        "pointer to the conversation that was opened last for a message of a contact; expires",
        "1",
        "records/conversation/received.rs",
    ),
    form(
        "ORG#<org>#PAYMENT_CUSTOMER#<hash>",
        "PAYMENT_CUSTOMER",
        "a customer of the payment provider; expires where no user is known",
        "1",
        "payments/customer.rs",
    ),
    form(
        "ORG#<org>#PAYMENT_EVENT#<hash>",
        "PAYMENT_EVENT",
        "marker: an event of the payment provider has counted; expires",
        "1",
        "payments/receive.rs",
    ),
    form(
        "ORG#<org>#RATE_LIMIT#<widget>",
        "<limit>",
        "next free time of a widget to dispatch, or to send",
        "2",
        "records/campaign/rate_limit.rs",
    ),
    form(
        "ORG#<org>#RECEIVED#<widget>#<hash>",
        "RECEIVED",
        "a message that a connector has brought in; expires",
        "1",
        "records/conversation/received.rs",
    ),
    form("ORG#<org>#REMOVAL#<id>", "REMOVAL", "rest of a cascade", "1", "table/cascade.rs"),
    form(
        "ORG#<org>#REMOVED_API_KEYS",
        "COUNT",
        "count of the API keys that were revoked, with the last one",
        "1",
        "request/api_key/storage.rs",
    ),
    form(
        "ORG#<org>#RETIRED_WEBHOOK#<agency>",
        "RETIRED_WEBHOOK",
        "webhook at the payment provider that is to be removed there",
        "1",
        "payments/retired_webhook.rs",
    ),
    form(
        "ORG#<org>#RUN#<hash>",
        "RUN",
        "marker: the campaign that a request has made; expires",
        "1",
        "records/campaign.rs",
    ),
    form("ORG#<org>#SENDS#<day>", "<part>", "count of the sends of a day; expires", "17", "table/sends.rs"),
    keyed(
        ("ORG#<org>#SET#<list>#<terms>", "SECTION#<section>"),
        "rows of a set in each block of a section, counted",
        "{table/ordinals.rs:SECTION}, and {table/ordinals.rs:SECTION} more where rows are spread",
        "filter_section",
        "table/filters/follow.rs",
    ),
    keyed(
        ("ORG#<org>#SET#<list>#<terms>", "VOLUME#<volume>"),
        "rows of a set in each section of a volume, counted",
        "one for {table/ordinals.rs:SECTION} × {table/ordinals.rs:SECTION} × {table/ordinals.rs:BLOCK} rows of the list",
        "filter_volume",
        "table/filters/follow.rs",
    ),
    keyed(
        ("ORG#<org>#SET#<list>#<terms>#BLOCKS", "<block>"),
        "rows of a set in a block: a bit for each",
        "one for {table/ordinals.rs:BLOCK} rows of the list",
        "filter_block",
        "table/filters/follow.rs",
    ),
    keyed(
        ("ORG#<org>#SET#<list>#<terms>#SECTIONS", "SECTION#<section>"),
        "a section that a volume counts",
        "one for {table/ordinals.rs:SECTION} × {table/ordinals.rs:BLOCK} rows of the list",
        "filter_section_of_volume",
        "table/filters/follow.rs",
    ),
    form(
        "ORG#<org>#SUPPRESSION_GUARD",
        "<part>",
        "mark of the last suppression",
        "{records/suppression/check.rs:SHARDS}",
        "records/suppression/check.rs",
    ),
    form(
        "ORG#<org>#TAG_LINKS#<tag>",
        "<kind>#<entity>",
        "pointer to the link of a tag with a record",
        "one for each record that has the tag",
        "records/tag.rs",
    ),
    form(
        "ORG#<org>#THREAD#<widget>#<contact>",
        "<conversation>",
        "pointer to an open conversation",
        "the open conversations of a contact through a widget",
        "records/conversation.rs",
    ),
    form(
        "ORG#<org>#UNIQUE#<list>#<field>#<hash>",
        "UNIQUE",
        "pointer from a unique value to the row that has it",
        "1",
        "table/holders.rs",
    ),
    form(
        "ORG#<org>#USAGE_REPORT#<hash>",
        "USAGE_REPORT",
        "a report of usage that has counted; expires",
        "1",
        "records/usage.rs",
    ),
    form("ORG#<org>#USE", "<quota>", "count of what an organisation has of a quota", "4", "table/uses.rs"),
    form(
        "PAYMENT_WEBHOOK#<agency>",
        "ORG#<org>",
        "pointer to an agency that gets events of the payment provider",
        "1",
        "records/agency.rs",
    ),
    keyed(
        ("RATE#<key>", "<rate>/<burst>"),
        "token bucket of an API key; expires",
        "one for each limit that the key had in the last hours",
        "rate",
        "request/limit.rs",
    ),
    keyed(
        ("RATE#<org>", "<key>"),
        "the day on which an API key was last used; expires",
        "one for each key of the organisation that was used in the last 400 days",
        "key_use",
        "request/api_key/usage.rs",
    ),
    form("WARM_UP", "WARM_UP", "no item: a process reads it when it starts", "0", "table/store.rs"),
];

/// A form of partition key in the index `Due`. The sort key is the time at which the item becomes due.
pub const DUE: &[Form] = &[
    form("CAMPAIGN#<shard>", "<time>", "campaigns that are being sent, or that are sent later", DUE_MOST, DUE_IN),
    form("CONVERSATION#<shard>", "<time>", "open conversations that may be idle", DUE_MOST, DUE_IN),
    form(
        "DEFERRED#<endpoint>",
        "<time>",
        "deliveries that the tick sends, such as those behind an open circuit",
        "the deliveries of one webhook or connector",
        "records/delivery/storage.rs",
    ),
    form(
        "DELIVERY#<shard>",
        "<time>",
        "deliveries that the stream sends: ready, or waiting for a retry",
        DUE_MOST,
        DUE_IN,
    ),
    form(
        "ENDPOINT#<shard>",
        "<time>",
        "webhooks and connectors whose circuit is open, or with deferred deliveries",
        DUE_MOST,
        DUE_IN,
    ),
    form("EVENT#<shard>", "<time>", "conversations whose changes are to be emitted", DUE_MOST, DUE_IN),
    form("EXPORT#<shard>", "<time>", "exports that are being made, or whose files are to be removed", DUE_MOST, DUE_IN),
    form("RETIRED_WEBHOOK#<shard>", "<time>", "webhooks to remove at the payment provider", DUE_MOST, DUE_IN),
];

const DUE_IN: &str = "records/due.rs";
const DUE_MOST: &str = "the items of all organisations, in {table/keys.rs:DUE_SHARDS} partitions";

impl Form {
    /// Whether this is the form of a key.
    fn has(&self, pk: &str, sk: Option<&str>) -> bool {
        matches(self.pk, pk) && sk.is_none_or(|sk| matches(self.sk, sk))
    }

    /// The words of both keys that the file which makes them must have.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        let parts = [self.pk.trim_start_matches(ORG), self.sk].into_iter().flat_map(|key| key.split('#'));
        parts.filter(|part| !part.contains('<') && !part.is_empty())
    }

    /// How many items a partition gets, with the values of the constants.
    pub fn most(&self) -> String {
        with_constants(self.most)
    }
}

/// `text` with the value of each constant in the place of its `{file:NAME}`.
pub fn with_constants(text: &str) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let constant = part.split_once('}').and_then(|(constant, after)| Some((constant.split_once(':')?, after)));
        match constant {
            Some(((file, name), after)) => filled += &(value_of(file, name) + after),
            None => filled = filled + "{" + part,
        }
    }
    filled
}

/// The one form of `forms` that a key has.
pub fn form_of(forms: &'static [Form], pk: &str, sk: Option<&str>) -> Result<usize, String> {
    let found: Vec<usize> = (0..forms.len()).filter(|place| forms[*place].has(pk, sk)).collect();
    match found[..] {
        [one] => Ok(one),
        _ => Err(format!("{pk} {} has {} forms", sk.unwrap_or_default(), found.len())),
    }
}

/// The path of a file of a form: of the crate `shared`, or of its macro `record!`.
pub fn path_of(file: &str) -> String {
    let folder = if file.starts_with("record/") { "shared" } else { "shared/src" };
    format!("{folder}/{file}")
}

/// The value of a constant in a file of `shared/src`, a number or a product, in groups of three digits.
fn value_of(file: &str, name: &str) -> String {
    let source = read(&format!("shared/src/{file}"));
    let line = source.lines().find(|line| line.contains(&format!("const {name}: ")));
    let line = line.unwrap_or_else(|| panic!("{file} has no constant {name}"));
    let factors = line.split(['=', ';']).nth(1).unwrap().split('*');
    let value: u64 = factors.map(|factor| factor.trim().replace('_', "").parse::<u64>().unwrap()).product();
    let digits = value.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn matches(form: &'static str, key: &str) -> bool {
    static PATTERNS: LazyLock<BTreeMap<&str, Regex>> = LazyLock::new(|| {
        let keys = FORMS.iter().chain(DUE).flat_map(|form| [form.pk, form.sk]);
        keys.map(|key| (key, Regex::new(&pattern(key)).unwrap())).collect()
    });
    PATTERNS[form].is_match(key)
}

/// The pattern of all keys of a form.
fn pattern(form: &str) -> String {
    let mut parts = form.split('<');
    let mut pattern = format!("^{}", parts.next().unwrap_or_default());
    for (name, after) in parts.filter_map(|part| part.split_once('>')) {
        let known = PLACEHOLDERS.iter().find(|(known, ..)| *known == name).map_or(UUID, |(_, pattern, _)| pattern);
        pattern += &(known.replace("UUID", UUID) + after);
    }
    pattern + "$"
}
