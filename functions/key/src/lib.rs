//! The operations of the record `key`. Written by `cargo generate`.

mod create_key;
mod list_keys;
mod revoke_key;
mod rotate_key;
mod update_key;

pub use create_key::CreateKey;
pub use list_keys::ListKeys;
pub use revoke_key::RevokeKey;
pub use rotate_key::RotateKey;
pub use update_key::UpdateKey;
