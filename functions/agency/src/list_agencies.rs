//! `GET /api/v1/agency`: a page of the agencies.

use shared::prelude::*;

pub type ListAgencies = List<Agency>;
