//! The table `transcribe` of a driver: how a server transcribes speech. A request is a form with a WAV file, as OpenAI's interface has it.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;

use super::placeholders::unknown_placeholder;

/// The placeholders of the form's fields.
const IN_FIELDS: &[&str] = &["max_tokens"];
/// What separates the parts of a form. No file contains it by chance.
const BOUNDARY: &str = "regatta-4f1d8c02b7e94a6d93c5a0be61f27788";
/// The bytes of a sample in the file.
const SAMPLE: u32 = 2;
/// The bytes of a WAV file's head behind the size that it begins with.
const HEAD_AFTER_SIZE: u32 = 36;

/// How a server transcribes speech.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Transcribe {
    /// The path that requests are posted to.
    pub(super) path: String,
    /// The fields of the form beside `file`.
    #[serde(default)]
    fields: BTreeMap<String, String>,
    /// The JSON pointer to the transcript.
    pub(super) text: String,
    /// The JSON pointer to the number of generated tokens, if the server states it.
    #[serde(default)]
    pub(super) count: Option<String>,
}

impl Transcribe {
    /// Returns what makes the table unusable.
    pub(super) fn fault(&self) -> Option<String> {
        let mut values = self.fields.values();
        if let Some(unknown) = values.find_map(|value| unknown_placeholder(value, IN_FIELDS)) {
            return Some(unknown);
        }
        let mut names = self.fields.iter();
        let is_text = |text: &str| !text.contains(['"', '\r', '\n']);
        if names.any(|(name, value)| name == "file" || !is_text(name) || !is_text(value)) {
            return Some(
                "`transcribe.fields` has a field `file`, which is the recording, or a quote or line break"
                    .to_owned(),
            );
        }
        let mut pointers = self.count.iter().chain([&self.path, &self.text]);
        let is_valid = pointers.all(|pointer| pointer.starts_with('/'));
        (!is_valid).then(|| "`path`, `text` and `count` of `transcribe` begin with /".to_owned())
    }

    /// Returns the form of a run's requests, for recordings at a sample rate.
    pub(super) fn form(&self, max_tokens: usize, sample_rate: u32) -> RecordingForm {
        let mut before = String::new();
        for (name, value) in &self.fields {
            let value = value.replace("{max_tokens}", &max_tokens.to_string());
            // Writing to memory cannot fail.
            let _ = write!(
                before,
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        let _ = write!(
            before,
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
        );
        RecordingForm { before, sample_rate }
    }
}

/// A form with a recording of speech.
#[derive(Debug, Clone)]
pub(super) struct RecordingForm {
    /// The form before the content of the file.
    before: String,
    sample_rate: u32,
}

impl RecordingForm {
    /// The type of the form.
    pub(super) fn content_type() -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    /// Writes a form with a waveform, whose values are between -1 and 1, as a WAV file of 16-bit samples. Silence follows one that is shorter than a tenth
    /// of a second, which servers refuse.
    pub(super) fn write(&self, waveform: &[f32], body: &mut Vec<u8>) {
        body.clear();
        body.extend_from_slice(self.before.as_bytes());
        let length = waveform.len().max(self.sample_rate as usize / 10);
        let bytes = u32::try_from(length).unwrap_or(u32::MAX).saturating_mul(SAMPLE);
        let rate = self.sample_rate;
        let head: [&[u8]; 12] = [
            b"RIFF",
            &bytes.saturating_add(HEAD_AFTER_SIZE).to_le_bytes(),
            b"WAVEfmt ",
            &16_u32.to_le_bytes(),
            // Integers, of one channel.
            &1_u16.to_le_bytes(),
            &1_u16.to_le_bytes(),
            &rate.to_le_bytes(),
            &rate.saturating_mul(SAMPLE).to_le_bytes(),
            &2_u16.to_le_bytes(),
            &16_u16.to_le_bytes(),
            b"data",
            &bytes.to_le_bytes(),
        ];
        head.iter().for_each(|part| body.extend_from_slice(part));
        for value in waveform.iter().chain(std::iter::repeat(&0.0)).take(length) {
            // Published recordings have 16 bits, and are divided by this number.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a cast of floats stays within the range"
            )]
            let sample = (value * 32768.0).round() as i16;
            body.extend_from_slice(&sample.to_le_bytes());
        }
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Transcribe {
        Transcribe {
            path: "/v1/audio/transcriptions".to_owned(),
            fields: BTreeMap::from([("max_completion_tokens".to_owned(), "{max_tokens}".to_owned())]),
            text: "/text".to_owned(),
            count: None,
        }
    }

    #[test]
    fn a_form_has_its_fields_and_a_recording_with_the_samples_of_the_published_one() {
        let mut body = Vec::new();
        let published = [0_i16, 1, -1, 12_345, i16::MAX, i16::MIN];
        let waveform: Vec<f32> = published
            .iter()
            .map(|sample| f32::from(*sample) / 32768.0)
            .collect();
        table().form(200, 16_000).write(&waveform, &mut body);
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.contains("name=\"max_completion_tokens\"\r\n\r\n200\r\n--regatta-"),
            "{text}"
        );
        let at = body.windows(4).position(|part| part == b"RIFF").unwrap();
        let (head, samples) = body[at..].split_at(44);
        assert_eq!(head[4..8], (36 + 3200_u32).to_le_bytes(), "a tenth of a second");
        assert_eq!(
            head[24..32],
            [16_000_u32.to_le_bytes(), 32_000_u32.to_le_bytes()].concat()
        );
        let found: Vec<i16> = samples[..12]
            .chunks(2)
            .map(|bytes| i16::from_le_bytes([bytes[0], bytes[1]]))
            .collect();
        assert_eq!(found, published);
        let (silence, end) = samples[12..].split_at(3200 - 12);
        assert!(
            silence.iter().all(|byte| *byte == 0) && end.starts_with(b"\r\n--regatta-"),
            "{end:?}"
        );
    }

    #[test]
    fn tables_that_make_no_form_are_refused() {
        let fault = |change: fn(&mut Transcribe)| {
            let mut table = table();
            change(&mut table);
            table.fault()
        };
        assert_eq!(fault(|_| {}), None);
        assert!(
            fault(|table| table.text = "text".to_owned())
                .unwrap()
                .contains("begin with /")
        );
        let unknown = fault(|table| {
            table.fields.insert("model".to_owned(), "{name}".to_owned());
        });
        assert!(unknown.unwrap().contains("{name} is not a placeholder"));
        let file = fault(|table| {
            table.fields.insert("file".to_owned(), String::new());
        });
        assert!(file.unwrap().contains("which is the recording"));
    }
}
