//! `PUT /api/v1/agency/{agency_id}`: changes an agency; absent objects stay, the others are replaced as wholes.

use shared::prelude::*;

pub type UpdateAgency = Update<Agency>;
