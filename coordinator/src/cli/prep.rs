//! `regatta prep`: turns a published data set into samples as LoadGen's harness reads them, in the type and layout that an engine reads.
//! `--verify` compares samples with a manifest instead.

mod sample_request;

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use regatta_catalogue::catalogue::Catalogue;
use regatta_prep::{DamagedImage, PrepError, PrepReport, read_calibration_scale, verify_samples};
use regatta_types::{
    ExitCode,
    benchmark::{Benchmark, Dtype, Prep},
    layout::Layout,
    samples::{Form, Quantised, Rounding},
};
use serde::Serialize;
use serde_json::json;

use self::sample_request::failure;
pub(super) use self::sample_request::{NotMade, SampleRequest, published_quantisation};
use super::{Context, calibration_list, context::Format};
use crate::exit::{CommandResult, Failure};
use regatta_lab_store::workspace::Workspace;

/// Flags of `prep`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The benchmark
    benchmark: String,
    /// Directory of the published data set [default: data/BENCHMARK below --output, where bundled data is unpacked]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The scratch directory, as MLPERF_SCRATCH_PATH names it [default: the workspace's]
    #[arg(long = "output", value_name = "DIR", env = "MLPERF_SCRATCH_PATH")]
    out: Option<PathBuf>,
    /// Type of the samples, such as fp32, fp16 or int8 [default: the benchmark's]
    #[arg(long, value_name = "TYPE")]
    dtype: Option<Dtype>,
    /// Layout of the samples, such as linear (nchw) or chw4 [default: linear]
    #[arg(long, value_name = "LAYOUT", value_parser = layout)]
    layout: Option<Layout>,
    /// The labels or annotations of images [default: val_map.txt or val.txt among them, or the published annotations]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Prepare the samples of a calibration list (a name per line) instead, in a separate directory
    #[arg(long, value_name = "LIST", conflicts_with = "verify")]
    calibration: Option<PathBuf>,
    /// Prepare samples of damaged images too, with the pixels that the benchmark's reference decodes from them
    #[arg(long, conflicts_with = "verify")]
    accept_damaged: bool,
    /// Compare the samples with a SHA-256 manifest instead of preparing them
    #[arg(long)]
    verify: bool,
    /// That manifest [default: the one beside the samples]
    #[arg(long, value_name = "FILE", requires = "verify")]
    manifest: Option<PathBuf>,
    /// int8: the value of one step [default: the benchmark's published scale]
    #[arg(long, conflicts_with = "calibration_cache")]
    scale: Option<f32>,
    /// int8: the calibration cache of TensorRT that contains the scale
    #[arg(long, value_name = "FILE")]
    calibration_cache: Option<PathBuf>,
    /// The name of the network's input in that cache [default: the benchmark's input_name]
    #[arg(long, value_name = "NAME", requires = "calibration_cache")]
    tensor: Option<String>,
    /// int8: how fractions are handled; NVIDIA's preprocessing cuts them off for images and rounds for volumes
    /// [default: toward-zero]
    #[arg(long, value_name = "toward-zero|nearest", value_parser = rounding)]
    rounding: Option<Rounding>,
}

/// Parses a layout. NCHW is the common word for the order of the shape.
fn layout(word: &str) -> Result<Layout, String> {
    let word = if word.eq_ignore_ascii_case("nchw") {
        "linear"
    } else {
        word
    };
    word.parse()
        .map_err(|unknown: regatta_types::UnknownWord| unknown.to_string())
}

fn rounding(word: &str) -> Result<Rounding, String> {
    match word {
        "toward-zero" => Ok(Rounding::TowardZero),
        "nearest" => Ok(Rounding::Nearest),
        _ => Err("known are toward-zero, nearest".to_owned()),
    }
}

#[derive(Serialize)]
struct PrepDocument<'a> {
    benchmark: &'a str,
    form: String,
    samples: usize,
    unchanged: usize,
    clipped: u64,
    dir: PathBuf,
    map: PathBuf,
    /// `null` for an unpublished list.
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration_list: Option<Option<String>>,
    /// The damaged images whose samples were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<DamagedImageEntry>,
}

