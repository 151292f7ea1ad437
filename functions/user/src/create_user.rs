//! `POST /api/v1/user`: creates a user of the organisation.

use shared::prelude::*;

pub type CreateUser = Create<User>;
