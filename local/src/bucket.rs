//! The embedded S3, with the buckets of the template, served to any AWS client. It checks the signature
//! of every request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::error_handling::HandleError;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rustls::RootCertStore;
use s3s::auth::SimpleAuth;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use shared::bucket::Bucket;
use shared::bucket::kept::KeptObjects;

use crate::Trouble;
use crate::database::Data;
use crate::new_objects::NewObjects;

/// Name of the local bucket of files, `FilesBucket` in the template.
pub const BUCKET_NAME: &str = "assistants-local-files";
/// Name of the local bucket of batches that the functions on the table's stream gave up. It is short, because the
/// embedded S3 makes file names of this name and of Lambda's keys, which are long.
pub const FAILED_RECORDS_NAME: &str = "failed-records";
/// The name of this bucket in the template.
pub const FAILED_RECORDS_BUCKET: &str = "FailedRecordsBucket";
/// Id and secret of the one access key, which is the same in every run.
pub const ACCESS_KEY: &str = "local";

/// The time limit of an attempt.
const ATTEMPT: Duration = Duration::from_secs(5);

/// A connector that sends the SDK's requests to it: without TLS, since everything is on loopback.
pub fn connector() -> SharedHttpConnector {
    shared::runtime::http_client::connector(RootCertStore::empty())
}

/// The folder of the objects.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Whether it is removed when it is dropped.
    temporary: bool,
}

impl Folder {
    /// The folder that belongs to a database: next to its file, or a temporary one.
    ///
    /// # Errors
    /// [`Trouble`] where it cannot be made.
    pub fn next_to(data: &Data) -> Result<Self, Trouble> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let folder = match data {
            Data::File(file) => {
                let mut path = file.clone().into_os_string();
                path.push(".s3");
                Self { path: path.into(), temporary: false }
            }
            Data::Memory | Data::CopyOf(_) => {
                let name = format!("local-s3-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
                Self { path: std::env::temp_dir().join(name), temporary: true }
            }
        };
        for name in [BUCKET_NAME, FAILED_RECORDS_NAME] {
            let bucket = folder.path.join(name);
            std::fs::create_dir_all(&bucket).map_err(|error| trouble(&bucket, &error))?;
        }
        Ok(folder)
    }

    /// The bytes of every file, by the key of its object.
    ///
    /// # Errors
    /// [`Trouble`] where one cannot be read.
    pub fn objects(&self) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
        self.in_bucket(BUCKET_NAME)
    }

    /// The kept batches that the functions on the table's stream gave up: the bytes of every object, by its key.
    ///
    /// # Errors
    /// [`Trouble`] where one cannot be read.
    pub fn failed_records(&self) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
        self.in_bucket(FAILED_RECORDS_NAME)
    }

    fn in_bucket(&self, name: &str) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
        let bucket = self.path.join(name);
        let (mut folders, mut objects) = (vec![bucket.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|error| trouble(&folder, &error))? {
                let path = entry.map_err(|error| trouble(&folder, &error))?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).map_err(|error| trouble(&path, &error))?;
                    let key = path.strip_prefix(&bucket).unwrap_or(&path);
                    objects.push((key.to_string_lossy().into_owned(), bytes));
                }
            }
        }
        objects.sort();
        Ok(objects)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // If this fails, the rest stays in the machine's folder for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn trouble(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble(format!("{}: {error}", path.display()))
}

/// The routes of the objects in `folder`. The objects that are put into the bucket of files are added to `new`.
///
/// # Errors
/// [`Trouble`] with the folder.
pub fn router(folder: &Folder, new: NewObjects) -> Result<Router, Trouble> {
    let files = FileSystem::new(&folder.path);
    let files = files.map_err(|error| Trouble(format!("{}: {error:?}", folder.path.display())))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, ACCESS_KEY));
    // The clock of the service may be ahead of the machine's clock, which S3 uses.
    let mut config = S3Config::default();
    config.presigned_url_max_skew_time_secs = u32::MAX;
    service.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    let service = HandleError::new(service.build(), |_| async { StatusCode::INTERNAL_SERVER_ERROR });
    let routes = Router::new().fallback_service(service).layer(from_fn(with_own_headers));
    let parts = from_fn_with_state(folder.path.clone(), with_gaps_between_parts);
    Ok(routes.layer(from_fn_with_state(new, with_notifications)).layer(parts))
}

