//! `GET /api/v1/form/list`: a page of the forms.

use shared::prelude::*;

pub type ListForms = List<Form>;
