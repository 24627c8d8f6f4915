//! The accuracy log's receiver of responses. It copies those to be logged, and writes them at once or later.

use std::{
    fs::File,
    io::{self, BufWriter},
    sync::Mutex,
};

use regatta_mllog::accuracy::{AccuracyWriter, Entry, Tokens};

use super::faults::lock;

type Writer = AccuracyWriter<BufWriter<File>>;

/// The content of a response's entry besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenEntries {
    /// Nothing.
    None,
    /// The number of tokens.
    Count,
    /// The first token and the number of tokens.
    FirstAndCount,
}

/// The accuracy log, shared by all responding threads.
#[derive(Debug)]
pub(super) struct AccuracyTap {
    tokens: TokenEntries,
    state: Mutex<TapState>,
}

#[derive(Debug)]
struct TapState {
    /// `None` once the log is closed.
    writer: Option<Writer>,
    at_once: bool,
    kept: Vec<KeptEntry>,
    bytes: Vec<u8>,
    /// The first failure to write.
    failure: Option<io::Error>,
}

/// An entry whose bytes are in [`TapState::bytes`]: first the token, then the response.
#[derive(Debug, Clone, Copy)]
struct KeptEntry {
    seq_id: u64,
    qsl_idx: usize,
    begin: usize,
    data: usize,
    end: usize,
    token_count: i64,
}

/// A response to be logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: usize,
    pub(super) data: &'a [u8],
    pub(super) first_token: &'a [u8],
    pub(super) token_count: i64,
}

impl AccuracyTap {
    pub(super) fn new(file: File, tokens: TokenEntries) -> io::Result<Self> {
        let state = TapState {
            writer: Some(AccuracyWriter::new(BufWriter::with_capacity(1 << 16, file))?),
            at_once: true,
            kept: Vec::new(),
            bytes: Vec::new(),
            failure: None,
        };
        Ok(Self {
            tokens,
            state: Mutex::new(state),
        })
    }

    /// Selects whether later responses are written at once or kept until [`write_kept`](Self::write_kept).
    pub(super) fn write_at_once(&self, at_once: bool) {
        lock(&self.state).at_once = at_once;
    }

    /// Takes a response. After the log is closed it is dropped.
    pub(super) fn take(&self, answer: &Answer<'_>) {
        let mut state = lock(&self.state);
        if state.at_once {
            state.write(self.tokens, answer);
        } else {
            state.keep(answer);
        }
    }

    /// Writes the kept responses.
    pub(super) fn write_kept(&self) {
        let mut state = lock(&self.state);
        let (kept, bytes) = (std::mem::take(&mut state.kept), std::mem::take(&mut state.bytes));
        for entry in kept {
            let answer = Answer {
                seq_id: entry.seq_id,
                qsl_idx: entry.qsl_idx,
                data: &bytes[entry.data..entry.end],
                first_token: &bytes[entry.begin..entry.data],
                token_count: entry.token_count,
            };
            state.write(self.tokens, &answer);
        }
    }

    /// Ends the log.
    pub(super) fn close(&self) -> io::Result<()> {
        self.write_kept();
        let mut state = lock(&self.state);
        let ended = state.writer.take().map_or(Ok(()), Writer::finish);
        state.failure.take().map_or(ended, Err)
    }
}

impl TapState {
    fn keep(&mut self, answer: &Answer<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(answer.first_token);
        let data = self.bytes.len();
        self.bytes.extend_from_slice(answer.data);
        self.kept.push(KeptEntry {
            seq_id: answer.seq_id,
            qsl_idx: answer.qsl_idx,
            begin,
            data,
            end: self.bytes.len(),
            token_count: answer.token_count,
        });
    }

    fn write(&mut self, tokens: TokenEntries, answer: &Answer<'_>) {
        let Some(writer) = &mut self.writer else { return };
        let first = (tokens == TokenEntries::FirstAndCount).then_some(answer.first_token);
        let entry = Entry {
            seq_id: answer.seq_id,
            qsl_idx: answer.qsl_idx,
            data: answer.data,
            tokens: (tokens != TokenEntries::None).then_some(Tokens {
                first,
                count: answer.token_count,
            }),
        };
        if let Err(error) = writer.entry(&entry) {
            self.failure.get_or_insert(error);
        }
    }
}