/// Adds the object of a successful PUT to `new`.
async fn with_notifications(State(new): State<NewObjects>, request: Request, next: Next) -> Response {
    let files = format!("/{BUCKET_NAME}/");
    let key = request.uri().path().strip_prefix(&files).filter(|_| request.method() == Method::PUT).map(str::to_owned);
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let response = next.run(request).await;
    if let Some(key) = key.filter(|_| response.status().is_success()) {
        new.add(&key, length.unwrap_or_default());
    }
    response
}

/// The parameters of an address, each with the header of the answer that it sets. The signature covers them.
const OWN_HEADERS: [(&str, HeaderName); 2] =
    [("response-content-disposition", CONTENT_DISPOSITION), ("response-content-type", CONTENT_TYPE)];

/// Sets the headers of an answer that its address names, as S3 does: `s3s-fs` leaves them out.
async fn with_own_headers(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let mut response = next.run(request).await;
    if !response.status().is_success() {
        return response;
    }
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let header = OWN_HEADERS.into_iter().find(|(parameter, _)| *parameter == name);
        if let (Some((_, header)), Ok(value)) = (header, HeaderValue::from_str(&value)) {
            response.headers_mut().insert(header, value);
        }
    }
    response
}

/// The most bytes of a request that ends an upload.
const LONGEST_END: usize = 1024 * 1024;

/// Answers a request about an upload in parts as S3 does: an upload that has ended is missing, and between the numbers of
/// parts there may be gaps. `s3s-fs` forbids both.
async fn with_gaps_between_parts(State(folder): State<PathBuf>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let id =
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "uploadId").map(|(_, id)| id.into_owned());
    let Some(id) = id else { return next.run(request).await };
    if !folder.join(format!(".upload-{id}.json")).exists() {
        return StatusCode::NOT_FOUND.into_response();
    }
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST_END).await else { return StatusCode::BAD_REQUEST.into_response() };
    let mut parts = Vec::new();
    for (place, part) in (1..).zip(String::from_utf8_lossy(&body).split("<PartNumber>").skip(1)) {
        let number = part.split('<').next().unwrap_or_default();
        let [from, to] =
            [number, &format!("{place}")].map(|number| folder.join(format!(".upload_id-{id}.part-{number}")));
        if std::fs::rename(from, to).is_err() {
            return StatusCode::BAD_REQUEST.into_response();
        }
        parts.push(format!("<Part><PartNumber>{place}</PartNumber></Part>"));
    }
    let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.concat());
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// The bucket of files at the endpoint `url`, whose requests go through `connector`.
pub fn client(url: &str, connector: SharedHttpConnector) -> Bucket {
    client_of(BUCKET_NAME, url, connector)
}

/// The bucket of batches that the functions on the table's stream gave up, in the same way.
pub fn failed_records(url: &str, connector: SharedHttpConnector) -> KeptObjects {
    KeptObjects::new(client_of(FAILED_RECORDS_NAME, url, connector))
}

fn client_of(name: &str, url: &str, connector: SharedHttpConnector) -> Bucket {
    Bucket::new(&sdk_config(url), name, connector, ATTEMPT)
}

/// The settings of a client for a service of AWS on this machine, at the endpoint `url`.
pub(crate) fn sdk_config(url: &str) -> SdkConfig {
    let credentials = Credentials::new(ACCESS_KEY, ACCESS_KEY, None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("local"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}
