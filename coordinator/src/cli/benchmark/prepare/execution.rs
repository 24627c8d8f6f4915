//! Executes the steps of a plan in this process. Each step can be interrupted and repeated.

use std::{fs, path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use regatta_archives::{Archive, Limits, Unpacking};
use regatta_fsutil::atomic_file::rename_flushed;
use regatta_prep::PrepError;
use regatta_types::{
    benchmark::{Benchmark, Download},
    samples::Form,
};

use super::{
    archive_check::{is_selected, most_bytes, unpack_directory},
    exporter::Exporter,
    inventory::Subject,
    plan::{Action, Step},
};
use crate::{
    cli::{
        Context, asset,
        context::tell,
        data::{ARCHIVES, PART, fetch_file, remove_abandoned_part},
        prep::{NotMade, SampleRequest, published_quantisation},
    },
    exit::Failure,
};
use regatta_lab_store::{Store, workspace::Workspace};

/// The maximum number of files in a compressed archive, whose file list is not known in advance.
const MAX_FILES: u64 = 1_000_000;

/// The context in which steps are executed.
pub(super) struct Execution<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) store: &'a Store,
    pub(super) context: &'a Context,
    pub(super) exporter: Exporter<'a>,
}

impl Execution<'_> {
    /// Executes a step of a benchmark.
    ///
    /// # Errors
    /// Returns the failure of the step. Completed work is kept, and the next call continues.
    pub(super) fn execute(&self, step: &Step, subject: &Subject<'_>) -> Result<(), Failure> {
        let benchmark = subject.benchmark;
        tell(&format!(
            "{}: {}: {}",
            benchmark.name,
            step.action.word(),
            step.subject
        ));
        let scratch = subject.scratch.as_path();
        match &step.action {
            Action::Fetch { download } => {
                let download = download_of(benchmark, *download)?;
                let fetched = fetch_file(download, benchmark, scratch, self.context);
                fetched.map(drop).map_err(|failure| {
                    let name = download.published_name();
                    failure.default_hint(format!(
                        "if its server no longer has it: get the file elsewhere, and repeat this command with --from {name}"
                    ))
                })
            }
            Action::Copy { download, from } if from.is_dir() => download_of(benchmark, *download)?
                .checkpoint
                .iter()
                .try_for_each(|name| copy(&from.join(name), &scratch.join(&step.target).join(name))),
            Action::Copy { from, .. } => copy(from, &scratch.join(&step.target)),
            Action::Unpack { download, archive } => {
                let download = download_of(benchmark, *download)?;
                let fetched = scratch.join(ARCHIVES).join(download.published_name());
                self.unpack(archive.as_deref().unwrap_or(&fetched), download, subject)
            }
            Action::Export { weights } => {
                let weights = weights.ok_or_else(|| Failure::could_not("no weights are published"))?;
                let weights = scratch.join(&download_of(benchmark, weights)?.path);
                let spinner = self.spinner();
                let exported = self.exporter.export(benchmark, &weights, scratch);
                spinner.finish_and_clear();
                exported
            }
            Action::Prepare { form } => self.prepare(subject, *form, None),
            Action::Calibrate { list } => {
                let list = scratch.join(&download_of(benchmark, *list)?.path);
                self.prepare(subject, benchmark.form(), Some(&list))
            }
            Action::AddAssets { paths } => {
                let sources: Vec<_> = paths
                    .iter()
                    .map(|path| (scratch.join(path), path.clone()))
                    .collect();
                let spinner = self.spinner();
                let added = asset::add(&sources, self.workspace, self.store);
                spinner.finish_and_clear();
                added.map(drop)
            }
        }
    }

    fn unpack(&self, archive: &Path, download: &Download, subject: &Subject<'_>) -> Result<(), Failure> {
        let archive = Archive::open(archive)?;
        let limits = match archive.entries()? {
            Some(entries) => Limits {
                files: entries.len() as u64,
                bytes: entries.iter().map(|entry| entry.bytes).sum(),
            },
            None => Limits {
                files: MAX_FILES,
                bytes: most_bytes(&archive, download),
            },
        };
        let is_selected = |name: &str| is_selected(download, subject.benchmark, &subject.scratch, name);
        let unpacking = Unpacking {
            archive: &archive,
            directory: &unpack_directory(download, &subject.scratch),
            limits,
            is_selected: &is_selected,
        };
        let bar = self.bar("files");
        bar.set_length(download.files as u64);
        let report = unpacking.run(&mut |report| bar.set_position(report.files));
        bar.finish_and_clear();
        let report = report?;
        // The archive may have come from the user after a download was interrupted.
        remove_abandoned_part(&subject.scratch.join(ARCHIVES).join(download.published_name()))?;
        if report.files == 0 {
            return Err(Failure::could_not(format!(
                "{} has no file of {}",
                archive.path().display(),
                download.title
            )));
        }
        Ok(())
    }

    fn prepare(&self, subject: &Subject<'_>, form: Form, calibration: Option<&Path>) -> Result<(), Failure> {
        let benchmark = subject.benchmark;
        let labels = subject.labels();
        let request = SampleRequest {
            benchmark,
            form,
            quantised: published_quantisation(benchmark, form).filter(|_| calibration.is_none()),
            data: subject.data(),
            labels: labels.as_deref(),
            calibration,
            accepts_damaged: false,
        };
        let bar = self.bar("samples");
        let made = request.make(&subject.scratch, &mut |done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        made.map(drop).map_err(|error| match error {
            NotMade::Failure(failure) => failure,
            NotMade::Damaged(error) => damaged(error, subject),
        })
    }

    fn bar(&self, unit: &str) -> ProgressBar {
        if !self.context.is_lively() {
            return ProgressBar::hidden();
        }
        let template = format!("{{wide_bar}} {{pos}} of {{len}} {unit}, {{eta}} left");
        match ProgressStyle::with_template(&template) {
            Ok(style) => ProgressBar::new(0).with_style(style),
            Err(_) => ProgressBar::new(0),
        }
    }

    fn spinner(&self) -> ProgressBar {
        if !self.context.is_lively() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner();
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }
}

fn download_of(benchmark: &Benchmark, index: usize) -> Result<&Download, Failure> {
    let download = benchmark.downloads.get(index);
    download.ok_or_else(|| Failure::could_not(format!("{} has no download {index}", benchmark.name)))
}

/// Copies a file. The copy only gets its name once it is complete.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let part = to.with_added_extension(PART);
    let copied = match to.parent() {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    };
    let copied = copied
        .and_then(|()| fs::copy(from, &part))
        .and_then(|_| rename_flushed(&part, to));
    copied.map_err(|error| {
        Failure::could_not(format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        ))
    })
}

fn damaged(error: PrepError, subject: &Subject<'_>) -> Failure {
    let name = &subject.benchmark.name;
    Failure::from(error).hint(format!(
        "unpack these images again from the published archive; `regatta prep {name} --help` describes --accept-damaged"
    ))
}
