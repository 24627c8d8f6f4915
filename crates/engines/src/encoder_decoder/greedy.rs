//! The greedy decoder: features to the encoder, and then token after token by the decoder, for streams that end at different times. Keys and values
//! of earlier positions stay in the decoder's inputs. Nothing is allocated for a batch.

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use regatta_types::benchmark::{EncoderDecoder, Model};

use super::{features::LogMelMaker, texts::TokenTexts, token_stream::TokenStream};
use crate::{
    Answers, Batch, Engine, EngineError,
    network::{FLOAT, Network, put},
    waveform::WaveformReader,
};

/// The engines of an encoder and a decoder, as an engine for waveforms.
pub(super) struct EncoderDecoderEngine {
    encoder: Network,
    decoder: Network,
    reader: WaveformReader,
    maker: LogMelMaker,
    networks: EncoderDecoder,
    texts: Arc<TokenTexts>,
    is_suppressed: Vec<bool>,
    /// The keys and values of a stream's own positions, in the inputs of the decoder.
    cache: Range<usize>,
    streams: Vec<TokenStream>,
    /// The streams that have not reached their end.
    active: Vec<usize>,
    /// The text of a transcript.
    text: Vec<u8>,
}

impl EncoderDecoderEngine {
    pub(super) fn new(
        model: &Model,
        networks: &EncoderDecoder,
        (encoder, decoder): (Network, Network),
        texts: Arc<TokenTexts>,
    ) -> Self {
        let most = encoder.engine().max_batch();
        let bytes = networks.most_tokens * texts.longest();
        let mut is_suppressed = vec![false; networks.vocabulary];
        for &token in &networks.suppressed {
            is_suppressed[token] = true;
        }
        let begin = 2 * size_of::<i32>();
        let cached = 2 * networks.layers * networks.positions() * networks.width * FLOAT;
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
            cache: begin..begin + cached,
            active: Vec::with_capacity(most),
            text: Vec::with_capacity(bytes),
        }
    }

    /// Makes the features of the stream at `place`.
    fn begin(&mut self, place: usize, waveform: &[f32]) {
        let features = self.maker.compute(waveform);
        put(self.encoder.inputs(place), features.iter().copied());
        // The decoder does not use what the last sample has left, but it multiplies it by zero.
        self.decoder.inputs(place)[self.cache.clone()].fill(0);
        self.streams[place].begin();
        self.active.push(place);
    }

    /// Encodes the active streams.
    fn encode(&mut self) -> Result<(), EngineError> {
        let (decoder, cross) = (&mut self.decoder, self.cache.end..);
        self.encoder.compute_and_update(&self.active, |place, _, output| {
            decoder.inputs(place)[cross.clone()].copy_from_slice(output);
        })
    }

    /// Finds the tokens of the active streams.
    fn decode(&mut self) -> Result<(), EngineError> {
        let (networks, streams) = (&self.networks, &mut self.streams);
        let row = networks.width * FLOAT;
        while !self.active.is_empty() {
            for &place in &self.active {
                let stream = &streams[place];
                let numbers = [stream.token(&networks.prompt), stream.position];
                let inputs = self.decoder.inputs(place).as_chunks_mut().0;
                for (input, number) in inputs.iter_mut().zip(numbers) {
                    // `EncoderDecoder::fault` has compared tokens with the vocabulary.
                    *input = (number as i32).to_le_bytes();
                }
            }
            self.decoder
                .compute_and_update(&self.active, |place, inputs, output| {
                    let stream = &mut streams[place];
                    let (scores, keys) = output.split_at(networks.vocabulary * FLOAT);
                    let caches = inputs[self.cache.clone()].chunks_exact_mut(networks.positions() * row);
                    for (cache, key) in caches.zip(keys.chunks_exact(row)) {
                        cache[stream.position * row..][..row].copy_from_slice(key);
                    }
                    stream.take(scores, &networks.prompt, &self.is_suppressed);
                })?;
            self.active.retain(|&place| !streams[place].has_ended(networks));
        }
        Ok(())
    }
}

impl Engine for EncoderDecoderEngine {
    fn max_batch(&self) -> usize {
        self.streams.len()
    }

    fn unit(&self) -> usize {
        self.encoder.engine().unit()
    }

    fn unit_name(&self) -> String {
        self.encoder.engine().unit_name()
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
        self.encode()?;
        self.decode()?;
        for stream in &mut self.streams[..size] {
            self.texts
                .transcribe(&stream.generated, &mut self.text, &mut stream.transcript);
            answers.push_generated(&stream.transcript, stream.generated.len());
        }
        Ok(())
    }
}
