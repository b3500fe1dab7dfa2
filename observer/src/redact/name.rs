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
    let words = words(name);
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let before = before.last().map_or("", String::as_str);
    match last.as_str() {
        "key" => KEYS.contains(&before),
        "token" => !PLAIN_TOKENS.contains(&before),
        last => LAST.contains(&last),
    }
}

/// A name without what spellings differ in.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .filter(|char| char.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// `xApi-Key` as `x`, `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut joined, mut lower) = (false, false);
    for char in name.chars() {
        if !char.is_alphanumeric() {
            joined = false;
            continue;
        }
        match words
            .last_mut()
            .filter(|_| joined && !(lower && char.is_uppercase()))
        {
            Some(word) => word.extend(char.to_lowercase()),
            None => words.push(char.to_lowercase().collect()),
        }
        (joined, lower) = (true, char.is_lowercase() || char.is_numeric());
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
