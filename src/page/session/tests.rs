use super::*;

const NOW: Instant = Instant(1_900_000_000_000);

/// A token with these claims and no valid signature.
fn token(claims: &str) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

fn hours(hours: i64) -> Instant {
    NOW.plus(Span::from_seconds(hours * 3600))
}

#[test]
fn a_session_ends_with_its_token_and_after_eight_hours() {
    let end = |token: &str| Session::begin(token.to_owned(), NOW).ends;
    assert_eq!(end(&token(r#"{"exp": 1900003600}"#)), hours(1));
    assert_eq!(end(&token(r#"{"exp": 1900003600.5}"#)).0, hours(1).0 + 500);
    assert_eq!(end(&token(r#"{"exp": 1899996400}"#)), hours(-1));
    for token in [
        token(r#"{"exp": 1990000000}"#),
        token(r#"{"exp": 1e300}"#),
        token(r#"{"exp": "soon"}"#),
        token("{}"),
        token("no JSON"),
        "opaque".to_owned(),
        "a.!.b".to_owned(),
    ] {
        assert_eq!(end(&token), hours(8), "{token}");
    }
}

#[test]
fn a_cookie_is_opened_by_the_process_that_sealed_it() {
    let (seal, other) = (Seal::new().unwrap(), Seal::new().unwrap());
    let session = Session::begin("opaque".to_owned(), NOW);
    let value = seal.seal(&session).unwrap();
    assert!(seal.open(&value).is_ok_and(|opened| opened == session));
    assert!(other.open(&value).is_err());
    assert_ne!(seal.seal(&session).unwrap(), value, "a nonce is used once");
    assert!(!value.contains("opaque") && !value.contains(&URL_SAFE_NO_PAD.encode("opaque")));
    // Each character counts.
    for at in 0..value.len() {
        let mut tampered = value.clone();
        let other = if &value[at..=at] == "A" { "B" } else { "A" };
        tampered.replace_range(at..=at, other);
        assert!(seal.open(&tampered).is_err(), "at {at}");
    }
    for value in ["", "A", "====", &value[1..], &value[..value.len() - 1]] {
        assert!(seal.open(value).is_err(), "{value}");
    }
}

#[test]
fn a_token_that_no_browser_would_keep_is_not_sealed() {
    let seal = Seal::new().unwrap();
    let sealed = |length: usize| seal.seal(&Session::begin("x".repeat(length), NOW));
    // 12 bytes of nonce, 8 of the end, 16 of the tag; three bytes are four characters.
    let longest = VALUE_MAX / 4 * 3 - 36;
    let value = sealed(longest).unwrap();
    assert!(COOKIE.len() + 1 + value.len() <= 4096);
    assert_eq!(sealed(longest + 4), Err(Unsealed::TooLong));
}

#[test]
fn the_cookie_is_found_among_others() {
    let found = |cookies: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for cookies in cookies {
            let cookies = axum::http::HeaderValue::from_static(cookies);
            headers.append(header::COOKIE, cookies);
        }
        cookie(&headers).map(str::to_owned)
    };
    assert_eq!(
        found(&["a=b; __Host-shed=xyz; c=d"]).as_deref(),
        Some("xyz")
    );
    assert_eq!(found(&["a=b", "__Host-shed=xyz"]).as_deref(), Some("xyz"));
    assert_eq!(
        found(&["shed=xyz; __host-shed=xyz; __Host-shed2=xyz"]),
        None
    );
    assert_eq!(found(&[]), None);
    assert_eq!(
        set_cookie("xyz", 60),
        "__Host-shed=xyz; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Strict"
    );
}
