//! `POST /api/v1/campaign/run/{widget_id}`: queues a message or a call to each of a list of contacts.

use shared::prelude::*;

pub struct RunCampaign;

impl Operation for RunCampaign {
    type Path = WidgetId;
    type Query = ();
    type Body = NewCampaign;
    type Reply = Created<CampaignRun>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let (widget, body, now) = (request.path, request.body, cx.now());
        let same = cx.recognised_by(body.fingerprint(widget), SAME_RUN);
        let contacts = body.contact_ids.distinct();
        let found = cx.table.campaign_preconditions(widget, same, &contacts, now).await.on_missing("widget_id")?;
        if let Earlier::Counts(earlier) = found.earlier {
            return Ok(Created(earlier.into()));
        }
        body.require_contacts(&found.missing)?;
        let id = RunId::fresh(cx.new_attempt()).campaign();
        let campaign = Campaign::queued(id, &found.widget, &body, contacts.len(), now)?;
        // Nothing refers to the staged contacts yet: if the process dies here, nothing is sent, and a repeat stages its own. The commit makes
        // all of them count at once, unless the same request was committed before. Each attempt has its own contacts, so a late write of a
        // dead attempt cannot set a sent contact back to queued.
        let contacts = CampaignContact::all_queued(&campaign, &contacts);
        let place = cx.table.stage_campaign(&campaign, &contacts, same.origin(now)).await?;
        Ok(Created(cx.table.commit_campaign((&campaign, place), same, &found.earlier, now).await?.into()))
    }
}
