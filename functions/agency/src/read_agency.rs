//! `GET /api/v1/agency/{agency_id}`: an agency.

use shared::prelude::*;

pub type ReadAgency = Read<Agency>;
