//! The greedy decoder: features to the encoder, and then token after token by the decoder, for streams that end at different times. Keys and values
//! of earlier positions are kept inputs of the decoder. Nothing is allocated for a batch.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use regatta_types::benchmark::{EncoderDecoder, Model};

use super::{features::LogMelMaker, texts::TokenTexts, token_stream::TokenStream};
use crate::{
    Answers, Batch, Engine, EngineError,
    network::{Network, put},
    waveform::WaveformReader,
};

/// The written input of the encoder.
const FEATURES: usize = 0;
/// Those of the decoder.
const TOKEN: usize = 0;
const POSITION: usize = 1;

/// An encoder and a decoder, as an engine for waveforms.
pub(super) struct EncoderDecoderEngine<N> {
    encoder: N,
    decoder: N,
    reader: WaveformReader,
    maker: LogMelMaker,
    networks: EncoderDecoder,
    texts: Arc<TokenTexts>,
    is_suppressed: Vec<bool>,
    streams: Vec<TokenStream>,
    /// The streams that have not reached their end.
    active: Vec<usize>,
    /// The text of a transcript.
    text: Vec<u8>,
}

impl<N: Network> EncoderDecoderEngine<N> {
    pub(super) fn new(
        model: &Model,
        networks: &EncoderDecoder,
        (encoder, decoder): (N, N),
        texts: Arc<TokenTexts>,
    ) -> Self {
        let most = encoder.max_batch();
        let bytes = networks.most_tokens * texts.longest();
        let mut is_suppressed = vec![false; networks.vocabulary];
        for &token in &networks.suppressed {
            is_suppressed[token] = true;
        }
        Self {
            reader: WaveformReader::new(model, 1),
            maker: LogMelMaker::new(&networks.features, model.input_shape[0]),
            streams: (0..most)
                .map(|_| TokenStream::new(networks.most_tokens, bytes))
                .collect(),
            encoder,
            decoder,
            networks: networks.clone(),
            texts,
            is_suppressed,
            active: Vec::with_capacity(most),
            text: Vec::with_capacity(bytes),
        }
    }

    /// Makes the features of the stream at `place`.
    fn begin(&mut self, place: usize, waveform: &[f32]) {
        let features = self.maker.compute(waveform);
        put(self.encoder.input(FEATURES, place), features.iter().copied());
        self.streams[place].begin();
        self.active.push(place);
    }

    /// Finds the tokens of the active streams, which are all at the same position.
    fn decode(&mut self) -> Result<(), EngineError> {
        let (networks, streams) = (&self.networks, &mut self.streams);
        for position in 0.. {
            if self.active.is_empty() {
                break;
            }
            for &place in &self.active {
                let numbers = [
                    (TOKEN, streams[place].token(position, &networks.prompt)),
                    (POSITION, position),
                ];
                for (input, number) in numbers {
                    // `EncoderDecoder::fault` has compared tokens with the vocabulary.
                    let number = (number as i32).to_le_bytes();
                    self.decoder.input(input, place).copy_from_slice(&number);
                }
            }
            self.decoder.compute(&self.active, position)?;
            for &place in &self.active {
                // Otherwise the prompt has the next token.
                if position + 1 >= networks.prompt.len() {
                    streams[place].take(self.decoder.result(place), &self.is_suppressed);
                }
                if streams[place].has_ended(networks) {
                    self.decoder.release(place);
                }
            }
            self.active.retain(|&place| !streams[place].has_ended(networks));
        }
        Ok(())
    }
}

impl<N: Network> Engine for EncoderDecoderEngine<N> {
    fn max_batch(&self) -> usize {
        self.streams.len()
    }

    fn unit(&self) -> usize {
        self.encoder.unit()
    }

    fn unit_name(&self) -> String {
        self.encoder.unit_name()
    }

    fn answer_bytes(&self) -> usize {
        self.text.capacity()
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let size = batch.size(self.max_batch())?;
        self.active.clear();
        let mut reader = std::mem::take(&mut self.reader);
        let begun = reader.each_waveform(batch, |place, waveform| self.begin(place, waveform));
        self.reader = reader;
        begun?;
        // The decoder does not use what the last samples have left, but it multiplies it by zero.
        self.decoder.reset(size)?;
        self.encoder.compute_into(&self.active, &mut self.decoder)?;
        self.decode()?;
        for stream in &mut self.streams[..size] {
            self.texts
                .transcribe(&stream.generated, &mut self.text, &mut stream.transcript);
            answers.push_generated(&stream.transcript, stream.generated.len());
        }
        Ok(())
    }
}
