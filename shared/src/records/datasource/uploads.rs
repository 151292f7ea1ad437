//! Notes when the bytes of a file have arrived: the bucket reports each new object.
//!
//! The same object may be reported twice, and two objects of one file in the wrong order: the later time counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::input::{Between, Input as _, Issues, Source};
use crate::records::datasource::DatasourceFile;
use crate::request::error::{Error, Result};
use crate::request::event::EventContext;
use crate::table::error::{NotChanged, TableError};
use crate::values::id::DatasourceFileId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

crate::input! {
    /// A new object in the bucket of files, as the rule of the template passes it on.
    pub struct NewObject {
        /// Its key.
        pub key: String,
        /// Its size in bytes. An empty object is no file: it blocks a late upload.
        pub size_bytes: Between<0, { i64::MAX }>,
        /// When it was put.
        pub put_at: Timestamp,
    }
}

crate::object! {
    /// What became of the note.
    pub struct NotedUpload {
        /// The file; null if the object is none, or if the file is deleted.
        pub datasourcefile_id: Option<DatasourceFileId>,
        /// Whether the file has changed: false if this upload, or a later one, was noted before.
        pub changed: bool,
    }
}

/// The report of Lambda about an event that a function gave up.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenUp<'a> {
    #[serde(borrow)]
    request_payload: &'a RawValue,
}

/// The object that `note-upload` got when it gave up; `None` if `report` is about something else.
pub fn given_up(report: &[u8]) -> Option<NewObject> {
    let report: GivenUp<'_> = serde_json::from_slice(report).ok()?;
    let source = Source::body(Some(report.request_payload.get().as_bytes())).ok()?;
    NewObject::read(&source, &mut Issues::new())
}

/// Notes that the bytes of a file have arrived.
///
/// # Errors
/// [`Error::Unavailable`] where the table does not answer: a repeat notes it.
pub async fn note(cx: &EventContext<'_>, new: &NewObject) -> Result<NotedUpload> {
    let nothing = NotedUpload { datasourcefile_id: None, changed: false };
    let Some((tenant, id)) = Tenant::of_object(&new.key).filter(|_| new.size_bytes.get() > 0) else {
        return Ok(nothing);
    };
    let (table, id, now) = (cx.table(tenant), DatasourceFileId(id), cx.service.clock.now());
    let Some(file) = table.find::<DatasourceFile>(id).await? else { return Ok(nothing) };
    let change = |file: &mut DatasourceFile| {
        let is_later = file.uploaded_at.is_none_or(|at| at < new.put_at);
        file.uploaded_at = Some(new.put_at).filter(|_| is_later).or(file.uploaded_at);
        file.updated_at = now;
        if is_later { Ok(()) } else { Err(()) }
    };
    let noted = |changed| Ok(NotedUpload { datasourcefile_id: Some(id), changed });
    match table.change_read(file, id, (None, false), change, |_, _| None).await {
        Ok(_) => noted(true),
        Err(NotChanged::Refused(())) => noted(false),
        Err(NotChanged::Failed(TableError::Missing)) => Ok(nothing),
        Err(NotChanged::Failed(error)) => Err(Error::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_report_about_an_object_is_an_upload() {
        let report = br#"{"version":"1.0","requestContext":{"condition":"RetriesExhausted"},"requestPayload":{"key":"a/b","size_bytes":3,"put_at":"2026-02-01T12:00:00Z"}}"#;
        let object = given_up(report).unwrap();
        assert_eq!((object.key.as_str(), object.size_bytes.get()), ("a/b", 3));
        assert_eq!(object.put_at, Timestamp::from_unix_millis(1_769_947_200_000));
        for other in
            ["", "{}", r#"{"payload":"{}"}"#, r#"{"requestPayload":{"all":true}}"#, r#"{"requestPayload":null}"#]
        {
            assert!(given_up(other.as_bytes()).is_none(), "{other}");
        }
    }
}
