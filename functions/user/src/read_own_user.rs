//! `GET /api/v1/user`: reads the user for whom the API key works. A key without a user is answered 404.

use shared::prelude::*;

pub struct ReadOwnUser;

impl Operation for ReadOwnUser {
    type Path = ();
    type Query = ();
    type Body = ();
    type Reply = Retrieved<User>;

    async fn handle(cx: &Context<'_>, _: Request<Self>) -> Result<Self::Reply> {
        let missing = || Error::NotFound(Location::query().name("api_key"));
        // The user may be deleted by now.
        let user = cx.table.find::<User>(cx.user().ok_or_else(missing)?).await?.ok_or_else(missing)?;
        Ok(Retrieved(cx.shown(user)))
    }
}
