//! KServe's inference protocol, version 2, over HTTP with its extensions for binary tensors and for shared memory: what a server says about a network,
//! the head of a request, and the outputs of a response. Bounded on hostile input.

use std::ops::Range;

use serde_json::Value;

use super::answer::beginning;
use crate::tensorrt::convert::Element;

/// A response or a description that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer is not {expected}: {text}")]
pub(super) struct KserveError {
    expected: String,
    text: String,
}

impl KserveError {
    fn new(expected: impl Into<String>, document: &[u8]) -> Self {
        Self {
            expected: expected.into(),
            text: beginning(document),
        }
    }
}

/// An input or output in a network's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TensorDescription {
    pub(super) name: String,
    pub(super) datatype: String,
    /// Dimensions with the batch; -1 for those that are free.
    pub(super) shape: Vec<i64>,
}

/// A network's inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetworkDescription {
    pub(super) inputs: Vec<TensorDescription>,
    pub(super) outputs: Vec<TensorDescription>,
}

impl NetworkDescription {
    /// Parses the description that a server returns at the path of a network.
    pub(super) fn parse(document: &[u8]) -> Result<Self, KserveError> {
        let value: Option<Value> = serde_json::from_slice(document).ok();
        let found = value.as_ref().and_then(|value| {
            let tensors = |key: &str| -> Option<Vec<TensorDescription>> {
                value.get(key)?.as_array()?.iter().map(tensor).collect()
            };
            Some(Self {
                inputs: tensors("inputs")?,
                outputs: tensors("outputs")?,
            })
        });
        found.ok_or_else(|| KserveError::new("a network's description", document))
    }
}

fn tensor(value: &Value) -> Option<TensorDescription> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let shape = value.get("shape")?.as_array()?.iter().map(Value::as_i64);
    Some(TensorDescription {
        name: text("name")?,
        datatype: text("datatype")?,
        shape: shape.collect::<Option<_>>()?,
    })
}

/// Returns the version in a server's description of itself.
pub(super) fn version(document: &[u8]) -> Result<String, KserveError> {
    let value: Option<Value> = serde_json::from_slice(document).ok();
    let version = value.as_ref().and_then(|value| value.get("version")?.as_str());
    version
        .map(str::to_owned)
        .ok_or_else(|| KserveError::new("a server's description", document))
}

/// Returns the most samples of a request, as Triton states them in a network's configuration. `None` if a request has any number.
pub(super) fn max_batch(config: &Value) -> Option<usize> {
    let size = config.get("max_batch_size")?.as_u64()?;
    // A network without a dimension for the batch has 0.
    usize::try_from(size).ok().map(|size| size.max(1))
}

/// Returns the element type with a name of the protocol.
pub(super) fn element(datatype: &str) -> Option<Element> {
    Element::named(&datatype.to_ascii_lowercase())
}

/// Where the bytes of a tensor are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TensorPlace<'a> {
    /// Behind the head of the request or response.
    Body,
    /// At an offset of a registered region of shared memory.
    Region { name: &'a str, offset: usize },
}

/// A tensor in a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestedTensor<'a> {
    pub(super) name: &'a str,
    /// Type and dimensions of an input. `None` for an output.
    pub(super) form: Option<(&'a str, &'a [usize])>,
    pub(super) bytes: usize,
    pub(super) place: TensorPlace<'a>,
}

/// Writes the head of a request for `size` samples.
pub(super) fn write_head<'a>(
    size: usize,
    inputs: impl Iterator<Item = RequestedTensor<'a>>,
    outputs: impl Iterator<Item = RequestedTensor<'a>>,
    head: &mut String,
) {
    head.push_str("{\"inputs\":[");
    write_tensors(size, inputs, head);
    head.push_str("],\"outputs\":[");
    write_tensors(size, outputs, head);
    head.push_str("]}");
}

