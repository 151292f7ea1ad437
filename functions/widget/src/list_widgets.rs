//! `GET /api/v1/widget`: a page of the widgets; the query can filter them by assistant and channel.

use shared::prelude::*;

pub type ListWidgets = List<Widget>;
