//! `GET /api/v1/widget/{widget_id}`: one widget.

use shared::prelude::*;

pub type ReadWidget = Read<Widget>;
