//! Unpacks all members of a gzip file. What follows them is ignored, as gzip and the reference do: padding with zeros, or anything else.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The unpacked bytes of a gzip file.
pub(super) struct GzipMembers<R> {
    /// `None` behind the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(file: R) -> Self {
        Self {
            member: Some(GzDecoder::new(file)),
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let file = self.member.take().map(GzDecoder::into_inner);
            self.member = file.map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// Returns the member behind zeros, if there is one.
fn next_member<R: BufRead>(mut file: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let bytes = file.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_padding = zeros > 0 && zeros == bytes.len();
        file.consume(zeros);
        if !is_padding {
            let member = GzDecoder::new(file);
            return Ok(member.header().is_some().then_some(member));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    fn unpacked(file: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        let file = io::BufReader::with_capacity(7, file);
        GzipMembers::new(file).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn members_are_joined_and_what_follows_them_is_ignored() {
        let (one, two) = (packed("one "), packed("two"));
        assert_eq!(unpacked(&[one.clone(), two.clone()].concat()).unwrap(), "one two");
        for (between, behind) in [
            (&[0; 100][..], &[][..]),
            (&[], &[0; 100]),
            (&[0], b"\x1f garbage"),
            (&[], b"\x1f"),
        ] {
            let file = [&one, between, &two, behind].concat();
            assert_eq!(unpacked(&file).unwrap(), "one two", "{between:?} {behind:?}");
        }
    }

    #[test]
    fn a_damaged_member_is_an_error() {
        let (one, mut two) = (packed("one "), packed("two"));
        assert!(unpacked(&one[..one.len() - 1]).is_err());
        // The checksum.
        let end = two.len() - 5;
        two[end] ^= 1;
        assert!(unpacked(&[one, two].concat()).is_err());
        assert!(unpacked(b"\x1f\x8bgarbage").is_err());
    }
}
