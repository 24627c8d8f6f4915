//! Output of engines: a few lines for people, or the manifest for programs.

use std::{
    io::{self, IsTerminal as _, Stderr, Write},
    path::Path,
    time::{Duration, Instant},
};

use regatta_tensorrt::{BuildPhase, CacheEntry, Precision};
use regatta_text::{EscapedText, escape, escape_json, escape_lines};
use serde::Serialize;

use crate::{cli::Format, exit::Failure};

/// Prints a progress message to standard error.
pub(super) fn say(words: &str) {
    // Standard error may be closed.
    let _ = writeln!(EscapedText(io::stderr()), "{words}");
}

/// Prints the result as a JSON document, or as the lines that `text` writes.
pub(super) fn result(
    format: Format,
    document: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = match format {
        Format::Json => serde_json::to_string_pretty(document)
            .map_err(io::Error::from)
            .and_then(|document| writeln!(out, "{}", escape_json(&document))),
        Format::Text => text(&mut EscapedText(out)),
    };
    written.map_err(|error| Failure::could_not(anyhow::Error::new(error).context("cannot print the result")))
}

/// Prints an engine in a few lines.
pub(super) fn entry(out: &mut dyn Write, place: &Path, entry: &CacheEntry) -> io::Result<()> {
    let manifest = &entry.manifest;
    writeln!(out, "engine {}", manifest.key())?;
    writeln!(
        out,
        "  plan          {}, {} KiB",
        place.join("engine.plan").display(),
        entry.plan_bytes / 1024
    )?;
    writeln!(
        out,
        "  model         SHA-256 {}",
        &manifest.onnx_sha256.get(..16).unwrap_or(&manifest.onnx_sha256)
    )?;
    writeln!(
        out,
        "  built         by TensorRT {} on {}, in {:.1} s",
        manifest.tensorrt, manifest.chip, entry.build_seconds
    )?;
    writeln!(
        out,
        "  batch         {} to {}, {} profile(s), types {}",
        manifest.min_batch,
        manifest.batch,
        manifest.profiles,
        types(manifest.precision),
    )?;
    for tensor in &entry.tensors {
        let way = if tensor.input { "input" } else { "output" };
        writeln!(
            out,
            "  {way:<13} {} {} {:?}{}",
            tensor.name,
            tensor.kind,
            tensor.dims,
            match tensor.format.as_str() {
                "linear" => String::new(),
                format => format!(" {format}"),
            }
        )?;
    }
    placement(out, entry)
}

/// Returns the types for people.
pub(super) const fn types(precision: Precision) -> &'static str {
    match precision {
        Precision::AsInNetwork => "as in network",
        Precision::Fp16 => "fp16",
        Precision::Int8 => "int8",
    }
}

fn placement(out: &mut dyn Write, entry: &CacheEntry) -> io::Result<()> {
    let Some(dla) = entry.manifest.dla else {
        return writeln!(out, "  placement     all on the GPU");
    };
    let layers = &entry.placement.layers;
    let on_gpu: Vec<_> = entry.placement.on_gpu().collect();
    writeln!(
        out,
        "  placement     DLA core {}: {} of {} layers on DLA",
        dla.core,
        layers.len() - on_gpu.len(),
        layers.len()
    )?;
    for layer in on_gpu {
        let reason = layer.reason.as_deref().unwrap_or("TensorRT gave no reason");
        writeln!(out, "    on the GPU  {} ({}): {reason}", layer.name, layer.kind)?;
    }
    Ok(())
}

/// Progress of a build. On a terminal, it is one line that is overwritten. Otherwise it prints the names of outer
/// phases, and the time at intervals. Write errors are ignored, because the output may be closed.
pub(super) struct Progress<W> {
    out: W,
    lively: bool,
    begun: Instant,
    phase: Option<BuildPhase>,
}

impl Progress<Stderr> {
    pub(super) fn on_stderr() -> Self {
        let out = io::stderr();
        let lively = out.is_terminal();
        Self::new(out, lively)
    }
}

impl<W: Write> Progress<W> {
    pub(super) fn new(out: W, lively: bool) -> Self {
        Self {
            out,
            lively,
            begun: Instant::now(),
            phase: None,
        }
    }

    /// Returns the interval for calls of [`Self::pass`].
    pub(super) const fn period(&self) -> Duration {
        Duration::from_secs(if self.lively { 1 } else { 30 })
    }

    /// Shows a step.
    pub(super) fn tell(&mut self, phase: &BuildPhase) {
        let last = self.phase.replace(phase.clone());
        if self.lively {
            self.write_over();
        } else if phase.step == 0 && last.is_none_or(|last| last.name != phase.name) {
            let _ = writeln!(self.out, "{}", escape(&phase.name));
        }
    }

    /// Shows the elapsed time, even if TensorRT reports no steps.
    pub(super) fn pass(&mut self) {
        if self.lively {
            self.write_over();
        } else {
            let seconds = self.begun.elapsed().as_secs();
            let _ = writeln!(self.out, "still building, {seconds} s");
        }
    }

    /// Prints another message.
    pub(super) fn say(&mut self, words: &str) {
        self.end();
        let _ = writeln!(self.out, "{}", escape_lines(words));
    }

    fn write_over(&mut self) {
        let seconds = self.begun.elapsed().as_secs();
        let line = self.phase.as_ref().map_or_else(
            || "building".to_owned(),
            |phase| format!("{} {}/{}", escape(&phase.name), phase.step, phase.steps),
        );
        let _ = write!(self.out, "\r\x1b[K{line}, {seconds} s").and_then(|()| self.out.flush());
    }

    /// Clears the line.
    pub(super) fn end(&mut self) {
        if self.lively {
            let _ = write!(self.out, "\r\x1b[K");
        }
    }
}
