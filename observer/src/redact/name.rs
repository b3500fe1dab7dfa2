//! Names whose values are secrets.

/// What the last word of such a name is.
const LAST: [&str; 21] = [
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pin",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "secrets",
    "token",
    "accesskey",
];

/// A key is a secret after one of these words.
const KEYS: [&str; 14] = [
    "access",
    "account",
    "api",
    "auth",
    "deploy",
    "encryption",
    "license",
    "master",
    "private",
    "secret",
    "service",
    "shared",
    "signing",
    "ssh",
];

/// A token is none after one of these words: it says how far something has come.
const PLAIN_TOKENS: [&str; 14] = [
    "cancel",
    "cancellation",
    "continuation",
    "continue",
    "end",
    "max",
    "next",
    "page",
    "prev",
    "previous",
    "progress",
    "resume",
    "start",
    "sync",
];

/// Whether the value of something of this name is a secret: `api_key`, `X-Api-Key`, `apiKey`,
/// `GITHUB_TOKEN`, and not `progressToken`.
pub(super) fn is_secret(name: &str) -> bool {
    let [before, last] = last_words(name);
    let before = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(before));
    if last.eq_ignore_ascii_case("key") {
        before(&KEYS)
    } else if last.eq_ignore_ascii_case("token") {
        !before(&PLAIN_TOKENS)
    } else {
        LAST.iter().any(|word| word.eq_ignore_ascii_case(last))
    }
}

/// A name without what spellings differ in.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .filter(|char| char.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// `Api` and `Key` of `xApi-Key`; nothing where there are fewer words.
fn last_words(name: &str) -> [&str; 2] {
    let mut words = [""; 2];
    // Where the word at hand began, and whether a capital would begin another.
    let (mut start, mut lower) = (None, false);
    for (at, char) in name.char_indices() {
        if let Some(from) = start
            && (lower && char.is_uppercase() || !char.is_alphanumeric())
        {
            words = [words[1], &name[from..at]];
            start = None;
        }
        if char.is_alphanumeric() {
            start.get_or_insert(at);
            lower = char.is_lowercase() || char.is_numeric();
        }
    }
    if let Some(from) = start {
        words = [words[1], &name[from..]];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_usual_names() {
        for name in [
            "token",
            "GITHUB_TOKEN",
            "accessToken",
            "api_key",
            "X-Api-Key",
            "apiKey",
            "APIKEY",
            "Authorization",
            "proxy-authorization",
            "Set-Cookie",
            "client_secret",
            "clientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "passwd",
            "privateKey",
            "credentials",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "",
            "progressToken",
            "nextPageToken",
            "maxTokens",
            "max_tokens",
            "key",
            "sortKey",
            "primary_key",
            "tokenizer",
            "secretary",
            "author",
            "passwordless",
            "cancellation_token",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
