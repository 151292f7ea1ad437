//! Objects that Lambda stores in a bucket: they belong to no organisation, and are listed, read, replaced and removed.

use percent_encoding::{AsciiSet, utf8_percent_encode};

use crate::aws::signature::ENCODED;
use crate::bucket::{Bucket, BucketError, unexpected};

/// Days after which a rule of the bucket removes an object.
pub const KEPT_DAYS: i64 = 30;
/// The most pages of a list that are read. A page has a thousand objects.
const PAGES: usize = 50;

/// The characters of a key that are not encoded in an address.
const KEY: &AsciiSet = &ENCODED.remove(b'/');

/// A bucket that belongs to no organisation, and to which callers get no address. Clones share the connections.
#[derive(Debug, Clone)]
pub struct KeptObjects(Bucket);

/// An entry of a list of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptObject {
    /// Its key.
    pub key: String,
    /// When it was last put, in ISO 8601: the order of such texts is the order of their times.
    pub put_at: String,
}

impl KeptObjects {
    /// The objects of `bucket`.
    pub const fn new(bucket: Bucket) -> Self {
        Self(bucket)
    }

    /// The objects, in the order in which they were last put. If there are more than fifty thousand, only the ones with
    /// the first keys.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn list(&self) -> Result<Vec<KeptObject>, BucketError> {
        let mut objects: Vec<KeptObject> = Vec::new();
        for _ in 0..PAGES {
            let after = objects.last().map(|last| format!("&start-after={}", utf8_percent_encode(&last.key, ENCODED)));
            let (status, page) = self.answer(&format!("?list-type=2{}", after.unwrap_or_default())).await?;
            if status != 200 {
                return Err(unexpected("a list", status));
            }
            let page = String::from_utf8_lossy(&page);
            objects.extend(page.split("<Contents>").skip(1).filter_map(KeptObject::in_list));
            if element(&page, "IsTruncated") != Some("true") {
                break;
            }
        }
        objects.sort_by(|a, b| (&a.put_at, &a.key).cmp(&(&b.put_at, &b.key)));
        Ok(objects)
    }

    /// The bytes of an object; `None` if it is gone.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn read(&self, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        match self.answer(&place_of(key)).await? {
            (200, bytes) => Ok(Some(bytes)),
            (404, _) => Ok(None),
            (other, _) => Err(unexpected("GET", other)),
        }
    }

    /// Puts an object; replaces an existing one.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn replace(&self, key: &str, bytes: Vec<u8>) -> Result<(), BucketError> {
        let headers = [("content-type", "application/json")];
        match self.0.send("PUT", &place_of(key), &headers, bytes).await?.status().as_u16() {
            200 => Ok(()),
            other => Err(unexpected("PUT", other)),
        }
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// [`BucketError::Unavailable`] where S3 does not answer.
    pub async fn remove(&self, key: &str) -> Result<(), BucketError> {
        self.0.remove_at(&place_of(key)).await
    }

    /// Status and body of the answer to a GET.
    async fn answer(&self, place: &str) -> Result<(u16, Vec<u8>), BucketError> {
        let mut response = self.0.send("GET", place, &[], Vec::new()).await?;
        let body = self.0.body(&mut response).await?;
        Ok((response.status().as_u16(), body))
    }
}

impl KeptObject {
    /// The object of an entry of a list. Lambda's keys need no XML entities.
    fn in_list(entry: &str) -> Option<Self> {
        let text = |name| element(entry, name).map(str::to_owned);
        Some(Self { key: text("Key")?, put_at: text("LastModified")? })
    }
}

fn place_of(key: &str) -> String {
    utf8_percent_encode(key, KEY).to_string()
}

/// The text of the first element of this name.
pub(super) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_entry_is_read_with_key_and_time() {
        let page = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>aws/lambda/a-1</Key>\
                    <LastModified>2026-02-01T12:00:00.000Z</LastModified><Size>5</Size></Contents></ListBucketResult>";
        let objects: Vec<_> = page.split("<Contents>").skip(1).filter_map(KeptObject::in_list).collect();
        let wanted = KeptObject { key: "aws/lambda/a-1".into(), put_at: "2026-02-01T12:00:00.000Z".into() };
        assert_eq!(objects, [wanted]);
        assert_eq!(element(page, "IsTruncated"), Some("false"));
        assert_eq!(element(page, "NextContinuationToken"), None);
    }

    #[test]
    fn a_key_is_percent_encoded_except_its_slashes() {
        assert_eq!(place_of("aws/lambda/2026-02-01T12.00.00-a"), "aws/lambda/2026-02-01T12.00.00-a");
        assert_eq!(place_of("a b/ü?"), "a%20b/%C3%BC%3F");
    }
}
