//! Invoked by an operator: changes an API key: its limits, of which null is the default of the deployment, and whether its answers leave out nulls.

use shared::prelude::operator::*;

pub struct UpdateApiKey;

impl OperatorTask for UpdateApiKey {
    const NAME: &'static str = "update-api-key";
    type Input = ApiKeyChanges;
    type Output = ShownApiKey;

    async fn run(cx: &OperatorContext<'_>, input: ApiKeyChanges) -> Result<ShownApiKey> {
        let default = cx.service.config.key_limits;
        Ok(cx.service.store.update_api_key(&input, default).await?.shown(default))
    }
}