/// An image in a document.
#[derive(Serialize)]
struct DamagedImageEntry {
    image: String,
    reason: String,
    /// Whether `--accept-damaged` makes its sample.
    has_sample: bool,
}

impl DamagedImageEntry {
    fn list(images: &[DamagedImage]) -> Vec<Self> {
        let entry = |image: &DamagedImage| Self {
            image: image.name.clone(),
            reason: image.fault.to_string(),
            has_sample: image.fault.has_sample(),
        };
        images.iter().map(entry).collect()
    }
}

pub(super) fn run(args: &Args, context: &Context) -> CommandResult {
    let workspace = context.open_if_there()?;
    let catalogue =
        Catalogue::read(workspace.as_ref().map(Workspace::configs).as_deref()).map_err(Failure::usage)?;
    let benchmark = catalogue.benchmark(&args.benchmark).map_err(Failure::usage)?;
    let out = match (&args.out, &workspace) {
        (Some(out), _) => out.clone(),
        (None, Some(workspace)) => workspace.scratch(),
        (None, None) => {
            return Err(Failure::misuse("no directory for the samples was named")
                .hint("name the scratch directory with --output or MLPERF_SCRATCH_PATH, or a workspace with --workspace"));
        }
    };
    let form = match (args.dtype, args.layout) {
        (None, None) => benchmark.form(),
        (dtype, layout) => Form::new(
            dtype.unwrap_or(benchmark.model.input_dtype),
            layout.unwrap_or_default(),
        ),
    };
    let bar = progress_bar(context);
    let mut progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    if args.verify {
        return verify(args, benchmark, form, &out, &mut progress, context);
    }
    let list = args.calibration.as_deref();
    let calibration_list = list
        .map(|list| calibration_list::published_name(benchmark, list))
        .transpose()?;
    let made = quantised(args, benchmark, form).map_err(NotMade::from);
    let made = made.and_then(|quantised| {
        let request = SampleRequest {
            benchmark,
            form,
            quantised,
            data: args.data.as_deref(),
            labels: args.labels.as_deref(),
            calibration: list,
            accepts_damaged: args.accept_damaged,
        };
        request.make(&out, &mut progress)
    });
    bar.finish_and_clear();
    let PrepReport {
        samples,
        unchanged,
        clipped,
        damaged,
        dir,
        map,
    } = match made {
        Ok(report) => report,
        Err(NotMade::Damaged(error)) => return refuse_damaged(error, benchmark, context),
        Err(NotMade::Failure(failure)) => return Err(failure),
    };
    let document = PrepDocument {
        benchmark: &benchmark.name,
        form: match benchmark.prep {
            Some(Prep::Published { .. }) => "published".to_owned(),
            _ => form.to_string(),
        },
        samples,
        unchanged,
        clipped,
        dir,
        map,
        calibration_list,
        damaged: DamagedImageEntry::list(&damaged),
    };
    let has_published_scale = args.scale.is_none() && args.calibration_cache.is_none();
    context.print(&document, || text(&document, has_published_scale))?;
    Ok(ExitCode::Success)
}

/// Lists all damaged images in a JSON document. The message has the first ones.
fn refuse_damaged(error: PrepError, benchmark: &Benchmark, context: &Context) -> CommandResult {
    let PrepError::DamagedImages { dir, total, images } = &error else {
        return Err(failure(error));
    };
    let mut hint =
        "unpack these images again from the published archive, then run the same command".to_owned();
    if images.iter().any(|image| image.fault.has_sample()) {
        hint.push_str(
            "; if the published images themselves are damaged, make samples of those that the reference decodes with --accept-damaged",
        );
    }
    if context.format == Format::Json {
        let document = json!({
            "benchmark": benchmark.name,
            "data": dir,
            "images": total,
            "damaged": DamagedImageEntry::list(images),
        });
        context.print(&document, String::new)?;
    }
    Err(Failure::from(error).hint(hint))
}

