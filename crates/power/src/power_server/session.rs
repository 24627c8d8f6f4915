//! A session on the server: ranging, then testing, each started and stopped by the client.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    analyzer::{Analyzer, Watch},
    command::ManualRanges,
    error::ServerError,
    ptd_reading::read_samples,
    ranges::{TestingRanges, testing_ranges},
    samples::{marked, merged},
};
use crate::{
    protocol::{description::Description, directory_of, file_error::FileError},
    ptd,
    server_conf::RangingMode,
    session::Part,
};

/// How often a wait looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionState {
    Begun,
    Measuring(Part),
    Measured(Part),
    /// A step failed, or the session is complete.
    Ended,
}

/// A session. When it is dropped, the meters are stopped and restored, and its files are removed.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) directory: PathBuf,
    analyzers: Vec<Analyzer>,
    ranging_mode: RangingMode,
    settle: Duration,
    ranges: Vec<TestingRanges>,
    state: SessionState,
}

impl Session {
    /// Begins a session in a new directory.
    pub(super) fn new(
        name: String,
        directory: PathBuf,
        analyzers: Vec<Analyzer>,
        ranging_mode: RangingMode,
        settle: Duration,
    ) -> Result<Self, ServerError> {
        // It fails when two sessions begin in one second with one label.
        fs::create_dir(&directory).map_err(FileError::at("make", &directory))?;
        let session = Self {
            name,
            directory,
            analyzers,
            ranging_mode,
            settle,
            ranges: Vec::new(),
            state: SessionState::Begun,
        };
        session.make_directory("power")?;
        Ok(session)
    }

    /// Starts the measurement of a run. Returns false when it is not the time for it.
    pub(super) fn start(
        &mut self,
        part: Part,
        manual: Option<ManualRanges>,
        description: &mut Description,
        watch: &mut Watch<'_>,
    ) -> Result<bool, ServerError> {
        match (self.state, part) {
            (SessionState::Measuring(current), part) if current == part => return Ok(true),
            (SessionState::Begun, Part::Ranging) | (SessionState::Measured(Part::Ranging), Part::Testing) => {
            }
            (SessionState::Begun, Part::Testing) if manual.is_some() => {}
            _ => return Ok(false),
        }
        if let Some(ManualRanges { volts, amps }) = manual {
            let ranges = TestingRanges {
                volts: volts.to_string(),
                amps: amps.to_string(),
            };
            self.ranges = vec![ranges; self.analyzers.len()];
        }
        description.step(part);
        for at in 0..self.analyzers.len() {
            self.analyzers[at].start(watch)?;
            self.set_ranges(at, part)?;
        }
        self.wait(watch)?;
        let mark = self.mark(part);
        for analyzer in &mut self.analyzers {
            analyzer.measure(&mark)?;
        }
        self.state = SessionState::Measuring(part);
        description.step(part);
        Ok(true)
    }

    /// Ends the measurement of a run, and writes what was measured. Returns false when it does not measure.
    pub(super) fn stop(
        &mut self,
        part: Part,
        description: &mut Description,
        watch: &mut Watch<'_>,
    ) -> Result<bool, ServerError> {
        match self.state {
            SessionState::Measuring(current) if current == part => {}
            SessionState::Measured(current) if current == part => return Ok(true),
            _ => return Ok(false),
        }
        description.step(part);
        self.wait(watch)?;
        let directory = self.make_directory(directory_of(part))?;
        let mark = self.mark(part);
        let mut lines = Vec::new();
        for at in 0..self.analyzers.len() {
            let analyzer = &mut self.analyzers[at];
            let figures = match part {
                Part::Ranging => None,
                Part::Testing => Some((analyzer.query("Watts")?, analyzer.query("Uncertainty")?)),
            };
            analyzer.stop()?;
            let samples = read_samples(analyzer)?;
            analyzer.check_console()?;
            lines.push(samples.iter().map(|line| marked(line, &mark)).collect::<Vec<_>>());
            if let Some((watts, uncertainty)) = figures {
                let number = analyzer.number;
                let text = format!("Analyzer {number}:\nPower: {watts} \nUncertainty: {uncertainty}\n");
                append(&directory.join("ptd_out.txt"), text.as_bytes())?;
            } else {
                let found = testing_ranges(analyzer.number, &analyzer.conf, &analyzer.samples, &mark)?;
                self.ranges.push(found);
            }
        }
        description.step(part);
        let lines = match lines.as_slice() {
            [lines] => lines.clone(),
            several => merged(several),
        };
        let path = directory.join("spl.txt");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).map_err(FileError::at("write", &path))?;
        self.state = SessionState::Measured(part);
        Ok(true)
    }

    /// Fails when a PTDaemon has ended.
    pub(super) fn check_meters(&mut self) -> Result<(), ServerError> {
        self.analyzers.iter_mut().try_for_each(Analyzer::check)
    }

    /// Stops and restores the meters, and ends their PTDaemons.
    pub(super) fn end(&mut self) {
        self.analyzers.iter_mut().for_each(Analyzer::end);
        self.state = SessionState::Ended;
    }

    /// Writes PTDaemon's log and the description with every request. The meters must have ended, so that the log is complete.
    pub(super) fn write(&mut self, description: &mut Description, log: &str) -> Result<(), ServerError> {
        let power = self.directory.join("power");
        for analyzer in &mut self.analyzers {
            analyzer.check_console()?;
            if let Ok(text) = fs::read(&analyzer.console) {
                let path = power.join("ptd_logs.txt");
                append(&path, format!("Analyzer {}\n", analyzer.number).as_bytes())?;
                append(&path, &text)?;
            }
        }
        let path = power.join("server.log");
        fs::write(&path, log).map_err(FileError::at("write", &path))?;
        let messages = self
            .analyzers
            .iter()
            .flat_map(|analyzer| analyzer.messages().to_vec());
        description.ptd_messages(messages.collect());
        Ok(description.write(&self.directory, "power/server.json")?)
    }

    fn set_ranges(&mut self, at: usize, part: Part) -> Result<(), ServerError> {
        let analyzer = &mut self.analyzers[at];
        match (part, self.ranges.get(at)) {
            (Part::Testing, Some(ranges)) => {
                analyzer.order(&format!("SR,V,{}", ranges.volts))?;
                analyzer.order(&format!("SR,A,{}", ranges.amps))
            }
            _ => {
                let largest = ptd::largest_amps(analyzer.conf.device_type);
                let amps = match (self.ranging_mode, largest) {
                    (RangingMode::Max, Some(amps)) => amps.to_string(),
                    _ => "Auto".to_owned(),
                };
                analyzer.order("SR,V,Auto")?;
                // The official checker expects it twice.
                analyzer.order(&format!("SR,A,{amps}"))?;
                analyzer.order(&format!("SR,A,{amps}"))
            }
        }
    }

    /// Waits until the meter has settled.
    fn wait(&self, watch: &mut Watch<'_>) -> Result<(), ServerError> {
        let begun = Instant::now();
        while begun.elapsed() < self.settle {
            watch()?;
            thread::sleep(TICK);
        }
        Ok(())
    }

    /// The word in every sample of a run.
    fn mark(&self, part: Part) -> String {
        format!("{}_{part}", self.name)
    }

    fn make_directory(&self, name: &str) -> Result<PathBuf, ServerError> {
        let path = self.directory.join(name);
        fs::create_dir(&path).map_err(FileError::at("make", &path))?;
        Ok(path)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
        // The client may have asked for it already.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn append(path: &Path, bytes: &[u8]) -> Result<(), ServerError> {
    let file = fs::File::options().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    Ok(written.map_err(FileError::at("write", path))?)
}
