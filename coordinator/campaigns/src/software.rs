//! Compares a device's software with that of the campaign's beginning. Results of two agents or two TensorRTs are not of one campaign.
//! It does not read the device: the device states its software in its hello.

use regatta_types::documents::SoftwareFacts;

/// The digits of a hash that a sentence has.
const SHOWN_DIGITS: usize = 12;

/// The hint for an operator about changed software.
pub(super) const HINT: &str = "hint: install the earlier software and `regatta campaign retry NAME --cause precondition`, or start a campaign \
     for the new one; `software = \"any\"` in a plan allows both";

/// Returns a description of the software's changes since the campaign began.
pub(super) fn change(then: Option<&SoftwareFacts>, now: Option<&SoftwareFacts>) -> String {
    let unknown = SoftwareFacts::default();
    let (then, now) = (then.unwrap_or(&unknown), now.unwrap_or(&unknown));
    let parts = [
        ("agent", short(&then.agent_sha256), short(&now.agent_sha256)),
        ("TensorRT", then.tensorrt.as_deref(), now.tensorrt.as_deref()),
        (
            "ONNX Runtime",
            then.onnxruntime.as_deref(),
            now.onnxruntime.as_deref(),
        ),
        ("JetPack", then.jetpack.as_deref(), now.jetpack.as_deref()),
    ];
    let changes = parts.into_iter().filter(|(_, then, now)| then != now);
    let changes = changes.map(|(what, then, now)| {
        let (then, now) = (then.unwrap_or("unknown"), now.unwrap_or("unknown"));
        format!("its {what} was {then} when the campaign began and is {now} now")
    });
    changes.collect::<Vec<_>>().join(", ")
}

fn short(hash: &Option<String>) -> Option<&str> {
    let hash = hash.as_deref()?;
    Some(hash.get(..SHOWN_DIGITS).unwrap_or(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn software(agent: &str, tensorrt: Option<&str>) -> SoftwareFacts {
        SoftwareFacts {
            agent_sha256: Some(agent.repeat(32)),
            jetpack: Some("6.2".to_owned()),
            tensorrt: tensorrt.map(str::to_owned),
            onnxruntime: None,
        }
    }

    #[test]
    fn each_change_is_named_with_both_values() {
        let then = software("ab", Some("10.3.0"));
        assert_eq!(
            change(Some(&then), Some(&software("cd", None))),
            "its agent was abababababab when the campaign began and is cdcdcdcdcdcd now, \
             its TensorRT was 10.3.0 when the campaign began and is unknown now"
        );
        let upgraded = SoftwareFacts {
            onnxruntime: Some("1.23.2".to_owned()),
            ..then.clone()
        };
        assert_eq!(
            change(Some(&then), Some(&upgraded)),
            "its ONNX Runtime was unknown when the campaign began and is 1.23.2 now"
        );
        let from_older_agent = change(None, Some(&then));
        assert!(
            from_older_agent.starts_with("its agent was unknown when the campaign began and is abab"),
            "{from_older_agent}"
        );
    }
}
