//! `POST /api/v1/api_key/{api_key_id}/rotate`: makes a new API key that may do the same as an old one. Use it to change
//! a key while programs use it. The old one is valid for a day more, or for `overlap_seconds`. The answer has the new
//! key itself, this once.

use shared::prelude::api_keys::*;

pub struct RotateKey;

impl Operation for RotateKey {
    type Path = ApiKeyId;
    type Query = ();
    type Body = OptionalBody<Rotation>;
    type Reply = Updated<RotatedKey>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (now, default, old_id) = (cx.now(), cx.service.config.key_limits, request.path);
        let (id, key) = (cx.new_id(), ApiKey::of_secret(cx.secret()?));
        let (old, listed) = managed_key_of_all(cx, old_id).await?;
        let until = Rotation::end_of(request.body, now);
        let replaced = old.record.clone().ending(until);
        // Only an earlier attempt of the same request has made a key with this id.
        let record = if let Some(made) = listed.iter().find(|key| key.id == id) {
            made.clone()
        } else {
            require_valid(&old.record, now)?;
            require_room(&listed, id, (until == now).then_some(old_id), now)?;
            let new = StoredApiKey { hash: key.hash(), record: old.record.successor(id, &key, now) };
            let made = cx.table.issue_api_key(cx.origin(id.0), &new, Some((&old, &replaced))).await;
            made.on_missing("api_key_id").map(|()| new.record)?
        };
        let new = IssuedApiKey { api_key: key.expose().to_owned().into(), key: record.shown(default) };
        Ok(Updated(RotatedKey { new, replaced: replaced.shown(default) }))
    }
}
