//! A body of the type `multipart/form-data`, as the forms of browsers send it: texts, and files.

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use multer::{Field, Multipart, parse_boundary};

use serde_json::json;

use crate::input::schema::{Schema, Value};
use crate::input::{Issue, Issues, Location, Parse, Raw, reject, words};

/// The media type of such a body.
pub const FORM: &str = "multipart/form-data";

/// The parts of a form, in their order.
#[derive(Debug)]
pub struct FormBody(pub(super) Vec<(String, FormPart)>);

/// One part of a form.
#[derive(Debug)]
pub(super) enum FormPart {
    Text(String),
    File(FormFile),
}

/// A file in a form. `Debug` shows the number of its bytes only.
#[derive(Clone)]
pub struct FormFile {
    /// The name that the form gives it; empty if it has none.
    pub name: String,
    /// The type that the form gives it.
    pub content_type: Option<String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl std::fmt::Debug for FormFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FormFile({})", self.bytes.len())
    }
}

impl Parse for FormFile {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        match raw {
            Raw::File(file) if file.bytes.is_empty() => reject(issues, at, words::FILE_EMPTY),
            Raw::File(file) => Some(file.clone()),
            Raw::Text(_) | Raw::Json(_) => reject(issues, at, words::FILE),
        }
    }
}

impl Schema for FormFile {
    fn schema() -> Value {
        json!({"type": "string", "contentMediaType": "application/octet-stream"})
    }
}

impl FormBody {
    /// The form in `body`, if `content_type` is that of a form.
    ///
    /// # Errors
    /// One issue: the body is missing or is no form.
    pub fn read(content_type: Option<&str>, body: Option<&[u8]>) -> Option<Result<Self, Issue>> {
        let content_type = content_type.filter(|text| {
            let essence = text.split(';').next().unwrap_or_default();
            essence.trim().eq_ignore_ascii_case(FORM)
        })?;
        let because = |(kind, msg): words::Words| Location::body().issue(kind, msg);
        let Some(body) = body.filter(|body| !body.is_empty()) else {
            return Some(Err(because(words::MISSING)));
        };
        // All bytes are there, so nothing waits.
        let parts = parse_boundary(content_type).ok().and_then(|boundary| parts(body, boundary).now_or_never()?.ok());
        Some(parts.map(Self).ok_or_else(|| because(words::FORM)))
    }
}

async fn parts(body: &[u8], boundary: String) -> Result<Vec<(String, FormPart)>, multer::Error> {
    let chunk = Ok::<_, std::convert::Infallible>(Bytes::copy_from_slice(body));
    let mut form = Multipart::new(stream::iter([chunk]), boundary);
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        parts.push((name, part(field).await?));
    }
    Ok(parts)
}

async fn part(field: Field<'_>) -> Result<FormPart, multer::Error> {
    let Some(name) = field.file_name().map(str::to_owned) else {
        return Ok(FormPart::Text(String::from_utf8_lossy(&field.bytes().await?).into_owned()));
    };
    let content_type = field.content_type().map(ToString::to_string);
    Ok(FormPart::File(FormFile { name, content_type, bytes: field.bytes().await? }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(content_type: &str, body: &str) -> Option<Result<FormBody, Issue>> {
        FormBody::read(Some(content_type), Some(body.as_bytes()))
    }

    #[test]
    fn a_form_has_texts_and_files() {
        let body = "--x\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\nPrices\r\n\
            --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\
            content-type: application/pdf\r\n\r\n%PDF\r\n\
            --x--\r\n";
        for content_type in ["multipart/form-data; boundary=x", "Multipart/Form-Data; boundary=\"x\""] {
            let FormBody(parts) = read(content_type, body).unwrap().unwrap();
            let [(name, FormPart::Text(text)), (file, FormPart::File(FormFile { name: of_file, content_type, bytes }))] =
                &parts[..]
            else {
                panic!("{parts:?}")
            };
            assert_eq!((&**name, &**text, &**file, &**of_file), ("name", "Prices", "file", "a.pdf"));
            assert_eq!((content_type.as_deref(), &bytes[..]), (Some("application/pdf"), &b"%PDF"[..]));
        }
        assert!(read("application/json", body).is_none());
        assert!(FormBody::read(None, Some(b"{}")).is_none());
    }

    #[test]
    fn a_body_that_is_no_form_has_an_issue() {
        for (content_type, body, kind) in [
            ("multipart/form-data; boundary=x", "", "missing"),
            ("multipart/form-data", "--x--", "multipart_invalid"),
            ("multipart/form-data; boundary=x", "{}", "multipart_invalid"),
            ("multipart/form-data; boundary=x", "--x\r\ncontent-disposition: form-data; name=a", "multipart_invalid"),
            (
                "multipart/form-data; boundary=x",
                "--x\r\ncontent-disposition: form-data; name=a\r\n\r\ncut",
                "multipart_invalid",
            ),
        ] {
            assert_eq!(read(content_type, body).unwrap().unwrap_err().kind, kind, "{content_type} {body}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut body = b"--x\r\n".to_vec();
            body.extend(bytes);
            prop_assert!(FormBody::read(Some("multipart/form-data; boundary=x"), Some(&body)).is_some());
        }
    }
}
