//! `POST /api/v1/form`: makes a form.

use shared::prelude::*;

pub type CreateForm = Create<Form>;
