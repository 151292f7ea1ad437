//! Creates a record.

use std::marker::PhantomData;

use crate::input::Input;
use crate::operations::new::New;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Created;
use crate::table::declaration::MadeOfBody;
use crate::table::metering::Metering;
use crate::table::rows::NewRow;
use crate::table::stored::{Listed, Of};

/// Creates an `R`. The parent that the path names must exist, and so must the records that the body names. Addresses
/// must be public.
#[derive(Debug)]
pub struct Create<R>(PhantomData<R>);

impl<R: Listed + MadeOfBody> Operation for Create<R>
where
    R::Of: Input,
{
    type Path = R::Of;
    type Query = ();
    type Body = New<R>;
    type Reply = Created<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let new = request.body.checked(cx.tenant.org(), request.path.id())?;
        Ok(Created(Self::insert(cx, request.path, new).await?.shown()))
    }
}

impl<R: Listed> Create<R> {
    /// Inserts `new` into the list of `of`, for an operation that does more than create a record.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::request::error::Error::NotFound) where the parent that the path names is missing.
    pub async fn insert(cx: &Context<'_>, of: R::Of, new: R) -> Result<R> {
        Self::insert_metered(cx, cx.new_row(of), new, None).await
    }

    /// The same as the row `at`, and counts it for a user.
    ///
    /// # Errors
    /// The same, and [`Error::QuotaExceeded`](crate::request::error::Error::QuotaExceeded).
    pub async fn insert_metered(cx: &Context<'_>, at: NewRow<R::Of>, new: R, metering: Option<Metering>) -> Result<R> {
        let (org, now) = (cx.tenant.org(), cx.now());
        cx.require_public(&new.addresses()).await?;
        let make = |id| new.clone().begun(R::proof(id).unwrap_or_default(), org, at.of.id(), now);
        cx.table.insert_metered(at, metering, make).await.on_missing(R::Of::PARAMETER)
    }
}
