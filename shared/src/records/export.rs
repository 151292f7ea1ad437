//! Exports: files that the service makes of an organisation's records.
//!
//! A function that runs every minute makes them, part by part (`run`). What it has read so far is stored with each part, so
//! another process can go on. `docs/adr/0063-exports-are-made-in-parts.md` gives the reasons.

mod format;
mod run;
mod source;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::bucket::multipart::{UploadId, UploadedPart};
use crate::bucket::{Bucket, BucketError, ObjectKey, SignedUrl, attachment};
use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Issues, Location, Parse, Raw, bounded_list, member, words};
use crate::records::due::Due;
use crate::request::caller::Caller;
use crate::request::error::{Error, Result};
use crate::request::scope::KeyScope;
use crate::table::quota::{Amounts, Quota};
use crate::values::id::ExportId;
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

pub use run::run_exports;
pub use source::ReadingPlace;

/// Seconds for which the file of an export is kept.
const KEPT: i64 = 7 * 86_400;
/// Seconds for which the address of a file is valid.
const ADDRESS: i64 = 3_600;

crate::choice! {
    /// A record that can be exported.
    pub enum ExportedRecord {
        Agency = "agency",
        Assistant = "assistant",
        BillingPlan = "billing_plan",
        Campaign = "campaign",
        CampaignContact = "campaign_contact",
        CapturedForm = "captured_form",
        CapturedIntent = "captured_intent",
        Contact = "contact",
        ContactCustomField = "contact_custom_field",
        Conversation = "conversation",
        Datasource = "datasource",
        DatasourceFile = "datasource_file",
        Form = "form",
        Intent = "intent",
        LinkTagEntity = "link_tag_entity",
        Message = "message",
        Suppression = "suppression",
        Tag = "tag",
        User = "user",
        Webhook = "webhook",
        Widget = "widget",
    }
}

crate::choice! {
    /// The format of a file.
    pub enum ExportFormat {
        /// A JSON object in each line; its member `record` says what it is.
        Ndjson = "ndjson",
        /// A table of one record, for spreadsheets.
        Csv = "csv",
    }
}

crate::choice! {
    /// The state of an export.
    pub enum ExportStatus {
        /// It has not begun.
        Queued = "queued",
        /// Records are being read.
        InProgress = "in_progress",
        /// The file is complete.
        Completed = "completed",
        /// It was given up.
        Failed = "failed",
    }
}

/// The records of an export, each once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExportedRecords(Vec<ExportedRecord>);

impl Parse for ExportedRecords {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let records: Vec<ExportedRecord> = bounded_list(raw, at, issues, (1, ExportedRecord::WORDS.len()))?;
        let mut known = BTreeSet::new();
        if let Some(place) = records.iter().position(|record| !known.insert(*record)) {
            issues.push(at.index(place).issue("value_error", "Value error, each record should be named once"));
            return None;
        }
        Some(Self(records))
    }
}

impl Schema for ExportedRecords {
    fn schema() -> Value {
        let mut schema = Vec::<ExportedRecord>::schema();
        (schema["minItems"], schema["maxItems"]) = (1.into(), ExportedRecord::WORDS.len().into());
        schema["uniqueItems"] = true.into();
        schema
    }
}

crate::record! {
    /// An export: a file of records.
    pub struct Export(ExportId): listed("EXPORT", due Export::partition, counted Export::uses_of_quotas) {
        /// The records.
        fixed records: ExportedRecords,
        /// Filters by record, such as `{"contact": {"date_from": "2026-01-01"}}`: the same as the record's list has.
        fixed filters: JsonObject = JsonObject::default(),
        /// The format of the file.
        fixed format: ExportFormat = ExportFormat::Ndjson,
        /// The state.
        own status: ExportStatus = ExportStatus::Queued,
        /// Rows in the file. While the export is in progress: the rows so far.
        own rows: u64 = 0,
        /// Bytes of the file. While the export is in progress: the bytes so far.
        own bytes: u64 = 0,
        /// Why the export was given up; null if it was not.
        own error: Option<String> = None,
        /// Time at which it was completed or given up.
        own ended_at: Option<Timestamp> = None,
        /// Time at which the export and its file are removed; null while it is in progress.
        own expires_at: Option<Timestamp> = None,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// What has been made so far.
        hidden progress: ExportProgress = ExportProgress::default(),
        /// When a function may go on with it: at once, or after the current lease; once it has ended, when it is removed.
        hidden due_at: Option<Timestamp> = None,
    }
}

