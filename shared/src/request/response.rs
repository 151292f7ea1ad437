//! The envelope of every success: `message`, `meta`, `data`, in this order.

use serde::Serialize;
use serde_json::{Value, json};

use crate::request::error::{Error, Result};
use crate::request::page::Page;
use crate::values::schema::{Member, Schema, object};

/// What a handler answers: the data, and a fixed message.
pub trait Reply: Send {
    /// What `data` is.
    type Data: Serialize + Schema;

    /// The fixed message.
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
    /// A record was created.
    Created "Data created successfully";
    /// A record was deleted; the data is the record before.
    Deleted "Data deleted successfully";
    /// A record was updated.
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

/// One of two replies with the same kind of data.
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

/// The answer to a request, before the gateway's headers are added. It has no `Debug`: the body may contain a secret.
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: String,
    /// The header of a failure, if it has one.
    pub header: Option<(&'static str, &'static str)>,
    /// Why it failed, for the log.
    pub cause: Option<String>,
}

impl Response {
    /// An answer with a status and a body only.
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
/// [`Error::Internal`] where the data cannot be printed. Every record can be.
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
