//! `DELETE /api/v1/agency/{agency_id}`: removes an agency.

use shared::prelude::*;

pub type DeleteAgency = Delete<Agency>;
