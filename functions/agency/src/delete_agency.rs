//! `DELETE /api/v1/agency/{agency_id}`: deletes an agency, its billing plans, and its webhook at the payment provider.

use shared::prelude::*;

pub type DeleteAgency = Delete<Agency>;
