//! The greedy decoder: frames to the encoder piece by piece, and then symbols by prediction and joint network in turn, for streams that end at
//! different times. Nothing is allocated for a batch.

use regatta_types::benchmark::Transducer;

use super::{features::FrameMaker, stream::SpeechStream};
use crate::{
    Answers, Batch, Engine, EngineError, LoadRequest,
    network::{FLOAT, Network, put},
    waveform::WaveformReader,
};

/// The engines of a transducer, as an engine for waveforms.
pub(super) struct TransducerEngine {
    encoder: Network,
    prediction: Network,
    joint: Network,
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

impl TransducerEngine {
    pub(super) fn new(
        request: &LoadRequest<'_>,
        transducer: &Transducer,
        [encoder, prediction, joint]: [Network; 3],
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
        let most = encoder.engine().max_batch();
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
        self.encoder.reset(place);
        self.prediction.reset(place);
    }

    /// Encodes all frames of the first `count` streams.
    fn encode(&mut self, count: usize) -> Result<(), EngineError> {
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
                let (features, rest) = self.encoder.inputs(place).split_at_mut(piece * width * FLOAT);
                let from = &stream.features[first * width..(first + frames) * width];
                put(features, from.iter().copied());
                put(
                    &mut rest[..piece * FLOAT],
                    (0..piece).map(|frame| if frame < frames { 1.0 } else { 0.0 }),
                );
            }
            self.encoder.compute(&self.active)?;
            for (&place, result) in self.active.iter().zip(self.encoder.results()) {
                self.streams[place].encoded[number * piece_bytes..][..piece_bytes].copy_from_slice(result);
            }
        }
        Ok(())
    }

    /// Finds the symbols of the first `count` streams.
    fn decode(&mut self, count: usize) -> Result<(), EngineError> {
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
                self.joint.inputs(place)[..self.step_bytes].copy_from_slice(step);
            }
            self.joint.compute(&self.active)?;
            self.speaking.clear();
            for (&place, scores) in self.active.iter().zip(self.joint.results()) {
                let stream = &mut self.streams[place];
                if stream.take(scores, &self.transducer) && stream.step < stream.steps {
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
            self.prediction.inputs(place)[..size_of::<i32>()].copy_from_slice(&symbol.to_le_bytes());
        }
        self.prediction.compute(&self.speaking)?;
        for (&place, result) in self.speaking.iter().zip(self.prediction.results()) {
            self.joint.inputs(place)[self.step_bytes..].copy_from_slice(result);
        }
        Ok(())
    }
}

impl Engine for TransducerEngine {
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
