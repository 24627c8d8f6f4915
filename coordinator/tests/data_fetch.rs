//! `regatta data fetch` over real connections: downloads are resumed where they were cut, verified, and never made of gated items. The
//! server is on loopback and as faulty as a test wants.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use regatta_fsutil::hash::sha256_hex;
use regatta_test_support::eventually;
use tempfile::TempDir;

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Answers correctly.
    Faultless,
    /// Cuts each connection after this number of bytes.
    CutAfter(usize),
    /// Sends nothing after this number of bytes, until another manner is set.
    StallAfter(usize),
    /// Sends whole files only.
    WithoutRanges,
    /// Knows no file.
    Missing,
}

/// A server of one file. It notes the first byte that each request asks for.
struct Server {
    address: String,
    manner: Arc<Mutex<Manner>>,
    requests: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    fn start(content: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            manner: Arc::new(Mutex::new(Manner::Faultless)),
            requests: Arc::default(),
        };
        let (manner, requests) = (Arc::clone(&server.manner), Arc::clone(&server.requests));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let first = answer(stream.unwrap(), &content, &manner);
                requests.lock().unwrap().push(first);
            }
        });
        server
    }

    fn be(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
        self.requests.lock().unwrap().clear();
    }

    fn requests(&self) -> Vec<usize> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers a request. Returns the first byte that it asked for.
