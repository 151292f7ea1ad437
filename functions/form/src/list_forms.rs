//! `GET /api/v1/form/list`: a page of the organisation's forms, oldest first.

use shared::prelude::*;

pub type ListForms = List<Form>;
