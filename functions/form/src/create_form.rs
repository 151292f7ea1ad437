//! `POST /api/v1/form`: creates a form that an assistant can offer.

use shared::prelude::*;

pub type CreateForm = Create<Form>;