fn progress_bar(context: &Context) -> ProgressBar {
    if !context.is_lively() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{wide_bar} {pos} of {len} samples, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Compares the samples of a form with a manifest. The exit code is 0 if they are equal.
fn verify(
    args: &Args,
    benchmark: &Benchmark,
    form: Form,
    out: &Path,
    progress: &mut dyn FnMut(usize, usize),
    context: &Context,
) -> CommandResult {
    let formed = benchmark.in_form(form).map_err(Failure::usage)?;
    let dir = out.join(&formed.dataset.dir);
    let verification = verify_samples(&dir, args.manifest.as_deref(), progress).map_err(failure)?;
    let (differing, missing) = (&verification.differing, &verification.missing);
    let document = json!({
        "benchmark": benchmark.name,
        "form": form.to_string(),
        "dir": dir,
        "manifest": verification.manifest,
        "samples": verification.samples,
        "equal": verification.is_equal(),
        "differing": differing,
        "missing": missing,
    });
    context.print(&document, || {
        let manifest = verification.manifest.display();
        if verification.is_equal() {
            return format!(
                "{} files in {} equal {manifest}",
                verification.samples,
                dir.display()
            );
        }
        let first = differing.first().or(missing.first()).map_or("", String::as_str);
        format!(
            "of {} files in {manifest}, {} differ and {} are missing in {}; the first is {first}",
            verification.samples,
            differing.len(),
            missing.len(),
            dir.display()
        )
    })?;
    Ok(if verification.is_equal() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

/// Returns the quantisation that the flags or the benchmark name.
fn quantised(args: &Args, benchmark: &Benchmark, form: Form) -> Result<Option<Quantised>, Failure> {
    let published = published_quantisation(benchmark, form);
    let (scale, source) = match (args.scale, &args.calibration_cache) {
        (Some(scale), _) if scale.is_normal() && scale > 0.0 => (scale, "given".to_owned()),
        (Some(scale), _) => {
            return Err(Failure::misuse(format!(
                "a scale is a positive number, not {scale}"
            )));
        }
        (None, Some(cache)) => {
            let tensor = args.tensor.as_ref().or(benchmark.model.input_name.as_ref());
            let tensor = tensor.ok_or_else(|| {
                Failure::misuse("the calibration cache has a scale for every tensor")
                    .hint("name the network's input with --tensor")
            })?;
            let scale = read_calibration_scale(cache, tensor)
                .map_err(PrepError::from)
                .map_err(failure)?;
            let file = cache.file_name().unwrap_or_default().to_string_lossy();
            (scale, format!("{file}: {tensor}"))
        }
        (None, None) if published.is_none() && args.rounding.is_some() => {
            return Err(Failure::misuse("--rounding needs a scale"));
        }
        (None, None) => {
            return Ok(published.map(|published| Quantised {
                rounding: args.rounding.unwrap_or(published.rounding),
                ..published
            }));
        }
    };
    Ok(Some(Quantised {
        scale,
        rounding: args.rounding.unwrap_or_default(),
        source,
    }))
}

fn text(made: &PrepDocument<'_>, has_published_scale: bool) -> String {
    let (samples, unchanged) = (made.samples, made.unchanged);
    let mut text = format!(
        "{samples} samples of {} as {} in {} ({unchanged} were there already)",
        made.benchmark,
        made.form,
        made.dir.display()
    );
    if made.map.is_file() {
        text.push_str(&format!("\nlabels in {}", made.map.display()));
    }
    if let Some(name) = &made.calibration_list {
        text.push('\n');
        text.push_str(&calibration_list::describe(made.benchmark, name.as_deref()));
    }
    if !made.damaged.is_empty() {
        let named: Vec<&str> = made.damaged.iter().map(|entry| entry.image.as_str()).collect();
        text.push_str(&format!(
            "\n{} of the images are damaged, and their samples are the reference's: {}",
            named.len(),
            first_names(&named)
        ));
    }
    if made.clipped > 0 {
        let clipped = made.clipped;
        text.push_str(&format!(
            "\n{clipped} values were out of range for the type and were clipped"
        ));
        text.push_str(if has_published_scale {
            ", as in the published scale"
        } else {
            ": is the scale right?"
        });
    }
    text
}

/// Returns the first names of a list, and the number of others.
fn first_names(names: &[&str]) -> String {
    const MAX_NAMED: usize = 10;
    let others = names.len().saturating_sub(MAX_NAMED);
    let first = names[..names.len() - others].join(", ");
    if others == 0 {
        first
    } else {
        format!("{first} and {others} others")
    }
}
