//! Tests of which evidence sealing writes, and which it keeps.

use regatta_types::documents::RunPhase;

use super::*;
use crate::daemon::runs::job::Job;

fn request(root: &std::path::Path) -> SealRequest {
    let run = RunId::now();
    let dir = RunDir::create(root, run, b"{}", &Job::queued(0)).unwrap();
    fs::write(dir.files().join("run.log"), "what was said").unwrap();
    SealRequest {
        run,
        dir,
        identity: Arc::new(DeviceIdentity::load_or_create(&root.join("device.key")).unwrap()),
        already_sealed: false,
        failed_files: Vec::new(),
        listed_evidence: None,
        outcome: RunState {
            phase: RunPhase::Draining,
            reason: None,
            revision: 6,
        },
        before: None,
        after: DeviceFacts::default(),
        window: WindowCost::default(),
        device_state: None,
        foreign_root: None,
    }
}

fn sealed(request: &SealRequest) -> Vec<SealedStream> {
    let sealed = seal(request, oneshot::channel().0);
    assert!(sealed.incomplete.is_none(), "{:?}", sealed.incomplete);
    sealed.streams
}

fn names(streams: &[SealedStream]) -> Vec<&str> {
    let mut names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn evidence_that_was_listed_or_signed_is_not_written_anew() {
    let root = tempfile::tempdir().unwrap();
    let mut request = request(root.path());
    let [evidence, signature] = [EVIDENCE, SIGNATURE].map(|name| request.dir.files().join(name));
    let first = sealed(&request);
    assert_eq!(names(&first), [EVIDENCE, SIGNATURE, "run.log"]);
    let (bytes, signed) = (fs::read(&evidence).unwrap(), fs::read(&signature).unwrap());

    // After another outcome, signed evidence is kept.
    request.outcome.revision = 7;
    assert_eq!(names(&sealed(&request)), [EVIDENCE, SIGNATURE, "run.log"]);
    assert_eq!(fs::read(&evidence).unwrap(), bytes);

    // Listed evidence is kept even without its signature.
    fs::remove_file(&signature).unwrap();
    request.listed_evidence = Some(Sha256::digest(&bytes).into());
    assert_eq!(names(&sealed(&request)), [EVIDENCE, SIGNATURE, "run.log"]);
    assert_eq!(fs::read(&evidence).unwrap(), bytes);
    assert_eq!(fs::read(&signature).unwrap(), signed);

    // Evidence that is neither signed nor listed is replaced by evidence of the current outcome.
    fs::write(&signature, "torn").unwrap();
    request.listed_evidence = None;
    assert_eq!(names(&sealed(&request)), [EVIDENCE, SIGNATURE, "run.log"]);
    assert_ne!(fs::read(&evidence).unwrap(), bytes);
}

#[test]
fn evidence_without_its_signature_is_not_listed() {
    let root = tempfile::tempdir().unwrap();
    let request = request(root.path());
    // A directory at the path of the signature's temporary file makes the write fail, even for root.
    fs::create_dir(request.dir.files().join(".evidence.sig.new")).unwrap();
    let sealed = seal(&request, oneshot::channel().0);
    assert!(sealed.incomplete.is_some());
    assert_eq!(names(&sealed.streams), ["run.log"]);
    assert_eq!(
        sealed
            .unsealed_files()
            .iter()
            .map(StreamName::as_str)
            .collect::<Vec<_>>(),
        [EVIDENCE, SIGNATURE]
    );
}

#[test]
fn evidence_whose_signature_cannot_be_read_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let request = request(root.path());
    sealed(&request);
    let [evidence, signature] = [EVIDENCE, SIGNATURE].map(|name| request.dir.files().join(name));
    let bytes = fs::read(&evidence).unwrap();
    fs::remove_file(&signature).unwrap();
    // A directory cannot be read as a file, even by root.
    fs::create_dir(&signature).unwrap();
    assert!(seal(&request, oneshot::channel().0).incomplete.is_some());
    assert_eq!(fs::read(&evidence).unwrap(), bytes);
}

#[test]
fn a_report_that_cannot_be_understood_is_named_in_the_evidence() {
    let root = tempfile::tempdir().unwrap();
    let request = request(root.path());
    fs::write(request.dir.files().join(ATTEMPT), "{").unwrap();
    sealed(&request);
    let evidence = Evidence::from_json(&fs::read(request.dir.files().join(EVIDENCE)).unwrap()).unwrap();
    let named = |reason: &String| reason.starts_with("attempt.json of the run process is invalid: ");
    assert!(evidence.not_a_measurement.iter().any(named), "{evidence:?}");
}
