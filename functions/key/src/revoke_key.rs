//! `DELETE /api/v1/api_key/{api_key_id}`: revokes an API key. Use it at once if others may know the key. It stops
//! within 5 seconds, and is listed no longer. A request cannot revoke the key that it is sent with.

use shared::prelude::api_keys::*;

pub struct RevokeKey;

impl Operation for RevokeKey {
    type Path = ApiKeyId;
    type Query = ();
    type Body = ();
    type Reply = Deleted<ShownApiKey>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        require_other(cx.caller()?, request.path)?;
        let held = managed_key(cx, request.path).await?;
        cx.table.remove_api_key(&held).await.on_missing("api_key_id")?;
        let revoked_at = held.record.revoked_at.or(Some(cx.now()));
        let revoked = ApiKeyRecord { revoked_at, ..held.record };
        Ok(Deleted(revoked.shown(cx.service.config.key_limits)))
    }
}