/// What of an export has been made so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportProgress {
    /// The record that is read next, by its place among the records of the export.
    pub record: usize,
    /// Where its reading goes on; `None` once all records are read.
    pub place: Option<ReadingPlace>,
    /// Whether anything has been read.
    pub has_begun: bool,
    /// Rows so far.
    pub rows: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// The upload of the file.
    pub upload: Option<UploadId>,
    /// Its parts so far.
    pub parts: Vec<UploadedPart>,
    /// The number of the next part. Each lease and each stored part has a new one: so a late process cannot replace a part.
    pub number: u32,
    /// The number under which bytes are stored that are too few for a part.
    pub rest: Option<u32>,
    /// Leases since the last progress: a crash leaves its own.
    pub tries: u32,
}

impl Export {
    fn partition(&self, id: ExportId) -> Option<String> {
        self.due_at.map(|_| Due::Export.partition(id.0))
    }

    fn uses_of_quotas(&self) -> Amounts {
        if self.is_running() { vec![(Quota::RunningExports, 1)] } else { Amounts::new() }
    }

    /// Whether it has not ended.
    pub const fn is_running(&self) -> bool {
        matches!(self.status, ExportStatus::Queued | ExportStatus::InProgress)
    }

    /// The key of its file.
    fn object(&self, tenant: &Tenant) -> ObjectKey {
        ObjectKey::of_export(tenant, self.id)
    }

    /// This new export, which may begin `now`, after a check of what `caller` may export.
    ///
    /// # Errors
    /// [`Error::Invalid`] at filters that a record does not have, and at several records in one CSV;
    /// [`Error::Forbidden`] where a scope is missing.
    pub fn checked(self, caller: &Caller, now: Timestamp) -> Result<Self> {
        let (mut issues, body) = (Issues::new(), Location::body());
        if self.format == ExportFormat::Csv && self.records.0.len() > 1 {
            let msg = "Value error, a CSV has one record; use ndjson for several";
            issues.push(body.name("format").issue("value_error", msg));
        }
        let at = body.name("filters");
        for (name, filters) in self.filters.objects(&at, &mut issues) {
            let at = at.name(name.clone());
            match ExportedRecord::from_word(&name).filter(|record| self.records.0.contains(record)) {
                Some(record) => source::check(record, &filters, &at, &mut issues),
                None => issues.push(at.issue(words::EXTRA.0, "The export does not have this record")),
            }
        }
        if !issues.is_empty() {
            return Err(Error::Invalid(issues));
        }
        self.require_scopes(caller)?;
        Ok(Self { due_at: Some(now), ..self })
    }

    /// Refuses a caller that may not read every record of the export.
    ///
    /// # Errors
    /// [`Error::Forbidden`] names the scope that is missing.
    pub fn require_scopes(&self, caller: &Caller) -> Result<()> {
        let scopes: BTreeSet<KeyScope> =
            self.records.0.iter().map(|record| KeyScope::read(source::scope(*record))).collect();
        scopes.iter().try_for_each(|scope| caller.require_scope(scope))
    }

    /// The export with the rows and bytes that it has so far.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        if self.is_running() {
            (self.rows, self.bytes) = (self.progress.rows, self.progress.bytes);
        }
        self
    }

    /// The filters of `record`, which were checked before they were stored.
    fn filters_of(&self, record: ExportedRecord) -> JsonObject {
        let mut filters = self.filters.objects(&Location::body(), &mut Issues::new());
        filters.remove(record.as_str()).unwrap_or_default()
    }

    /// The name of the file.
    fn file_name(&self) -> String {
        let of = if let [one] = *self.records.0 { one.as_str() } else { "export" };
        format!("{of}.{}", self.format.as_str())
    }
}

/// An export, with the address of its file.
#[derive(Debug, Serialize)]
pub struct ExportToDownload {
    #[serde(flatten)]
    export: Export,
    download_url: Option<SignedUrl>,
}

impl ExportToDownload {
    /// `export` with a new address, if it has a file `now`.
    ///
    /// # Errors
    /// [`BucketError::Broken`] where there are no credentials.
    pub async fn of(
        export: Export,
        bucket: &Bucket,
        tenant: &Tenant,
        now: Timestamp,
    ) -> std::result::Result<Self, BucketError> {
        let is_there = export.status == ExportStatus::Completed && export.bytes > 0;
        if !is_there || export.expires_at.is_none_or(|expires| expires <= now) {
            return Ok(Self { export: export.with_progress(), download_url: None });
        }
        let saved = attachment(Some(&export.file_name()));
        let headers = [("content-disposition", saved.as_str()), ("content-type", export.format.content_type())];
        let url = bucket.download(&export.object(tenant), &headers, (now, ADDRESS)).await?;
        Ok(Self { export, download_url: Some(url) })
    }
}

impl Schema for ExportToDownload {
    fn schema() -> Value {
        let doc =
            "Where to download the file, for an hour. Null before the export is completed, and if it found nothing.";
        let url = member::<Option<SignedUrl>>("download_url", true, doc);
        titled(extended(Export::schema(), vec![url]), "ExportToDownload", "An export, with the address of its file.")
    }
}
