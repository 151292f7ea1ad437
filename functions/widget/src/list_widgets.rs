//! `GET /api/v1/widget`: a page of the organisation's widgets, oldest first. `assistant_id` and `widget_type` select some of them.

use shared::prelude::*;

pub type ListWidgets = List<Widget>;
