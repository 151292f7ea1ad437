//! `GET /api/v1/llm_model`: the catalogue of language models: who offers each, and whether it is still offered. Use it
//! to choose the `llm_model` of an assistant, which takes all of them.

use shared::prelude::*;

pub struct ListLlmModels;

impl Operation for ListLlmModels {
    type Path = ();
    type Query = ();
    type Body = ();
    type Reply = Retrieved<LlmModelList>;

    async fn handle(_: &Context<'_>, _: Request<Self>) -> Result<Self::Reply> {
        Ok(Retrieved(LlmModelList::all()))
    }
}
