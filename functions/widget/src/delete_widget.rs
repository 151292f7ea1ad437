//! `DELETE /api/v1/widget/{widget_id}`: deletes a widget. Deliveries to its connector that are not sent yet are given up.

use shared::prelude::*;

pub type DeleteWidget = Delete<Widget>;
