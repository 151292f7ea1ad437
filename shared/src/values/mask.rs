//! Which texts are secrets, and the form in which a secret is shown.

use std::borrow::Cow;

/// The ends of the names of secrets, in lower case and without marks such as `_`. A name that only contains such a word,
/// such as `token_endpoint`, is no name of a secret.
const NAMES: [&str; 10] = [
    "secret",
    "secrets",
    "secretkey",
    "accesskey",
    "privatekey",
    "apikey",
    "apikeys",
    "token",
    "password",
    "passwords",
];

/// The beginnings of secrets, each with the least number of characters that follow in a secret. Shorter words with the
/// same beginning exist, such as the language `sk_SK`.
const FORMS: [(&str, usize); 5] = [("sk_", 5), ("rk_", 5), ("whsec_", 1), ("Bearer ", 16), ("in-", 40)];

/// Characters of a secret that are shown: the first ones, which show its purpose, and the last ones, which identify it.
const SHOWN: (usize, usize) = (7, 4);
/// The least number of characters of a secret of which anything is shown.
const LONG: usize = 20;
/// Replaces the hidden part of a secret.
pub const MASK: &str = "…";

/// Whether a value called `name` is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(|character| character.is_alphanumeric());
    let name: String = letters.flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|end| name.ends_with(end))
}

/// Whether `text` contains a word in the form of a secret.
pub fn has_secret_form(text: &str) -> bool {
    let in_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    FORMS.iter().any(|(beginning, least)| {
        text.match_indices(beginning).any(|(at, _)| {
            let begins = !text[..at].ends_with(in_word);
            begins
                && text[at + beginning.len()..].chars().take_while(|next| in_word(*next)).take(*least).count() == *least
        })
    })
}

/// `secret` in the form that is shown. A short one is hidden completely; an empty one and a masked one stay as they are.
pub fn mask(secret: &str) -> Cow<'_, str> {
    if secret.is_empty() || is_masked(secret) {
        return Cow::Borrowed(secret);
    }
    let characters: Vec<char> = secret.chars().collect();
    if characters.len() < LONG {
        return Cow::Borrowed(MASK);
    }
    let [first, last] = [&characters[..SHOWN.0], &characters[characters.len() - SHOWN.1..]].map(String::from_iter);
    Cow::Owned(format!("{first}{MASK}{last}"))
}

/// Whether `text` has the form that [`mask`] gives a secret.
pub fn is_masked(text: &str) -> bool {
    text.split_once(MASK)
        .is_some_and(|(first, last)| [(0, 0), SHOWN].contains(&(first.chars().count(), last.chars().count())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_name_shows_a_secret() {
        for name in [
            "secret",
            "client_secret",
            "clientSecret",
            "stripe-secret-key",
            "api_key",
            "apiKey",
            "API_KEYS",
            "token",
            "access_token",
            "PASSWORD",
            "smtp.password",
            "aws_secret_access_key",
            "private_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["", "name", "token_endpoint", "max_tokens", "password_policy", "api_key_id", "secretary", "key", "tokens"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_word_in_the_form_of_a_secret_is_found() {
        let own = format!("in-{}", "a-_9".repeat(10));
        for text in [
            "sk_live_1",
            "rk_test_1",
            "whsec_a",
            "say whsec_abc",
            "key=sk_test_1",
            "\"sk_test_1\"",
            &own,
            "Bearer 0123456789abcdef",
        ] {
            assert!(has_secret_form(text), "{text}");
        }
        for text in [
            "",
            "sk_SK",
            "sk_",
            "risk_levels",
            "pk_live_1234",
            "in-house design",
            "Bearer of news",
            "whsec_",
            &own[1..],
        ] {
            assert!(!has_secret_form(text), "{text}");
        }
    }

    #[test]
    fn only_a_long_secret_shows_its_ends() {
        for (secret, shown) in [
            ("", ""),
            ("a", "…"),
            ("0123456789abcdefghi", "…"),
            ("0123456789abcdefghij", "0123456…ghij"),
            ("ééééééééééééééééééé", "…"),
            ("sk_live…abcd", "sk_live…abcd"),
            ("…", "…"),
            ("an…other", "…"),
        ] {
            assert_eq!(mask(secret), shown, "{secret}");
            assert_eq!(mask(&mask(secret)), shown, "{secret}");
        }
    }
}
