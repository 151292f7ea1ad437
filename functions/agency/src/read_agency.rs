//! `GET /api/v1/agency/{agency_id}`: one agency.

use shared::prelude::*;

pub type ReadAgency = Read<Agency>;
