//! Tests of states on the fake of CUDA's driver: whichever streams are computed, a stream finds the state that it has left, and nothing is copied
//! while all of them are computed.

use std::ffi::CString;

use proptest::prelude::*;
use regatta_cuda::{Driver, HostMemory};

use super::*;
use crate::{subjects::fake_engine::installation, tensorrt::convert::Element};

const ROWS: usize = 5;

/// The memory of one state with one number for each row, and what each row must have.
struct States {
    kept: KeptMemory,
    stream: Stream,
    host: HostMemory,
    expected: [Option<u32>; ROWS],
    next: u32,
}

impl Drop for States {
    fn drop(&mut self) {
        // A reset may still clear the memory.
        self.stream.synchronize().unwrap();
    }
}

impl States {
    fn new() -> Self {
        let driver = Driver::open_file(&installation().cuda.unwrap()).unwrap();
        let context = driver.context(0).unwrap();
        let stream = Stream::new(&context).unwrap();
        let row = |name: &str| Row {
            name: CString::new(name).unwrap(),
            element: Element::Fp32,
            elements: 1,
            dims: vec![1],
        };
        let tensor = KeptTensor {
            input: row("state"),
            output: Some(row("state_next")),
            update: KeptUpdate::Whole,
            width: 4,
            pitch: 4,
        };
        Self {
            kept: KeptMemory::new(&context, &stream, &[tensor], ROWS).unwrap(),
            host: HostMemory::new(&context, ROWS * 4).unwrap(),
            stream,
            expected: [None; ROWS],
            next: 1,
        }
    }

    fn reset(&mut self, rows: usize) {
        self.kept.reset(rows, &self.stream).unwrap();
        for (row, expected) in self.expected.iter_mut().enumerate() {
            *expected = (row < rows).then_some(0);
        }
    }

    fn release(&mut self, row: usize) {
        self.kept.release(row);
        self.expected[row] = None;
    }

    /// Computes rows: each gets a new number, and those between them get one that is not theirs.
    fn compute(&mut self, streams: &[usize]) {
        let rows = streams.last().unwrap() + 1;
        let side = self.kept.gather(rows, &self.stream).unwrap();
        // SAFETY: the stream is waited for before the memory is used.
        unsafe {
            let from = self.kept.inputs[0].side(side);
            self.stream.copy_to_host(&self.host, from, rows * 4).unwrap();
        }
        self.stream.synchronize().unwrap();
        let found = self.host.bytes_mut().as_chunks_mut().0;
        for ((row, number), expected) in found.iter_mut().enumerate().zip(&mut self.expected).take(rows) {
            if let Some(expected) = expected {
                assert_eq!(u32::from_le_bytes(*number), *expected, "row {row}");
            }
            self.next += 1;
            *number = self.next.to_le_bytes();
            if streams.contains(&row) {
                *expected = Some(self.next);
            }
        }
        // SAFETY: as above.
        unsafe {
            let to = self.kept.inputs[0].side(1 - side);
            self.stream.copy_to_device(to, &self.host, rows * 4).unwrap();
        }
        self.kept.take(streams, rows, side, 0, &self.stream).unwrap();
        self.stream.synchronize().unwrap();
    }
}

#[test]
fn streams_that_are_always_computed_are_never_moved() {
    let mut states = States::new();
    states.reset(ROWS);
    for number in 0..4 {
        assert_eq!(
            (0..ROWS)
                .filter(|&row| states.kept.is_elsewhere(row, number % 2))
                .count(),
            0
        );
        states.compute(&[0, 1, 2, 3, 4]);
    }
    // A stream that has ended is not moved either.
    states.release(1);
    states.compute(&[0, 2, 3, 4]);
    assert!((0..ROWS).all(|row| !states.kept.is_elsewhere(row, 1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_stream_finds_its_state(steps in prop::collection::vec((0_u8..32, 0_usize..12), 1..24)) {
        let mut states = States::new();
        states.reset(ROWS);
        for (bits, what) in steps {
            match what {
                0 => states.reset(usize::from(bits) % ROWS + 1),
                1 => states.release(usize::from(bits) % ROWS),
                _ => {
                    let chosen = |row: &usize| bits >> row & 1 == 1 && states.expected[*row].is_some();
                    let streams: Vec<usize> = (0..ROWS).filter(chosen).collect();
                    if !streams.is_empty() {
                        states.compute(&streams);
                    }
                }
            }
        }
    }
}
