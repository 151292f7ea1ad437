//! `PUT /api/v1/agency/{agency_id}`: changes an agency. Absent objects stay as they are; each given object replaces the whole stored one.

use shared::prelude::*;

pub type UpdateAgency = Update<Agency>;