fn write_tensors<'a>(size: usize, tensors: impl Iterator<Item = RequestedTensor<'a>>, head: &mut String) {
    use std::fmt::Write as _;

    for (number, tensor) in tensors.enumerate() {
        if number > 0 {
            head.push(',');
        }
        // Writing to memory cannot fail, and a text is always JSON.
        let name = serde_json::to_string(tensor.name).unwrap_or_default();
        let _ = write!(head, "{{\"name\":{name}");
        if let Some((datatype, shape)) = tensor.form {
            let _ = write!(head, ",\"datatype\":\"{datatype}\",\"shape\":[{size}");
            for dim in shape {
                let _ = write!(head, ",{dim}");
            }
            head.push(']');
        }
        let bytes = tensor.bytes;
        let _ = match (tensor.place, tensor.form) {
            (TensorPlace::Body, Some(_)) => {
                write!(head, ",\"parameters\":{{\"binary_data_size\":{bytes}}}}}")
            }
            (TensorPlace::Body, None) => write!(head, ",\"parameters\":{{\"binary_data\":true}}}}"),
            (TensorPlace::Region { name, offset }, _) => write!(
                head,
                ",\"parameters\":{{\"shared_memory_region\":\"{name}\",\"shared_memory_offset\":{offset},\
                 \"shared_memory_byte_size\":{bytes}}}}}"
            ),
        };
    }
}

/// An output in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputPart {
    pub(super) element: Element,
    /// Dimensions with the batch.
    pub(super) shape: Vec<usize>,
    /// Its bytes in the response. `None` if they are in shared memory.
    pub(super) bytes: Option<Range<usize>>,
}

/// Returns the outputs with these names in a response, whose head has `head` bytes. Without that number, all of it is the head.
pub(super) fn outputs<'n>(
    response: &[u8],
    head: Option<usize>,
    names: impl Iterator<Item = &'n str>,
) -> Result<Vec<OutputPart>, KserveError> {
    let mut end = head.unwrap_or(response.len());
    let document = response.get(..end);
    let value: Option<Value> = document.and_then(|document| serde_json::from_slice(document).ok());
    let refused = || KserveError::new("an inference response", response);
    let listed = value.as_ref().and_then(|value| value.get("outputs")?.as_array());
    let mut found = Vec::new();
    // Bytes follow in the order of the response, which may not be the requested one.
    for output in listed.ok_or_else(refused)? {
        let part = output_part(output, &mut end).filter(|_| end <= response.len());
        let (name, part) = part.ok_or_else(refused)?;
        found.push((name, part));
    }
    if end != response.len() {
        return Err(refused());
    }
    let named = |name: &str| {
        let part = found.iter().find(|(own, _)| *own == name);
        part.map(|(_, part)| part.clone()).ok_or_else(|| {
            KserveError::new(
                format!("an inference response with the output {name}"),
                &response[..end.min(response.len())],
            )
        })
    };
    names.map(named).collect()
}

