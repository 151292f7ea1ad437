//! Invoked by an operator: revokes an API key; a second call changes nothing.

use shared::prelude::operator::*;

pub struct RevokeApiKey;

input! {
    pub struct NamedApiKey {
        pub org_id: OrgId,
        pub id: ApiKeyId,
    }
}

impl OperatorTask for RevokeApiKey {
    const NAME: &'static str = "revoke-api-key";
    type Input = NamedApiKey;
    type Output = ShownApiKey;

    async fn run(cx: &OperatorContext<'_>, input: NamedApiKey) -> Result<ShownApiKey> {
        let now = cx.service.clock.now();
        let key = cx.service.store.revoke_api_key(input.org_id, input.id, now).await.on_missing_in_body("id")?;
        Ok(key.shown(cx.service.config.key_limits))
    }
}
