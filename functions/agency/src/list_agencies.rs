//! `GET /api/v1/agency`: a page of the organisation's agencies, oldest first.

use shared::prelude::*;

pub type ListAgencies = List<Agency>;
