//! Invoked by an operator: what an organisation has of each quota, and the limit.

use shared::prelude::operator::*;

pub struct GetOrganisationUse;

input! {
    pub struct UseOf {
        pub org_id: OrgId,
    }
}

impl OperatorTask for GetOrganisationUse {
    const NAME: &'static str = "get-organisation-use";
    type Input = UseOf;
    type Output = Vec<QuotaUse>;

    async fn run(cx: &OperatorContext<'_>, input: UseOf) -> Result<Vec<QuotaUse>> {
        Ok(cx.service.quota_uses(input.org_id).await?)
    }
}
