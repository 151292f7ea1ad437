//! Uploads in parts: an object that is made piece by piece, in several invocations.

use std::fmt::Write as _;

use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};

use crate::aws::signature::ENCODED;
use crate::bucket::kept::element;
use crate::bucket::{Bucket, BucketError, ObjectKey, unexpected};

/// The fewest bytes of a part that is not the last one: S3 asks for this.
pub const LEAST_PART: usize = 5 * 1024 * 1024;

/// An upload in parts that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UploadId(String);

/// A part that is uploaded: its number, and the tag by which S3 recognises its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedPart(u32, String);

impl Bucket {
    /// Begins an upload. A rule of the bucket ends it after a day.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn begin_upload(&self, key: &ObjectKey, content_type: &str) -> Result<UploadId, BucketError> {
        let headers = [("content-type", content_type)];
        let mut response = self.send("POST", &format!("{}?uploads=", key.0), &headers, Vec::new()).await?;
        let (status, body) = (response.status().as_u16(), self.body(&mut response).await?);
        let id = element(&String::from_utf8_lossy(&body), "UploadId").map(|id| UploadId(id.to_owned()));
        id.filter(|_| status == 200).ok_or_else(|| unexpected("the begin of an upload", status))
    }

    /// Uploads a part; `None` if the upload has ended. A part with the same number is replaced.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn upload_part(
        &self,
        key: &ObjectKey,
        upload: &UploadId,
        number: u32,
        bytes: Vec<u8>,
    ) -> Result<Option<UploadedPart>, BucketError> {
        let place = format!("{}?partNumber={number}&uploadId={}", key.0, encoded(upload));
        let response = self.send("PUT", &place, &[], bytes).await?;
        match (response.status().as_u16(), response.headers().get("etag")) {
            (200, Some(tag)) => Ok(Some(UploadedPart(number, tag.trim_matches('"').to_owned()))),
            (404, _) => Ok(None),
            (other, _) => Err(unexpected("a part", other)),
        }
    }

    /// Makes the object of `parts`, in the order of their numbers; false if the upload has ended.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer, or could not make the object.
    pub async fn complete_upload(
        &self,
        key: &ObjectKey,
        upload: &UploadId,
        parts: &[UploadedPart],
    ) -> Result<bool, BucketError> {
        let mut body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">".to_owned();
        for UploadedPart(number, tag) in parts {
            // Writing to a string cannot fail.
            let _ = write!(body, "<Part><PartNumber>{number}</PartNumber><ETag>\"{tag}\"</ETag></Part>");
        }
        body += "</CompleteMultipartUpload>";
        let headers = [("content-type", "application/xml")];
        let place = format!("{}?uploadId={}", key.0, encoded(upload));
        let mut response = self.send("POST", &place, &headers, body.into_bytes()).await?;
        match response.status().as_u16() {
            // S3 begins its answer before it knows the result, so a failure may have this status too.
            200 => {
                let answer = self.body(&mut response).await?;
                let failed = element(&String::from_utf8_lossy(&answer), "Code").map(str::to_owned);
                failed.map_or(Ok(true), |code| {
                    Err(BucketError::Unavailable(format!("bucket: the end of an upload: {code}")))
                })
            }
            404 => Ok(false),
            other => Err(unexpected("the end of an upload", other)),
        }
    }

    /// Ends an upload without an object, if it has not ended.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn abort_upload(&self, key: &ObjectKey, upload: &UploadId) -> Result<(), BucketError> {
        self.remove_at(&format!("{}?uploadId={}", key.0, encoded(upload))).await
    }
}

fn encoded(upload: &UploadId) -> String {
    utf8_percent_encode(&upload.0, ENCODED).to_string()
}
