//! A self-signed certificate in memory, for clients that do not verify it. It is written in DER by hand (RFC 5280), because
//! it never varies.

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`, for the version.
const VERSION: u8 = 0xa0;
/// `[3]`, for the extensions.
const EXTENSIONS: u8 = 0xa3;
/// `[2]`, for a DNS name.
const DNS_NAME: u8 = 0x82;

/// 1.2.840.10045.4.3.2
const ECDSA_WITH_SHA256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
/// 1.2.840.10045.2.1
const EC_PUBLIC_KEY: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.29.17
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

const NOT_BEFORE: &str = "200101000000Z";
/// It does not expire (RFC 5280, 4.1.2.5): its key is lost with the process.
const NOT_AFTER: &str = "99991231235959Z";

/// A new certificate for this name, and its key.
pub fn certificate(
    name: &str,
) -> anyhow::Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let failed = |error| anyhow::anyhow!("self-signed certificate: {error}");
    let random = SystemRandom::new();
    let unspecified = |_| failed("no random numbers".to_owned());
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(unspecified)?;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
    let key = key.map_err(|error| failed(error.to_string()))?;
    let mut serial = [0; 16];
    random.fill(&mut serial).map_err(unspecified)?;
    let to_sign = to_be_signed(name, serial, key.public_key().as_ref());
    let signature = key.sign(&random, &to_sign).map_err(unspecified)?;
    let certificate = sequence(&[
        &to_sign,
        &algorithm_identifier(),
        &bit_string(signature.as_ref()),
    ]);
    let key = PrivatePkcs8KeyDer::from(document.as_ref().to_vec());
    Ok((certificate.into(), key.into()))
}

fn to_be_signed(dns_name: &str, mut serial: [u8; 16], public_key: &[u8]) -> Vec<u8> {
    // Positive, and without leading zeros.
    serial[0] = serial[0] & 0x7f | 0x40;
    let common_name = sequence(&[
        &der(OID, &COMMON_NAME),
        &der(UTF8_STRING, dns_name.as_bytes()),
    ]);
    let name = sequence(&[&der(SET, &common_name)]);
    let from = der(UTC_TIME, NOT_BEFORE.as_bytes());
    let until = der(GENERALIZED_TIME, NOT_AFTER.as_bytes());
    let key_type = sequence(&[&der(OID, &EC_PUBLIC_KEY), &der(OID, &P256)]);
    let alt_names = sequence(&[&der(DNS_NAME, dns_name.as_bytes())]);
    let alt_names = sequence(&[&der(OID, &SUBJECT_ALT_NAME), &der(OCTET_STRING, &alt_names)]);
    sequence(&[
        &der(VERSION, &der(INTEGER, &[2])),
        &der(INTEGER, &serial),
        &algorithm_identifier(),
        &name,
        &sequence(&[&from, &until]),
        &name,
        &sequence(&[&key_type, &bit_string(public_key)]),
        &der(EXTENSIONS, &sequence(&[&alt_names])),
    ])
}

fn algorithm_identifier() -> Vec<u8> {
    sequence(&[&der(OID, &ECDSA_WITH_SHA256)])
}

fn bit_string(bytes: &[u8]) -> Vec<u8> {
    // No bit of the last byte is unused.
    der(BIT_STRING, &[&[0], bytes].concat())
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    der(SEQUENCE, &parts.concat())
}

/// A value with its tag and its length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let digits = length.to_be_bytes();
    let significant = digits.iter().position(|digit| *digit != 0);
    let digits = &digits[significant.unwrap_or(digits.len() - 1)..];
    let mut value = vec![tag];
    if length >= 0x80 {
        // At most 8 digits.
        value.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
    }
    value.extend_from_slice(digits);
    value.extend_from_slice(content);
    value
}
