//! `POST /api/v1/assistant`: creates an assistant. Begin with it: a conversation needs an assistant. If the user of the
//! API key has a billing plan, the assistant counts for this user.

use shared::prelude::*;

pub struct CreateAssistant;

impl Operation for CreateAssistant {
    type Path = ();
    type Query = ();
    type Body = New<Assistant>;
    type Reply = Created<Assistant>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let mut new = request.body.checked(cx.tenant.org(), Uuid::nil())?;
        let (user, metering) = usage::of_assistant(cx).await?.unzip();
        new.metered_user_id = user;
        Ok(Created(Create::insert_metered(cx, cx.new_row(()), new, metering).await?))
    }
}
