//! SHA-256, ids that follow from a hash, and bytes in hexadecimal.

use std::fmt::Write as _;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use uuid::{Builder, Uuid};

/// The SHA-256 of these parts, one after the other.
pub fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; SHA256_OUTPUT_LEN] {
    let mut context = Context::new(&SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    let mut hash = [0; SHA256_OUTPUT_LEN];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// An id that these parts always have, and no other parts.
pub fn uuid_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&sha256(parts)[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// `bytes` in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{hex, sha256};

    #[test]
    fn the_parts_of_a_hash_are_one_text() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sha256([b"abc".as_slice()])), of_abc);
        assert_eq!(hex(&sha256([b"a".as_slice(), b"", b"bc"])), of_abc);
    }
}
