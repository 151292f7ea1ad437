//! The envelope of every success: `message`, `meta`, `data`, in this order.

use serde::Serialize;
use serde_json::{Value, json};

use crate::input::schema::{Member, Schema, object, titled};
use crate::request::error::{Error, Result};
use crate::request::limit::headers;
use crate::table::page::Page;
use crate::values::limits::Limits;

/// The reply of a handler: the data, and a fixed message.
pub trait Reply: Send {
    /// The type of `data`.
    type Data: Serialize + Schema;

    /// The fixed message.
    fn message(&self) -> &'static str;

    /// The data.
    fn data(&self) -> &Self::Data;

    /// The status, if it may differ from the one of the route.
    fn status(&self) -> Option<u16> {
        None
    }
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

/// A record was created, or an existing one was updated: 201 or 200.
#[derive(Debug)]
pub enum Upserted<T> {
    /// It is new.
    Created(T),
    /// It existed.
    Updated(T),
}

impl<T: Serialize + Schema + Send> Reply for Upserted<T> {
    type Data = T;

    fn message(&self) -> &'static str {
        match self {
            Self::Created(_) => "Data created successfully",
            Self::Updated(_) => "Data updated successfully",
        }
    }

    fn data(&self) -> &T {
        match self {
            Self::Created(record) | Self::Updated(record) => record,
        }
    }

    fn status(&self) -> Option<u16> {
        Some(match self {
            Self::Created(_) => 201,
            Self::Updated(_) => 200,
        })
    }
}

/// One of two replies with the same kind of data.
#[derive(Debug)]
pub enum Either<A, B> {
    /// The first kind.
    First(A),
    /// The second kind.
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
    /// The headers in addition to the ones that every answer has.
    pub headers: Vec<(&'static str, String)>,
    /// Why it failed, for the log.
    pub cause: Option<String>,
}

impl Response {
    /// An answer with a status and a body only.
    pub const fn new(status: u16, body: String) -> Self {
        Self { status, body, headers: Vec::new(), cause: None }
    }

    /// The same with the headers of the key's limits, if it is a success. A failure has them only if the limits are its
    /// cause.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Self {
        if self.status < 300 {
            self.headers.push((headers::POLICY, headers::policy(limits)));
        }
        self
    }
}

impl From<Error> for Response {
    fn from(error: Error) -> Self {
        let (status, headers, cause) = (error.status(), error.headers(), Some(error.to_string()));
        Self { status, body: serde_json::to_string(&error.detail()).unwrap_or_default(), headers, cause }
    }
}

/// The reply of a handler, as JSON.
pub struct Success {
    /// The status, if it differs from the one of the route.
    pub status: Option<u16>,
    /// The envelope.
    pub body: String,
}

impl Success {
    /// The success of `reply`.
    ///
    /// # Errors
    /// The same as for [`envelope`].
    pub fn of<R: Reply>(reply: &R) -> Result<Self> {
        Ok(Self { status: reply.status(), body: envelope(reply)? })
    }

    /// The answer, with the status of the route if the reply has none of its own.
    pub fn with(self, status: u16) -> Response {
        Response::new(self.status.unwrap_or(status), self.body)
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
    let data = R::Data::schema();
    let name = format!("{}Answer", data["title"].as_str().unwrap_or_default());
    let members = [
        ("message", String::schema()),
        ("meta", json!({"type": "object", "additionalProperties": true})),
        ("data", data),
    ];
    let members = members.into_iter().map(|(name, schema)| Member { name, required: true, schema });
    titled(object(members.collect()), &name, "The answer to a request that succeeded.")
}
