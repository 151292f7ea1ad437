//! `POST /api/v1/widget`: creates a widget: a channel through which an assistant talks to contacts. Messages and calls need its `connector_url`.

use shared::prelude::*;

pub type CreateWidget = Create<Widget>;
