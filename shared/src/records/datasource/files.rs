//! Files of data sources: the requests and answers about them, and the object that holds the bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::bucket::BucketError;
use crate::bucket::{Beginning, Bucket, ObjectKey, SignedUrl, Upload, VALID, attachment};
use crate::input::form::FormFile;
use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Between, Input, Issues, Location, Parse, Raw, ReadInput, Source, member, reject, words};
use crate::records::datasource::content::checked_type;
use crate::records::datasource::{DatasourceFile, DatasourceType};
use crate::request::claim::MARKED;
use crate::request::error::{Error, Result};
use crate::table::version::Version;
use crate::values::id::OrgId;
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};
use crate::values::time::Timestamp;

/// The most bytes of a file.
const LARGEST_FILE: i64 = 100 * 1024 * 1024;
/// The most bytes of a text.
const LARGEST_TEXT: usize = 1024 * 1024;
/// Seconds after which the bytes of a file can no longer arrive. By then the address for its upload has expired, and
/// the request that made it is no longer repeated.
const UPLOADED_WITHIN: i64 = MARKED;

/// The type of a text.
pub const TEXT_TYPE: &str = "text/plain; charset=utf-8";

crate::input! {
    /// The body of create-datasource-file.
    pub struct NewFile {
        /// Name of the file.
        pub name: Name,
        /// Exact size in bytes. The address for the upload takes no other.
        pub size_bytes: Between<1, { LARGEST_FILE }>,
        /// Media type of the file. The address for the upload takes no other.
        pub content_type: ContentType = ContentType::default(),
        /// What the content is about.
        pub description: Option<Description> = None,
        /// Type of the content.
        pub ds_type: DatasourceType = DatasourceType::Doc,
        /// Any JSON object of your own. The service stores it and does not read it.
        pub attributes: JsonObject = JsonObject::default(),
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

crate::input! {
    /// The form of create-datasource-file.
    pub struct SentFile {
        /// The file: 1 byte to 4 MiB.
        pub datasourcefile_file: FormFile,
        /// Name of the file. Without it, the form's own name of the file.
        pub name: Option<Name> = None,
        /// What the content is about.
        pub description: Option<Description> = None,
        /// Type of the content; `doc` if neither the form nor the query has it.
        pub ds_type: Option<DatasourceType> = None,
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

crate::input! {
    /// The query of create-datasource-file. A form may have these values here, and its own count before them.
    pub struct FileQuery {
        /// Name of the file, for a form.
        pub name: Option<Name> = None,
        /// What the content is about, for a form.
        pub description: Option<Description> = None,
        /// Type of the content, for a form.
        pub ds_type: Option<DatasourceType> = None,
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

/// The body of create-datasource-file: a file that is to come, or a form with the file itself.
#[derive(Debug)]
pub enum FileBody {
    /// Its bytes are uploaded to the bucket.
    Announced(NewFile),
    /// Its bytes are here.
    Sent(SentFile),
}

impl Input for FileBody {
    const OF_FORM: Option<ReadInput<Self>> = Some(|source, issues| SentFile::read(source, issues).map(Self::Sent));

    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        NewFile::read(source, issues).map(Self::Announced)
    }

    fn schema() -> Value {
        NewFile::schema()
    }

    fn form_schema() -> Option<Value> {
        Some(SentFile::schema())
    }
}

crate::input! {
    /// The body of add-datasource-text-blob.
    pub struct TextBlob {
        /// Text of the file: 1 to 1,048,576 bytes of UTF-8.
        pub content: FileText,
    }
}

crate::input! {
    /// The query of add-datasource-text-blob.
    pub struct TextBlobQuery {
        /// Type of the content.
        pub ds_type: DatasourceType = DatasourceType::TextBlob,
        /// Name of the file.
        pub name: Option<Name> = None,
        /// What the content is about.
        pub description: Option<Description> = None,
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

impl FileBody {
    /// The record of the file, for the organisation `org`, the type of its bytes, and the bytes if they are here.
    ///
    /// # Errors
    /// [`Error::Forbidden`] where the body or the query names another organisation.
    pub fn record(self, query: FileQuery, org: OrgId) -> Result<(DatasourceFile, ContentType, Option<Vec<u8>>)> {
        require_own(query.org_id, org, &Location::query())?;
        match self {
            Self::Announced(new) => {
                let content_type = new.content_type.clone();
                Ok((new.record(org)?, content_type, None))
            }
            Self::Sent(sent) => sent.record(query, org).map(|(file, its_type, bytes)| (file, its_type, Some(bytes))),
        }
    }
}

impl NewFile {
    fn record(self, org: OrgId) -> Result<DatasourceFile> {
        require_own(self.org_id, org, &Location::body())?;
        let (name, description, attributes) = (Some(self.name), self.description, self.attributes);
        Ok(DatasourceFile { name, description, attributes, ..blank(self.ds_type, self.size_bytes.get()) })
    }
}

impl SentFile {
    fn record(self, query: FileQuery, org: OrgId) -> Result<(DatasourceFile, ContentType, Vec<u8>)> {
        require_own(self.org_id, org, &Location::body())?;
        let file = self.datasourcefile_file;
        let its_own: String = file.name.chars().take(Name::MOST).collect();
        let name = self.name.or(query.name).or_else(|| Some(Name::from(its_own)).filter(|name| !name.is_empty()));
        let ds_type = self.ds_type.or(query.ds_type).unwrap_or(DatasourceType::Doc);
        let size = i64::try_from(file.bytes.len()).unwrap_or(LARGEST_FILE);
        let description = self.description.or(query.description);
        let new = DatasourceFile { name, description, ..blank(ds_type, size) };
        let content_type = file.content_type.filter(|text| ContentType::is_valid(text)).map(ContentType);
        Ok((new, content_type.unwrap_or_default(), file.bytes.into()))
    }
}

impl TextBlobQuery {
    /// The record of the file that holds `text`, for the organisation `org`.
    ///
    /// # Errors
    /// [`Error::Forbidden`] where the query names another organisation.
    pub fn record(self, text: &FileText, org: OrgId) -> Result<DatasourceFile> {
        require_own(self.org_id, org, &Location::query())?;
        let size = i64::try_from(text.0.len()).unwrap_or(LARGEST_FILE);
        Ok(DatasourceFile { name: self.name, description: self.description, ..blank(self.ds_type, size) })
    }
}

/// Requires that the organisation that a request names, if any, is that of its key.
fn require_own(named: Option<OrgId>, org: OrgId, at: &Location) -> Result<()> {
    match named.filter(|named| *named != org) {
        Some(_) => Err(Error::other_organisation(at.name("org_id"))),
        None => Ok(()),
    }
}

/// A file with default values: without optional fields, and without the fields that it gets when it is inserted.
fn blank(ds_type: DatasourceType, size_bytes: i64) -> DatasourceFile {
    let (unknown, never) = (Uuid::nil(), Timestamp::from_unix_millis(0));
    DatasourceFile {
        id: unknown.into(),
        datasource_id: unknown.into(),
        name: None,
        description: None,
        ds_type,
        size_bytes,
        uploaded_at: None,
        attributes: JsonObject::default(),
        org_id: unknown.into(),
        created_at: never,
        updated_at: never,
        version: Version::default(),
    }
}

impl DatasourceFile {
    /// The key of the object that holds its bytes.
    pub fn object(&self, tenant: &Tenant) -> ObjectKey {
        ObjectKey::of(tenant, self.id)
    }

    /// Removes the bytes of this file, which is no longer in the table, and ensures that no bytes arrive later. It is
    /// idempotent.
    ///
    /// # Errors
    /// [`BucketError`].
    pub async fn remove_object(&self, bucket: &Bucket, tenant: &Tenant, now: Timestamp) -> Result<(), BucketError> {
        let key = self.object(tenant);
        let may_come = now < self.created_at.plus_seconds(UPLOADED_WITHIN);
        if may_come { bucket.close(&key).await } else { bucket.remove(&key).await }
    }
}

/// The type of the bytes of a file, as the header `content-type` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentType(String);

/// Two words, and optional parameters, of characters that a header may have.
const TYPE_PATTERN: &str = "^[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(; ?[!-~]{1,100})?$";

impl ContentType {
    /// The type itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` matches [`TYPE_PATTERN`].
    fn is_valid(text: &str) -> bool {
        let of = |text: &str, most: usize, known: fn(u8) -> bool| {
            (1..=most).contains(&text.len()) && text.bytes().all(known)
        };
        let word = |text: &str| of(text, 64, |byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte));
        let (kind, parameters) = text.split_once(';').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        let parameters = parameters.map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        kind.split_once('/').is_some_and(|(one, other)| word(one) && word(other))
            && parameters.is_none_or(|rest| of(rest, 100, |byte| byte.is_ascii_graphic()))
    }
}

impl Default for ContentType {
    fn default() -> Self {
        Self("application/octet-stream".to_owned())
    }
}

impl Parse for ContentType {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        if Self::is_valid(&text) {
            return Some(Self(text));
        }
        issues.push(at.issue(words::PATTERN, format!("String should match pattern '{TYPE_PATTERN}'")));
        None
    }
}

impl Schema for ContentType {
    fn schema() -> Value {
        json!({"type": "string", "pattern": TYPE_PATTERN})
    }
}

/// The text of a new file. `Debug` shows its length only.
pub struct FileText(String);

impl FileText {
    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// The number of its words, which white space separates.
    pub fn words(&self) -> u64 {
        self.0.split_whitespace().count() as u64
    }
}

impl std::fmt::Debug for FileText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FileText({})", self.0.len())
    }
}

impl Parse for FileText {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = raw.text(at, issues)?;
        if text.is_empty() {
            return reject(issues, at, words::TEXT_TOO_SHORT);
        }
        if text.len() > LARGEST_TEXT {
            issues.push(at.issue(words::TEXT_TOO_LONG, format!("String should have at most {LARGEST_TEXT} bytes")));
            return None;
        }
        Some(Self(text.into_owned()))
    }
}

impl Schema for FileText {
    fn schema() -> Value {
        json!({"type": "string", "minLength": 1, "contentMediaType": "text/plain"})
    }
}

/// A new file, and how to upload its bytes.
#[derive(Debug, Serialize)]
pub struct FileToUpload {
    /// The file.
    #[serde(flatten)]
    pub file: DatasourceFile,
    /// Whether its bytes are there.
    pub uploaded: bool,
    /// The one request that uploads the file's bytes. S3 refuses it if they are there.
    pub upload: Upload,
}

impl Schema for FileToUpload {
    fn schema() -> Value {
        let uploaded = member::<bool>("uploaded", true, "Whether its bytes are there.");
        let doc = "The request that uploads its bytes. It succeeds once: if the bytes are there, it is answered 412.";
        let upload = member::<Upload>("upload", true, doc);
        titled(
            extended(DatasourceFile::schema(), vec![uploaded, upload]),
            "FileToUpload",
            "A new file, and how to upload its bytes.",
        )
    }
}

/// A new file whose bytes are there.
#[derive(Debug, Serialize)]
pub struct UploadedFile {
    /// The file.
    #[serde(flatten)]
    pub file: DatasourceFile,
    /// Whether its bytes are there: they are.
    pub uploaded: bool,
}

impl Schema for UploadedFile {
    fn schema() -> Value {
        let uploaded = member::<bool>("uploaded", true, "True: its bytes are there.");
        titled(extended(DatasourceFile::schema(), vec![uploaded]), "UploadedFile", "A file whose bytes are there.")
    }
}

/// A file, and where to download its bytes.
#[derive(Debug, Serialize)]
pub struct FileToDownload {
    /// The file.
    #[serde(flatten)]
    pub file: DatasourceFile,
    /// Whether its bytes are there.
    pub uploaded: bool,
    /// Type as which the bytes are downloaded: that of the upload, or `application/octet-stream` if they begin as
    /// something else; null if they are not there.
    pub content_type: Option<String>,
    /// Address from which the bytes can be downloaded for fifteen minutes; null if they are not there.
    pub download_url: Option<SignedUrl>,
}

impl FileToDownload {
    /// `file`, with what `bucket` has of it. A browser saves the download and never shows it, so that nobody can publish
    /// a page under the address of the bucket.
    ///
    /// # Errors
    /// [`BucketError`].
    pub async fn find(
        file: DatasourceFile,
        bucket: &Bucket,
        tenant: &Tenant,
        now: Timestamp,
    ) -> Result<Self, BucketError> {
        let key = file.object(tenant);
        let Some(Beginning { content_type, bytes }) = bucket.beginning(&key).await? else {
            return Ok(Self { file, uploaded: false, content_type: None, download_url: None });
        };
        let content_type = checked_type(&content_type, &bytes);
        let shown =
            [("content-disposition", attachment(file.name.as_deref())), ("content-type", content_type.to_owned())];
        let headers = shown.each_ref().map(|(name, value)| (*name, value.as_str()));
        let url = bucket.download(&key, &headers, (now, VALID)).await?;
        Ok(Self { file, uploaded: true, content_type: Some(content_type.to_owned()), download_url: Some(url) })
    }
}

impl Schema for FileToDownload {
    fn schema() -> Value {
        let uploaded = member::<bool>("uploaded", true, "Whether its bytes are there.");
        let doc = "Type as which they are downloaded: that of the upload, or `application/octet-stream` if they begin as something else; null before the upload.";
        let content_type = member::<Option<String>>("content_type", true, doc);
        let doc = "Where to download them, for 15 minutes; null before the upload.";
        let members = vec![uploaded, content_type, member::<Option<SignedUrl>>("download_url", true, doc)];
        titled(
            extended(DatasourceFile::schema(), members),
            "FileToDownload",
            "A file, and where to download its bytes.",
        )
    }
}

impl Schema for BTreeMap<String, String> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": String::schema()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_must_be_valid_in_a_header() {
        let longest = format!("{0}/{0}; {1}", "a".repeat(64), "b".repeat(100));
        for good in
            ["application/pdf", "text/plain; charset=utf-8", "text/plain;charset=utf-8", "image/svg+xml", &longest]
        {
            assert!(ContentType::is_valid(good), "{good}");
        }
        let longer = format!("{longest}b");
        for bad in
            ["", "pdf", "/", "a/", "/b", "a/b/c", "a/b;", "a/b; ", "a b/c", "a/b\r\nx: y", "a/b; é", " a/b", &longer]
        {
            assert!(!ContentType::is_valid(bad), "{bad}");
        }
    }
}
