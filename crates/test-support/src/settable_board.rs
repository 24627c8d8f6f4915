//! A simulated board from `agent/tests/board-roots` whose controls can be set, and the real helper behind a socket, started like under systemd.
//! `nvpmodel` and `systemctl` are fakes: shell scripts that change the board's files as the real programs change the kernel's.

use std::{
    collections::BTreeMap,
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use tempfile::TempDir;

/// A fake nvpmodel. It sets a mode's clock bounds and cores, and writes its status file.
const NVPMODEL: &str = r#"#!/bin/sh
# FAKE of nvpmodel for tests: nvpmodel -f FILE -m ID
root=${0%/usr/sbin/nvpmodel}
while [ -e "$root/nvpmodel-is-slow" ]; do sleep 0.05; done
case $4 in
    0) cpu=2201600 gpu=1300500000 cores=1 ;;
    2) cpu=1728000 gpu=612000000 cores=0 ;;
    *) exit 1 ;;
esac
for policy in "$root"/sys/devices/system/cpu/cpufreq/policy*; do
    echo 115200 >"$policy/scaling_min_freq"
    echo $cpu >"$policy/scaling_max_freq"
done
echo 306000000 >"$root/sys/class/devfreq/17000000.gpu/min_freq"
echo $gpu >"$root/sys/class/devfreq/17000000.gpu/max_freq"
for core in 8 9 10 11; do echo $cores >"$root/sys/devices/system/cpu/cpu$core/online"; done
echo "pmode:000$4 fmode:cool" >"$root/var/lib/nvpmodel/status"
exit 255
"#;

/// A fake systemctl with one service, whose state is a file.
const SYSTEMCTL: &str = r#"#!/bin/sh
# FAKE of systemctl for tests: systemctl is-active|start|stop nvfancontrol.service
state=${0%/usr/bin/systemctl}/fan-service
case $1 in
    is-active) read -r word <"$state"; echo "$word" ;;
    start) echo active >"$state" ;;
    stop) echo inactive >"$state" ;;
esac
"#;

/// Finds the board file `name` in `agent/tests/board-roots`.
fn board_file(name: &str) -> PathBuf {
    let places = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let file = format!("agent/tests/board-roots/{name}.root");
    places
        .map(|place| place.join(&file))
        .find(|path| path.exists())
        .unwrap()
}

/// Writes a board file's root directory, as the tests of `doctor` do.
pub fn board_root(name: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for line in fs::read_to_string(board_file(name)).unwrap().lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (path, content) = line.split_once(" =").unwrap();
        let content = content.strip_prefix(' ').unwrap_or(content);
        let content = content
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\0", "\0");
        put(root.path(), path, &content);
    }
    root
}

/// Writes a file below a root.
pub fn put(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Reads a file's text below a root, without its final newline.
pub fn get(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap().trim().to_owned()
}

/// Writes the root directory of an AGX Orin whose controls can be set: its board file, the missing controls and the fakes.
pub fn settable_orin() -> TempDir {
    let root = board_root("agx-orin-jetpack6");
    let at = root.path();
    put(at, "proc/sys/kernel/random/boot_id", "boot-1\n");
    for policy in ["policy0", "policy4", "policy8"] {
        let file = format!("sys/devices/system/cpu/cpufreq/{policy}/scaling_available_frequencies");
        put(
            at,
            &file,
            "115200 576000 729600 1036800 1113600 1728000 2201600\n",
        );
    }
    let gpu = "sys/class/devfreq/17000000.gpu/available_frequencies";
    put(at, gpu, "306000000 612000000 624750000 930750000 1300500000\n");
    for core in 1..12 {
        put(at, &format!("sys/devices/system/cpu/cpu{core}/online"), "1\n");
    }
    for (file, value) in [
        ("mrq_rate_locked", 0_u64),
        ("rate", 2_133_000_000),
        ("max_rate", 3_199_000_000),
    ] {
        put(
            at,
            &format!("sys/kernel/debug/bpmp/debug/clk/emc/{file}"),
            &format!("{value}\n"),
        );
    }
    for core in 0..2 {
        put(
            at,
            &format!("sys/kernel/debug/bpmp/debug/clk/nafll_dla{core}_core/max_rate"),
            "1600000000\n",
        );
        put(
            at,
            &format!("sys/kernel/nvpmodel_clk_cap/dla{core}_core"),
            "1600000000\n",
        );
    }
    put(at, "sys/kernel/nvpmodel_clk_cap/emc", "0\n");
    put(at, "lib/systemd/system/nvfancontrol.service", "");
    put(at, "fan-service", "active\n");
    for (path, script) in [("usr/sbin/nvpmodel", NVPMODEL), ("usr/bin/systemctl", SYSTEMCTL)] {
        put(at, path, script);
        fs::set_permissions(at.join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    root
}

/// Reads the bytes of every file below a root.
pub fn bytes_of(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Systemd's role in starting the helper: a socket, and one process per connection.
pub struct Socket {
    directory: TempDir,
    children: Arc<Mutex<Vec<Child>>>,
}

impl Socket {
    /// Listens; each helper runs `program` on `root` for `user`.
    pub fn listen(program: PathBuf, root: &Path, user: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let children = Arc::<Mutex<Vec<Child>>>::default();
        let (root, journal) = (root.to_owned(), directory.path().to_owned());
        let shared = Arc::clone(&children);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let child = spawn(&program, &root, &journal, user, connection);
                shared.lock().unwrap().push(child);
            }
        });
        Self { directory, children }
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Returns the path of the helpers' journal.
    pub fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    /// Kills every helper with SIGKILL.
    pub fn kill_helpers(&self) {
        for child in self.children.lock().unwrap().iter_mut() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        for child in self.children.lock().unwrap().iter_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(program: &Path, root: &Path, journal: &Path, user: u32, connection: UnixStream) -> Child {
    let output = connection.try_clone().unwrap();
    Command::new(program)
        .args(["--user", &user.to_string(), "--journal"])
        .arg(journal)
        .arg("--root")
        .arg(root)
        .stdin(Stdio::from(OwnedFd::from(connection)))
        .stdout(Stdio::from(OwnedFd::from(output)))
        .spawn()
        .unwrap()
}

/// Returns this process's user id.
pub fn own_user() -> u32 {
    rustix::process::getuid().as_raw()
}
