//! The envelope of every success: `message`, `meta`, `data`, in this order.

use serde::Serialize;
use serde_json::{Value, json};

use crate::request::error::{Error, Result};
use crate::request::page::Page;
use crate::values::schema::{Member, Schema, object};

/// What a handler answers: the data, and the fixed text that goes with what was done.
pub trait Reply: Send {
    /// What `data` is.
    type Data: Serialize + Schema;

    /// The fixed text.
    fn message(&self) -> &'static str;

    /// The data.
    fn data(&self) -> &Self::Data;
}

macro_rules! replies {
    ($($(#[doc = $doc:literal])* $Name:ident $message:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug)]
            pub struct $Name<T>(pub T);

            impl<T: Serialize + Schema + Send> Reply for $Name<T> {
                type Data = T;

                fn message(&self) -> &'static str {
                    $message
                }

                fn data(&self) -> &T {
                    &self.0
                }
            }
        )*
    };
}

replies! {
    /// Something was made.
    Created "Data created successfully";
    /// Something was removed; the data is what it was.
    Deleted "Data deleted successfully";
    /// Something changed.
    Updated "Data updated successfully";
    /// One record was read.
    Retrieved "Data retrieved successfully";
}

impl<R: Serialize + Schema + Send> Reply for Page<R> {
    type Data = Self;

    fn message(&self) -> &'static str {
        ""
    }

    fn data(&self) -> &Self {
        self
    }
}

/// One of two replies that have the same data.
#[derive(Debug)]
pub enum Either<A, B> {
    /// The one.
    First(A),
    /// The other.
    Second(B),
}

impl<A: Reply, B: Reply<Data = A::Data>> Reply for Either<A, B> {
    type Data = A::Data;

    fn message(&self) -> &'static str {
        match self {
            Self::First(reply) => reply.message(),
            Self::Second(reply) => reply.message(),
        }
    }

    fn data(&self) -> &A::Data {
        match self {
            Self::First(reply) => reply.data(),
            Self::Second(reply) => reply.data(),
        }
    }
}

/// What a request is answered, before the gateway's headers are put on. It does not print itself: the body may tell a secret.
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: String,
    /// The header that goes with a failure, if one does.
    pub header: Option<(&'static str, &'static str)>,
    /// Why it failed, for the log.
    pub cause: Option<String>,
}

impl Response {
    /// An answer with nothing but status and body.
    pub const fn new(status: u16, body: String) -> Self {
        Self { status, body, header: None, cause: None }
    }
}

impl From<Error> for Response {
    fn from(error: Error) -> Self {
        let (status, header, cause) = (error.status(), error.header(), Some(error.to_string()));
        Self { status, body: serde_json::to_string(&error.detail()).unwrap_or_default(), header, cause }
    }
}

/// The envelope around `reply`, as JSON.
///
/// # Errors
/// [`Error::Internal`] where the data cannot be printed, which no record of ours does.
pub fn envelope<R: Reply>(reply: &R) -> Result<String> {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        message: &'static str,
        meta: Empty,
        data: &'a T,
    }
    #[derive(Serialize)]
    struct Empty {}
    let envelope = Envelope { message: reply.message(), meta: Empty {}, data: reply.data() };
    serde_json::to_string(&envelope).map_err(|error| Error::Internal(error.to_string()))
}

/// The JSON schema of the envelope around `R`'s data.
pub fn envelope_schema<R: Reply>() -> Value {
    let members = [("message", String::schema()), ("meta", json!({"type": "object"})), ("data", R::Data::schema())];
    object(members.into_iter().map(|(name, schema)| Member { name, required: true, schema }).collect())
}
