//! Invoked by an operator: makes an API key, and a new organisation if none is named.

use shared::prelude::operator::*;

pub struct IssueApiKey;

impl OperatorTask for IssueApiKey {
    const NAME: &'static str = "issue-api-key";
    type Input = NewApiKey;
    type Output = IssuedApiKey;

    async fn run(cx: &OperatorContext<'_>, input: NewApiKey) -> Result<IssuedApiKey> {
        let (now, key) = (cx.service.clock.now(), ApiKey::of_secret(cx.service.ids.secret()?));
        let org = input.org_id.unwrap_or_else(|| cx.service.ids.fresh(now).into());
        let (id, limits) = (cx.service.ids.fresh(now).into(), cx.service.config.key_limits);
        let record = ApiKeyRecord::new(id, org, &key, input, limits, now)?;
        cx.service.store.add_api_key(&key.hash(), &record).await?;
        Ok(IssuedApiKey { api_key: key.expose().to_owned().into(), key: record.shown(limits) })
    }
}