fn answer(mut stream: TcpStream, content: &[u8], current: &Mutex<Manner>) -> usize {
    let manner = *current.lock().unwrap();
    let mut first = 0;
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap().to_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            first = range.trim_end_matches('-').parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let all = content.len();
    let (status, body, range) = match manner {
        Manner::Missing => ("404 Not Found", &b"no"[..], String::new()),
        Manner::WithoutRanges => ("200 OK", content, String::new()),
        _ if first >= all && first > 0 => ("416 Range Not Satisfiable", &[][..], String::new()),
        _ if first > 0 => {
            let range = format!("Content-Range: bytes {first}-{}/{all}\r\n", all - 1);
            ("206 Partial Content", &content[first..], range)
        }
        _ => ("200 OK", content, String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{range}\r\n",
        body.len()
    );
    let sent = match manner {
        Manner::CutAfter(bytes) | Manner::StallAfter(bytes) => &body[..bytes.min(body.len())],
        _ => body,
    };
    // curl closes the connection when it does not want the body.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(sent));
    while matches!(manner, Manner::StallAfter(_)) && *current.lock().unwrap() == manner {
        thread::sleep(Duration::from_millis(20));
    }
    first
}

/// A workspace whose benchmark `fetched` has files at a server.
struct Place {
    directory: TempDir,
    server: Server,
}

impl Place {
    /// `downloads` are the benchmark's, with URL in place of the server's address.
    fn new(content: Vec<u8>, downloads: &str) -> Self {
        let place = Self {
            directory: tempfile::tempdir().unwrap(),
            server: Server::start(content),
        };
        let made = place.regatta(&["init"]);
        assert!(made.status.success(), "{made:?}");
        let digits = include_str!("../../configs/benchmarks/digits.toml")
            .replace("name = \"digits\"", "name = \"fetched\"");
        let configs = place.workspace().join("configs/benchmarks");
        fs::create_dir_all(&configs).unwrap();
        let text = format!("{digits}\n{}", downloads.replace("URL", &place.server.address));
        fs::write(configs.join("fetched.toml"), text).unwrap();
        place
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("lab")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command
            .args(arguments)
            .env("REGATTA_WORKSPACE", self.workspace())
            .env_remove("MLPERF_SCRATCH_PATH");
        command
    }

    fn regatta(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Fetches, and returns exit code, output and errors.
    fn fetch(&self) -> (Option<i32>, String, String) {
        let output = self.regatta(&["data", "fetch", "fetched"]);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn scratch(&self, path: &str) -> PathBuf {
        self.workspace().join("scratch").join(path)
    }
}

fn content() -> Vec<u8> {
    (0..300_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

/// A download of the whole file at `data/file.bin` with its checksum.
fn download(checksum: &str) -> String {
    format!(
        "[[downloads]]\ntitle = \"a file\"\npurpose = \"dataset\"\nurl = \"URL/file.bin\"\npath = \"data/file.bin\"\nfiles = 1\n\
         fetch = \"file\"\nchecksums = [\"sha256:{checksum}\"]\n"
    )
}

fn part_of(path: &Path) -> PathBuf {
    path.with_added_extension("part")
}

#[test]
fn interrupted_download_is_resumed_until_complete() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    place.server.be(Manner::CutAfter(500_000));
    let (code, printed, errors) = place.fetch();
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        printed.contains("fetched: ") && printed.contains("SHA-256 as published"),
        "{printed}"
    );
    assert!(fs::read(place.scratch("data/file.bin")).unwrap() == content);
    assert_eq!(place.server.requests(), [0, 500_000, 1_000_000]);
    place.server.be(Manner::Missing);
    let (code, printed, _) = place.fetch();
    assert_eq!((code, place.server.requests().len()), (Some(0), 0));
    assert!(printed.contains("present: "), "{printed}");
    assert_eq!(
        place
            .regatta(&["data", "show", "fetched", "--verify"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn an_ended_download_keeps_its_bytes_and_a_later_one_continues() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let file = place.scratch("data/file.bin");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(part_of(&file), &content[..700_000]).unwrap();
    // No byte arrives.
    place.server.be(Manner::CutAfter(0));
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        errors.contains("700000 bytes are kept, and the same command continues"),
        "{errors}"
    );
    assert!(!file.exists());
    place.server.be(Manner::Faultless);
    assert_eq!(place.fetch().0, Some(0));
    assert_eq!(place.server.requests(), [700_000]);
    assert!(fs::read(&file).unwrap() == content);
}

#[test]
fn a_server_without_ranges_sends_the_whole_file_again() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let file = place.scratch("data/file.bin");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for begun in [&content[..1000], &content] {
        fs::write(part_of(&file), begun).unwrap();
        place.server.be(Manner::WithoutRanges);
        let (code, _, errors) = place.fetch();
        assert_eq!(code, Some(0), "{errors}");
        assert!(fs::read(&file).unwrap() == content);
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_file_beyond_its_published_size_ends_the_download() {
    let content = content();
    let published = download(&sha256_hex(&content[..1000])) + "bytes = 1000\n";
    let place = Place::new(content, &published);
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("is larger than 1000 bytes"), "{errors}");
    let file = place.scratch("data/file.bin");
    let left = fs::metadata(part_of(&file)).unwrap().len();
    assert!(!file.exists() && left == 0, "{left}");
}

/// curl outlives the command, and would write to the same file as that of the next command.
#[test]
fn the_download_of_a_killed_command_is_left_alone_and_then_continued() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let file = place.scratch("data/file.bin");
    place.server.be(Manner::StallAfter(500_000));
    let mut killed = place
        .command(&["data", "fetch", "fetched"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the first bytes", 30, || {
        // curl keeps the last few bytes.
        fs::metadata(part_of(&file)).is_ok_and(|part| part.len() > 400_000)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (code, _, errors) = place.fetch();
    assert!(
        code == Some(3) && errors.contains("another download of"),
        "{errors}"
    );
    place.server.be(Manner::Faultless);
    eventually("the download", 30, || place.fetch().0 == Some(0));
    assert!(fs::read(&file).unwrap() == content && !part_of(&file).exists());
    assert!(
        place
            .server
            .requests()
            .last()
            .is_some_and(|first| *first > 400_000)
    );
}

#[test]
fn the_part_of_a_file_that_came_in_another_way_is_removed() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let file = place.scratch("data/file.bin");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(part_of(&file), &content[..700_000]).unwrap();
    fs::write(&file, &content).unwrap();
    let (code, printed, errors) = place.fetch();
    assert!(
        code == Some(0) && printed.contains("present: "),
        "{printed}{errors}"
    );
    assert!(!part_of(&file).exists());
}

/// The last one finds the file of the first, and neither damages the other's.
#[test]
fn fetches_at_once_leave_one_complete_file() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let results: Vec<(Option<i32>, String)> = thread::scope(|scope| {
        let fetches: Vec<_> = (0..4).map(|_| scope.spawn(|| place.fetch())).collect();
        let ended = fetches.into_iter().map(|fetch| fetch.join().unwrap());
        ended.map(|(code, _, errors)| (code, errors)).collect()
    });
    assert!(results.iter().any(|(code, _)| *code == Some(0)), "{results:?}");
    let is_busy = |errors: &str| errors.contains("another download of");
    let mut others = results.iter().filter(|(code, _)| *code != Some(0));
    assert!(others.all(|(_, errors)| is_busy(errors)), "{results:?}");
    let file = place.scratch("data/file.bin");
    assert!(fs::read(&file).unwrap() == content && !part_of(&file).exists());
}

#[test]
fn a_file_with_another_hash_is_removed_and_named() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(b"another")));
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(3), "{errors}");
    let found = sha256_hex(&content);
    assert!(
        errors.contains(&format!("its SHA-256 is {found}, the published one ")),
        "{errors}"
    );
    assert!(errors.contains("it was removed"), "{errors}");
    let file = place.scratch("data/file.bin");
    assert!(!file.exists() && !part_of(&file).exists());
    // A file that was there before is the user's.
    fs::write(&file, &content).unwrap();
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("move it, then") && file.exists(), "{errors}");
    let shown = place.regatta(&["data", "show", "fetched", "--verify"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(
        String::from_utf8(shown.stdout)
            .unwrap()
            .contains("not the published file: its SHA-256 is")
    );
}

#[test]
fn archives_get_their_command_and_gated_items_their_reason() {
    let content = content();
    let mut downloads = String::from(
        "[[downloads]]\ntitle = \"images\"\npurpose = \"dataset\"\nurl = \"URL/images\"\nterms = \"registration\"\npath = \"data/images/\"\nfiles = 3\n",
    );
    let _ = write!(
        downloads,
        "[[downloads]]\ntitle = \"labels\"\npurpose = \"labels\"\nurl = \"URL/labels.tar.gz\"\npath = \"data/labels/\"\nfiles = 2\nbytes = 7\n\
         fetch = {{ archive = \"data\" }}\nchecksums = [\"labels.tar.gz sha256:{}\"]\n",
        sha256_hex(&content)
    );
    let place = Place::new(content, &downloads);
    let (code, printed, errors) = place.fetch();
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        printed.contains("not fetched: images") && printed.contains("(registration)"),
        "{printed}"
    );
    let archive = place.scratch("downloads/labels.tar.gz");
    let data = place.scratch("data");
    let command = format!("tar -xf '{}' -C '{}'", archive.display(), data.display());
    assert!(printed.contains(&command) && archive.is_file(), "{printed}");
    assert_eq!(place.server.requests(), [0]);
    // Unpacked, the archive is not needed any more.
    fs::remove_file(&archive).unwrap();
    fs::create_dir_all(data.join("labels")).unwrap();
    for name in ["one", "two"] {
        fs::write(data.join("labels").join(name), "").unwrap();
    }
    let (code, printed, _) = place.fetch();
    assert_eq!((code, place.server.requests().len()), (Some(0), 1));
    assert!(printed.contains("unpacked: "), "{printed}");
}

#[test]
fn an_unknown_file_ends_the_command_with_the_servers_answer() {
    let place = Place::new(content(), &download(&sha256_hex(b"")));
    place.server.be(Manner::Missing);
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        errors.contains("404") && errors.contains("0 bytes are kept"),
        "{errors}"
    );
    assert_eq!(place.server.requests().len(), 1);
}

#[test]
fn a_broken_proxy_is_named_and_the_same_command_continues_without_it() {
    let content = content();
    let place = Place::new(content.clone(), &download(&sha256_hex(&content)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    let output = command
        .args(["data", "fetch", "fetched"])
        .env("REGATTA_WORKSPACE", place.workspace())
        .env("http_proxy", "http://127.0.0.1:9")
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("through the proxy http://127.0.0.1:9 (correct or unset http_proxy if it is wrong)")
            && errors.contains("the same command continues"),
        "{errors}"
    );
    assert_eq!(place.server.requests().len(), 0);
    let (code, _, errors) = place.fetch();
    assert_eq!(code, Some(0), "{errors}");
}
