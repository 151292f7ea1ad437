//! `POST /api/v1/suppression/import`: creates up to 500 suppressions, each as `create-suppression` does. Use it to take
//! over a list from another system. One that fails does not stop the others.

use shared::prelude::*;

pub struct ImportSuppressions;

impl Operation for ImportSuppressions {
    type Path = ();
    type Query = ();
    type Body = NewSuppressions;
    type Reply = Created<ImportedAll<Suppression>>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        suppression::import(cx, request.body).await.map(Created)
    }
}
