//! `PUT /api/v1/assistant/{assistant_id}`: changes an assistant; absent fields keep their values.

use shared::prelude::*;

pub type UpdateAssistant = Update<Assistant>;
