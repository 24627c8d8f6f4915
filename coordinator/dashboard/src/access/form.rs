//! Forms that browsers send: their size, time, type and fields are limited.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, StatusCode, header},
};

use crate::page_error::PageError;

/// The largest form in bytes.
const MAX: usize = 16 * 1024;
/// The largest number of fields.
const MAX_FIELDS: usize = 16;
/// The longest time in which a form arrives.
const PATIENCE: Duration = Duration::from_secs(10);

/// The fields of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form(BTreeMap<String, String>);

impl Form {
    /// Reads a request's form.
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, PageError> {
        let media_type = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
        let is_form = |value: &[u8]| {
            let value = value.split(|byte| *byte == b';').next().unwrap_or_default();
            value
                .trim_ascii()
                .eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        };
        if !media_type.is_some_and(is_form) {
            let message = "only forms of this page are accepted";
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let read = tokio::time::timeout(PATIENCE, to_bytes(body, MAX)).await;
        match read {
            Err(_) => Err(refusal(
                StatusCode::REQUEST_TIMEOUT,
                "the form did not arrive in time",
            )),
            Ok(Err(_)) => Err(refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the form is too large or incomplete",
            )),
            Ok(Ok(bytes)) => Self::parse(&bytes).ok_or_else(|| {
                refusal(
                    StatusCode::BAD_REQUEST,
                    "the form has too many or repeated fields",
                )
            }),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            let is_repeated = fields.insert(name.into_owned(), value.into_owned()).is_some();
            if is_repeated || fields.len() > MAX_FIELDS {
                return None;
            }
        }
        Some(Self(fields))
    }

    /// Returns a field without white space around it, or an empty text.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }
}

fn refusal(status: StatusCode, message: &str) -> PageError {
    PageError {
        status,
        message: message.to_owned(),
        hint: "Go back and send the form again.",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(media_type: Option<&str>, body: Vec<u8>) -> Result<Form, StatusCode> {
        let mut headers = HeaderMap::new();
        if let Some(media_type) = media_type {
            headers.insert(header::CONTENT_TYPE, media_type.parse().unwrap());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let form = runtime.block_on(Form::read(&headers, Body::from(body)));
        form.map_err(|error| error.status)
    }

    #[test]
    fn a_form_has_one_value_for_each_of_a_few_fields() {
        let form = Some("application/x-www-form-urlencoded; charset=UTF-8");
        let good = read(form, b"note=+a%20fan+&token=x".to_vec()).unwrap();
        assert_eq!(
            (good.field("note"), good.field("token"), good.field("csrf")),
            ("a fan", "x", "")
        );
        let many: String = (0..20).map(|number| format!("f{number}=1&")).collect();
        for (media_type, body, status) in [
            (form, b"a=1&a=1".to_vec(), StatusCode::BAD_REQUEST),
            (form, many.into_bytes(), StatusCode::BAD_REQUEST),
            (form, vec![b'a'; MAX + 1], StatusCode::PAYLOAD_TOO_LARGE),
            (None, b"a=1".to_vec(), StatusCode::UNSUPPORTED_MEDIA_TYPE),
            (
                Some("text/plain"),
                b"a=1".to_vec(),
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ),
            (
                Some("multipart/form-data; boundary=x"),
                b"a=1".to_vec(),
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ),
        ] {
            assert_eq!(read(media_type, body), Err(status), "{media_type:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            if let Some(form) = Form::parse(&body) {
                prop_assert!(form.0.len() <= MAX_FIELDS);
            }
        }
    }
}
