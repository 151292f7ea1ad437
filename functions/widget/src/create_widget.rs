//! `POST /api/v1/widget`: makes a widget.

use shared::prelude::*;

pub type CreateWidget = Create<Widget>;
