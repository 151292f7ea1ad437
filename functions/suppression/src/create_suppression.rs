//! `POST /api/v1/suppression`: suppresses a telephone number or an e-mail address. Use it for a person who wants no
//! more messages or calls. One that is suppressed already keeps its suppression, which gets the further channel.

use shared::prelude::*;

pub struct CreateSuppression;

impl Operation for CreateSuppression {
    type Path = ();
    type Query = ();
    type Body = NewSuppression;
    type Reply = Upserted<Suppression>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        suppression::create(cx, request.body.checked(cx.tenant.org())?).await
    }
}
