//! The generic rule for boards without a systems file and for discrete GPUs. It uses the GPU's size, the DLA cores and the memory. It is a
//! starting point for `regatta-agent tune`, scaled from the published configurations.

use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{DeviceFacts, EngineKind, PowerSetting},
    engine_settings::{EnginePrecision, EngineSettings},
};

use super::{Board, Expected, Source, System, SystemRun};

/// The known properties of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardFacts {
    /// Streaming multiprocessors of its GPU, when known.
    pub sms: Option<u32>,
    pub dla_cores: u32,
    /// Memory that the GPU uses, in bytes.
    pub memory_bytes: u64,
    /// Whether GPU and host share that memory.
    pub integrated: bool,
}

impl From<&DeviceFacts> for BoardFacts {
    /// Uses the first GPU, because every engine is built for it. When CUDA was not queried, a module's GPU is assumed to share the host's
    /// memory.
    fn from(device: &DeviceFacts) -> Self {
        let gpu = device.gpus.first();
        let own_memory = gpu.filter(|gpu| !gpu.integrated).map(|gpu| gpu.memory_bytes);
        Self {
            sms: gpu.map(|gpu| gpu.multiprocessors),
            dla_cores: device.dla_cores,
            memory_bytes: own_memory.unwrap_or(device.memory_bytes),
            integrated: gpu.map_or(device.module.is_some(), |gpu| gpu.integrated),
        }
    }
}

/// Bytes of the sample that the published batches are for: resnet50's in int8.
const RESNET50_SAMPLE: u64 = 3 * 224 * 224;
/// Samples of that size per batch and streaming multiprocessor. AGX Orin has 16 multiprocessors and uses batches of 256.
const BATCH_PER_SM: u64 = 16;
/// Assumed size of an unknown GPU: that of the smaller Orins and of AGX Xavier.
const USUAL_SMS: u32 = 8;
/// Samples of that size in a DLA core's batch.
const DLA_BATCH: u64 = 8;
/// Divisor of the memory for the inputs of a batch. Activations take many times the memory of the inputs.
const MEMORY_PART: u64 = 256;

/// Returns the system of the generic rule, with one run: this benchmark and scenario on `tensorrt`.
#[must_use]
pub fn generic(facts: &BoardFacts, benchmark: &Benchmark, scenario: Scenario) -> System {
    System {
        schema: System::SCHEMA,
        name: "generic".to_owned(),
        title: "A board without a file".to_owned(),
        partial: None,
        board: Board::default(),
        runs: vec![SystemRun {
            benchmark: benchmark.name.clone(),
            scenario,
            power: PowerSetting::MaxP,
            engine: EngineKind::Tensorrt,
            derived: true,
            source: Source {
                rule: Some(rule(facts)),
                ..Source::default()
            },
            result: None,
            settings: settings(facts, benchmark, scenario),
            expected: Expected::default(),
        }],
    }
}

fn rule(facts: &BoardFacts) -> String {
    let sms = facts.sms.map_or_else(
        || format!("a GPU of unknown size, taken for {USUAL_SMS} SMs"),
        |sms| format!("a GPU of {sms} SMs"),
    );
    format!(
        "the generic rule for {sms}, {} DLA cores and {} GiB of {} memory",
        facts.dla_cores,
        facts.memory_bytes >> 30,
        if facts.integrated { "shared" } else { "its own" }
    )
}

fn settings(facts: &BoardFacts, benchmark: &Benchmark, scenario: Scenario) -> EngineSettings {
    let model = &benchmark.model;
    let elements: u64 = model.input_shape.iter().map(|&size| size as u64).product();
    // A step of an image occupies the GPU with one sample.
    let is_image = model.diffusion.is_some();
    let offline = if is_image {
        1
    } else {
        gpu_batch(facts, elements.max(1))
    };
    // Models of several networks run on GPUs only.
    let dla_cores = if model.networks().len() > 1 {
        0
    } else {
        facts.dla_cores
    };
    let dla = (DLA_BATCH * RESNET50_SAMPLE / elements.max(1)).clamp(1, DLA_BATCH);
    let mut settings = EngineSettings {
        gpu_copy_streams: Some(if is_image { 1 } else { 2 }),
        gpu_inference_streams: Some(1),
        use_direct_host_access: Some(facts.integrated),
        // float32 weights take twice the memory. NVIDIA's int8 networks are not exported here.
        precision: is_image.then_some(EnginePrecision::Fp16),
        ..EngineSettings::default()
    };
    match scenario {
        Scenario::SingleStream => {
            settings.gpu_batch_size = Some(1);
            settings.gpu_copy_streams = Some(1);
            settings.use_graphs = Some(true);
        }
        Scenario::MultiStream => {
            settings.gpu_batch_size = Some(offline.min(8));
            settings.use_graphs = Some(true);
        }
        Scenario::Server => {
            // Smaller batches have a shorter latency, and more of them can be in flight.
            settings.gpu_batch_size = Some((offline / 4).max(1));
            settings.gpu_copy_streams = Some(if is_image { 1 } else { 4 });
            settings.use_graphs = Some(true);
            settings.deque_timeout_usec = Some(2_000);
            // A DLA core misses a latency bound that is set for a GPU.
            settings.max_dlas = Some(0);
        }
        Scenario::Offline => {
            settings.gpu_batch_size = Some(offline);
            settings.use_graphs = Some(dla_cores == 0);
            if dla_cores > 0 {
                settings.dla_batch_size = usize::try_from(dla).ok();
                settings.dla_copy_streams = Some(2);
                settings.dla_inference_streams = Some(1);
                settings.max_dlas = usize::try_from(dla_cores).ok();
            }
        }
    }
    settings
}

/// Returns the batch size as a power of two: the published number of input elements per SM, limited by the memory.
fn gpu_batch(facts: &BoardFacts, elements: u64) -> usize {
    let sms = u64::from(facts.sms.unwrap_or(USUAL_SMS).max(1));
    let by_size = BATCH_PER_SM * sms * RESNET50_SAMPLE / elements;
    let by_memory = facts.memory_bytes / MEMORY_PART / elements;
    let most = by_size.min(by_memory).clamp(1, 4096);
    1 << most.ilog2()
}