/// Returns an output of a response, whose bytes begin at `place`, and moves `place` behind them.
fn output_part<'v>(output: &'v Value, place: &mut usize) -> Option<(&'v str, OutputPart)> {
    let dim = |dim: &Value| dim.as_u64().and_then(|dim| usize::try_from(dim).ok());
    let shape = output
        .get("shape")?
        .as_array()?
        .iter()
        .map(dim)
        .collect::<Option<_>>()?;
    // Only bytes and shared memory are requested. Numbers in the document would be taken for memory that nobody has written.
    if output.get("data").is_some() {
        return None;
    }
    let bytes = match output.pointer("/parameters/binary_data_size") {
        Some(size) => {
            let begin = *place;
            *place = begin.checked_add(usize::try_from(size.as_u64()?).ok()?)?;
            Some(begin..*place)
        }
        None => None,
    };
    let part = OutputPart {
        element: element(output.get("datatype")?.as_str()?)?,
        shape,
        bytes,
    };
    Some((output.get("name")?.as_str()?, part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_written_as_the_protocol_says() {
        let input = RequestedTensor {
            name: "in\"put",
            form: Some(("FP32", &[3, 2])),
            bytes: 48,
            place: TensorPlace::Body,
        };
        let output = RequestedTensor {
            name: "a",
            form: None,
            bytes: 8,
            place: TensorPlace::Region {
                name: "r",
                offset: 48,
            },
        };
        let in_body = RequestedTensor {
            place: TensorPlace::Body,
            ..output
        };
        let mut head = String::new();
        write_head(2, [input].into_iter(), [output, in_body].into_iter(), &mut head);
        let head: Value = serde_json::from_str(&head).unwrap();
        let expected = serde_json::json!({
            "inputs": [{ "name": "in\"put", "datatype": "FP32", "shape": [2, 3, 2], "parameters": { "binary_data_size": 48 } }],
            "outputs": [
                { "name": "a", "parameters": { "shared_memory_region": "r", "shared_memory_offset": 48, "shared_memory_byte_size": 8 } },
                { "name": "a", "parameters": { "binary_data": true } }
            ]
        });
        assert_eq!(head, expected);
    }

    const HEAD: &str = r#"{"outputs":[{"name":"b","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}},
        {"name":"a","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}},{"name":"c","datatype":"INT8","shape":[1,5]}]}"#;

    #[test]
    fn outputs_are_found_by_their_names() {
        let response = [HEAD.as_bytes(), &[1; 8], &[2; 8]].concat();
        let found = outputs(&response, Some(HEAD.len()), ["a", "b", "c"].into_iter()).unwrap();
        let bytes: Vec<_> = found.iter().map(|part| part.bytes.clone()).collect();
        let begin = HEAD.len();
        assert_eq!(bytes, [Some(begin + 8..begin + 16), Some(begin..begin + 8), None]);
        assert_eq!(
            (found[0].element, &found[0].shape[..]),
            (Element::Fp32, &[1, 2][..])
        );
        let missing = outputs(&response, Some(HEAD.len()), ["d"].into_iter()).unwrap_err();
        assert!(
            missing.to_string().contains("with the output d: {\"outputs\""),
            "{missing}"
        );
        // The bytes end early.
        assert!(outputs(&response[..begin + 15], Some(begin), ["a"].into_iter()).is_err());
        for text in [
            "",
            "hello",
            "{}",
            r#"{"outputs":[{"name":"a","datatype":"BYTES","shape":[1]}]}"#,
        ] {
            let error = outputs(text.as_bytes(), None, ["a"].into_iter())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("the server's answer is not an inference response"),
                "{error}"
            );
        }
        let huge = HEAD.replace(
            "\"binary_data_size\":8",
            "\"binary_data_size\":18446744073709551615",
        );
        assert!(outputs(huge.as_bytes(), Some(huge.len()), ["a"].into_iter()).is_err());
    }

    #[test]
    fn networks_are_described() {
        let text =
            r#"{"name":"network","inputs":[{"name":"x","datatype":"FP32","shape":[-1,3]}],"outputs":[]}"#;
        let found = NetworkDescription::parse(text.as_bytes()).unwrap();
        assert_eq!(found.inputs[0].shape, [-1, 3]);
        for text in ["", "[]", r#"{"inputs":[{}],"outputs":[]}"#, r#"{"inputs":[]}"#] {
            assert!(NetworkDescription::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(
            version(br#"{"name":"triton","version":"2.51.0"}"#).unwrap(),
            "2.51.0"
        );
        assert!(version(b"{}").is_err());
    }

    proptest! {
        #[test]
        fn hostile_responses_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), head in proptest::option::of(0_usize..80)) {
            let _ = outputs(&bytes, head, ["a"].into_iter());
            let _ = NetworkDescription::parse(&bytes);
        }

        #[test]
        fn changed_responses_stay_within_their_bytes(place in 0..HEAD.len(), byte in any::<u8>(), cut in 0_usize..32) {
            let mut response = [HEAD.as_bytes(), &[1; 16]].concat();
            response[place] = byte;
            response.truncate(response.len() - cut);
            if let Ok(found) = outputs(&response, Some(HEAD.len()), ["a", "b"].into_iter()) {
                for part in found {
                    prop_assert!(part.bytes.is_none_or(|bytes| response.get(bytes).is_some()));
                }
            }
        }
    }
}
