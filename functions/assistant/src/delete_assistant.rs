//! `DELETE /api/v1/assistant/{assistant_id}`: deletes an assistant and its links to data sources, intents and tags.

use shared::prelude::*;

pub type DeleteAssistant = Delete<Assistant>;
