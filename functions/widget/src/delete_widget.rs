//! `DELETE /api/v1/widget/{widget_id}`: removes a widget.

use shared::prelude::*;

pub type DeleteWidget = Delete<Widget>;
