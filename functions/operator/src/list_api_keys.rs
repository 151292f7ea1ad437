//! Invoked by an operator: lists the API keys of an organisation, by their prefixes.

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
    type Output = Vec<ApiKeyRecord>;

    async fn run(cx: &OperatorContext<'_>, input: ListedOrganisation) -> Result<Vec<ApiKeyRecord>> {
        Ok(cx.service.store.api_keys_of(input.org_id).await?)
    }
}
