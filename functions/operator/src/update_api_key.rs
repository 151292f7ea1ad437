//! Invoked by an operator: sets the limits of an API key; null is the default of the deployment.

use shared::prelude::operator::*;

pub struct UpdateApiKey;

impl OperatorTask for UpdateApiKey {
    const NAME: &'static str = "update-api-key";
    type Input = LimitChanges;
    type Output = ShownApiKey;

    async fn run(cx: &OperatorContext<'_>, input: LimitChanges) -> Result<ShownApiKey> {
        let default = cx.service.config.key_limits;
        Ok(cx.service.store.limit_api_key(&input, default).await?.shown(default))
    }
}
