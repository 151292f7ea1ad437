//! Invoked by an operator: lists the API keys of an organisation, by their prefixes, with their limits.

use shared::prelude::operator::*;

pub struct ListApiKeys;

input! {
    pub struct ListedOrganisation {
        pub org_id: OrgId,
    }
}

impl OperatorTask for ListApiKeys {
    const NAME: &'static str = "list-api-keys";
    type Input = ListedOrganisation;
    type Output = Vec<ShownApiKey>;

    async fn run(cx: &OperatorContext<'_>, input: ListedOrganisation) -> Result<Vec<ShownApiKey>> {
        let keys = cx.service.store.api_keys_of(input.org_id).await?;
        Ok(keys.into_iter().map(|key| key.shown(cx.service.config.key_limits)).collect())
    }
}
