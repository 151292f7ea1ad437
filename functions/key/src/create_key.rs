//! `POST /api/v1/api_key`: makes an API key, which may do no more than the key that makes it. Use it to give each
//! program a key of its own. The answer has the key itself, this once.

use shared::prelude::api_keys::*;

pub struct CreateKey;

impl Operation for CreateKey {
    type Path = ();
    type Query = ();
    type Body = NewKey;
    type Reply = Created<IssuedApiKey>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (caller, now, default) = (cx.caller()?, cx.now(), cx.service.config.key_limits);
        let (id, key) = (cx.new_id(), ApiKey::of_secret(cx.secret()?));
        let user = request.body.user_id;
        let record = request.body.record(caller, id, &key, default, now)?;
        require_user(cx, user).await?;
        require_room(&cx.table.api_keys().await?, id, None, now)?;
        let made = StoredApiKey { hash: key.hash(), record };
        cx.table.issue_api_key(cx.origin(id.0), &made, None).await?;
        Ok(Created(IssuedApiKey { api_key: key.expose().to_owned().into(), key: made.record.shown(default) }))
    }
}
