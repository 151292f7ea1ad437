//! `POST /api/v1/agency`: creates an agency: a reseller with its branding, domains and billing plans. To take payments, set up its webhook afterwards.

use shared::prelude::*;

pub type CreateAgency = Create<Agency>;
