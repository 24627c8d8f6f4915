//! The greedy decoder: frames to the encoder piece by piece, and then symbols by prediction and joint network in turn, for streams that end at
//! different times. Nothing is allocated for a batch.

use regatta_types::benchmark::Transducer;

use super::{features::FrameMaker, stream::SpeechStream};
use crate::{
    Answers, Batch, Engine, EngineError, LoadRequest,
    network::{FLOAT, Network, put},
    waveform::WaveformReader,
};

/// The written inputs of the encoder.
const FEATURES: usize = 0;
const VALID: usize = 1;
/// That of the prediction network.
const SYMBOL: usize = 0;
/// Those of the joint network.
const ENCODED: usize = 0;
const PREDICTED: usize = 1;

/// The networks of a transducer, as an engine for waveforms.
pub(super) struct TransducerEngine<N> {
    encoder: N,
    prediction: N,
    joint: N,
    maker: FrameMaker,
    transducer: Transducer,
    reader: WaveformReader,
    /// The bytes of a step of the encoder.
    step_bytes: usize,
    streams: Vec<SpeechStream>,
    /// The streams that have not reached their end.
    active: Vec<usize>,
    /// The streams that have just got a symbol.
    speaking: Vec<usize>,
}

impl<N: Network> TransducerEngine<N> {
    pub(super) fn new(
        request: &LoadRequest<'_>,
        transducer: &Transducer,
        [encoder, prediction, joint]: [N; 3],
        encoded: usize,
    ) -> Self {
        let model = &request.benchmark.model;
        let longest = model.input_shape[0];
        let maker = FrameMaker::new(&transducer.features, longest);
        let reader = WaveformReader::new(model, maker.shortest());
        let frames = maker.count(longest);
        let pieces = frames.div_ceil(transducer.frames);
        let steps = pieces * (transducer.frames / transducer.frames_per_step);
        let step_bytes = encoded * FLOAT;
        let most = encoder.max_batch();
        let stream = || SpeechStream {
            features: vec![0.0; frames * maker.width()],
            frames: 0,
            encoded: vec![0; steps * step_bytes],
            steps: 0,
            step: 0,
            symbols_of_step: 0,
            transcript: Vec::with_capacity(steps * transducer.symbols_per_step),
        };
        Self {
            streams: (0..most).map(|_| stream()).collect(),
            encoder,
            prediction,
            joint,
            maker,
            transducer: transducer.clone(),
            reader,
            step_bytes,
            active: Vec::with_capacity(most),
            speaking: Vec::with_capacity(most),
        }
    }

    /// Makes the frames of the stream at `place`.
    fn begin(&mut self, place: usize, waveform: &[f32]) {
        let stream = &mut self.streams[place];
        stream.frames = self.maker.count(waveform.len());
        stream.steps = stream.frames.div_ceil(self.transducer.frames_per_step);
        (stream.step, stream.symbols_of_step) = (0, 0);
        stream.transcript.clear();
        let frames = &mut stream.features[..stream.frames * self.maker.width()];
        self.maker.compute(waveform, frames);
    }

    /// Encodes all frames of the first `count` streams.
    fn encode(&mut self, count: usize) -> Result<(), EngineError> {
        self.encoder.reset(count)?;
        let (piece, width) = (self.transducer.frames, self.maker.width());
        let piece_bytes = piece / self.transducer.frames_per_step * self.step_bytes;
        for number in 0.. {
            let first = number * piece;
            self.active.clear();
            let is_left = |place: &usize| self.streams[*place].frames > first;
            self.active.extend((0..count).filter(is_left));
            if self.active.is_empty() {
                break;
            }
            for &place in &self.active {
                let stream = &self.streams[place];
                let frames = piece.min(stream.frames - first);
                let from = &stream.features[first * width..(first + frames) * width];
                put(self.encoder.input(FEATURES, place), from.iter().copied());
                put(
                    self.encoder.input(VALID, place),
                    (0..piece).map(|frame| if frame < frames { 1.0 } else { 0.0 }),
                );
            }
            self.encoder.compute(&self.active, number)?;
            for &place in &self.active {
                let stream = &mut self.streams[place];
                let encoded = &mut stream.encoded[number * piece_bytes..][..piece_bytes];
                encoded.copy_from_slice(self.encoder.result(place));
                if stream.frames <= first + piece {
                    self.encoder.release(place);
                }
            }
        }
        Ok(())
    }

    /// Finds the symbols of the first `count` streams.
    fn decode(&mut self, count: usize) -> Result<(), EngineError> {
        self.prediction.reset(count)?;
        self.active.clear();
        self.active
            .extend((0..count).filter(|&place| self.streams[place].steps > 0));
        self.speaking.clear();
        self.speaking.extend(&self.active);
        while !self.active.is_empty() {
            self.predict()?;
            for &place in &self.active {
                let stream = &self.streams[place];
                let step = &stream.encoded[stream.step * self.step_bytes..][..self.step_bytes];
                self.joint.input(ENCODED, place).copy_from_slice(step);
            }
            self.joint.compute(&self.active, 0)?;
            self.speaking.clear();
            for &place in &self.active {
                let stream = &mut self.streams[place];
                let has_spoken = stream.take(self.joint.result(place), &self.transducer);
                if stream.step >= stream.steps {
                    self.prediction.release(place);
                } else if has_spoken {
                    self.speaking.push(place);
                }
            }
            let streams = &self.streams;
            self.active
                .retain(|&place| streams[place].step < streams[place].steps);
        }
        Ok(())
    }

    /// Computes the prediction network for the streams that have got a symbol, or begin.
    fn predict(&mut self) -> Result<(), EngineError> {
        if self.speaking.is_empty() {
            return Ok(());
        }
        let blank = self.transducer.symbols as i32;
        for &place in &self.speaking {
            let symbol = self.streams[place].transcript.last();
            let symbol = symbol.map_or(blank, |&symbol| i32::from(symbol));
            self.prediction
                .input(SYMBOL, place)
                .copy_from_slice(&symbol.to_le_bytes());
        }
        self.prediction.compute(&self.speaking, 0)?;
        for &place in &self.speaking {
            self.joint
                .input(PREDICTED, place)
                .copy_from_slice(self.prediction.result(place));
        }
        Ok(())
    }
}

impl<N: Network> Engine for TransducerEngine<N> {
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
        self.streams
            .first()
            .map_or(0, |stream| stream.transcript.capacity())
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let size = batch.size(self.max_batch())?;
        let mut reader = std::mem::take(&mut self.reader);
        let begun = reader.each_waveform(batch, |place, waveform| self.begin(place, waveform));
        self.reader = reader;
        begun?;
        self.encode(size)?;
        self.decode(size)?;
        for stream in &self.streams[..size] {
            answers.push(&stream.transcript);
        }
        Ok(())
    }
}
