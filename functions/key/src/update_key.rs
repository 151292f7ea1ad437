//! `PUT /api/v1/api_key/{api_key_id}`: changes an API key, such as its scopes and its limits. Absent fields keep their
//! values. The role of a key stays as it is. A later `expires_at` makes an expired key valid again.

use shared::prelude::api_keys::*;

pub struct UpdateKey;

impl Operation for UpdateKey {
    type Path = ApiKeyId;
    type Query = ();
    type Body = KeyChanges;
    type Reply = Updated<ShownApiKey>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (caller, now, default) = (cx.caller()?, cx.now(), cx.service.config.key_limits);
        let held = managed_key(cx, request.path).await?;
        let user = request.body.user();
        let after = request.body.applied(caller, &held.record, default, now)?;
        require_user(cx, user).await?;
        let after = cx.table.change_api_key(&held, after).await.on_missing("api_key_id")?;
        Ok(Updated(after.shown(default)))
    }
}
