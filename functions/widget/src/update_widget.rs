//! `PUT /api/v1/widget/{widget_id}`: changes a widget; absent fields keep their values.

use shared::prelude::*;

pub type UpdateWidget = Update<Widget>;
