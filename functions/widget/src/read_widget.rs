//! `GET /api/v1/widget/{widget_id}`: a widget.

use shared::prelude::*;

pub type ReadWidget = Read<Widget>;
