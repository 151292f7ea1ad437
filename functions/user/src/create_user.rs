//! `POST /api/v1/user`: adds a user.

use shared::prelude::*;

pub type CreateUser = Create<User>;
