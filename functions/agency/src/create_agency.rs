//! `POST /api/v1/agency`: makes an agency.

use shared::prelude::*;

pub type CreateAgency = Create<Agency>;
