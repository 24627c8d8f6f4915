//! What this system runs on instead of a machine of its own: a hypervisor, a container of another system. Read from the files in
//! which `systemd-detect-virt` looks (systemd, `src/basic/virt.c`), as far as every user may read them; no process is started. The
//! BIOS's own flag for a virtual machine is left out: root alone sees it.

use super::root::Root;

/// Beginnings of the names that hypervisors give to the machines they pretend to be, in SMBIOS.
const SMBIOS_NAMES: [(&str, &str); 16] = [
    ("KVM", "KVM"),
    ("OpenStack", "KVM"),
    ("KubeVirt", "KVM"),
    ("QEMU", "QEMU"),
    ("VMware", "VMware"),
    ("VMW", "VMware"),
    ("innotek GmbH", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("Bochs", "Bochs"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "Hyper-V"),
    ("Apple Virtualization", "Apple"),
    ("Google Compute Engine", "Google"),
    (AMAZON, "Amazon"),
];
/// Rents whole machines too; their names end with `.metal`.
const AMAZON: &str = "Amazon EC2";
/// Where SMBIOS's names lie; the product says more than its maker.
const SMBIOS_FILES: [&str; 5] = [
    "product_name",
    "sys_vendor",
    "board_vendor",
    "bios_vendor",
    "product_version",
];
/// The machine that qemu, kvmtool, crosvm, Firecracker and others pretend to be: Linux has a device tree's name for it.
pub(super) const DUMMY: &str = "linux,dummy-virt";

/// A hypervisor that is seen and does not say which it is.
const UNKNOWN: &str = "unknown";

/// The hypervisor below, if there is one: its name, or [`UNKNOWN`].
pub(super) fn hypervisor(root: &Root, cpuinfo: &str) -> Option<&'static str> {
    let is_flagged = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    let by_files = by_device_tree(root).or_else(|| by_smbios(root));
    by_files.or_else(|| is_flagged.then_some(UNKNOWN))
}

/// A node that hypervisors leave for their guests, qemu's way of handing over files, or a board that there is not.
fn by_device_tree(root: &Root) -> Option<&'static str> {
    let tree = super::board::device_tree(root)?;
    if let Some(compatible) = root.text(&format!("{tree}/hypervisor/compatible")) {
        let names = [("kvm", "KVM"), ("xen", "Xen"), ("vmware", "VMware")];
        let name = names.iter().find(|(word, _)| compatible.contains(word));
        return Some(name.map_or(UNKNOWN, |(_, name)| *name));
    }
    if root.names(tree).iter().any(|name| name.starts_with("fw-cfg")) {
        return Some("QEMU");
    }
    let compatible = root.words(&format!("{tree}/compatible"));
    compatible.iter().any(|word| word == DUMMY).then_some(UNKNOWN)
}

fn by_smbios(root: &Root) -> Option<&'static str> {
    let text = |file: &str| root.text(&format!("sys/class/dmi/id/{file}"));
    let known = |text: String| SMBIOS_NAMES.iter().find(|(begin, _)| text.starts_with(begin));
    let (begin, name) = SMBIOS_FILES.into_iter().filter_map(text).find_map(known)?;
    let is_whole = *begin == AMAZON && text("product_name").is_some_and(|product| product.contains(".metal"));
    (!is_whole).then_some(name)
}

/// What made the container in which this program runs: what systemd or the container's maker has left in it.
pub(super) fn container(root: &Root) -> Option<String> {
    let told = ["run/host/container-manager", "run/systemd/container"];
    let marks = [("run/.containerenv", "podman"), (".dockerenv", "docker")];
    let mark = || {
        marks
            .iter()
            .find(|(file, _)| root.exists(file))
            .map(|(_, name)| *name)
    };
    let told = told.into_iter().find_map(|file| root.text(file));
    told.or_else(|| mark().map(str::to_owned))
}
