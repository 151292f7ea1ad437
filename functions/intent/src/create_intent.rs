//! `POST /api/v1/intent`: makes an intent.

use shared::prelude::*;

pub type CreateIntent = Create<Intent>;
