//! The hypervisor or container that this system runs in. The facts come from the files that `systemd-detect-virt` reads
//! (systemd, `src/basic/virt.c`), as far as every user may read them. No process is started. The BIOS flag for virtual
//! machines is not used, because only root can read it.

use super::root::Root;

/// Prefixes of the SMBIOS names of virtual machines, and their hypervisors.
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
/// Amazon also rents complete machines, whose names end with `.metal`.
const AMAZON: &str = "Amazon EC2";
/// The files of SMBIOS names. The product is more specific than its vendor.
const SMBIOS_FILES: [&str; 5] = [
    "product_name",
    "sys_vendor",
    "board_vendor",
    "bios_vendor",
    "product_version",
];
/// The device tree's name for the virtual machine of qemu, kvmtool, crosvm, Firecracker and others.
pub(super) const DUMMY: &str = "linux,dummy-virt";

/// The name of an unidentified hypervisor.
const UNKNOWN: &str = "unknown";

/// Returns the hypervisor's name or [`UNKNOWN`]. Returns `None` on a physical machine.
pub(super) fn hypervisor(root: &Root, cpuinfo: &str) -> Option<&'static str> {
    let is_flagged = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    let by_files = by_device_tree(root).or_else(|| by_smbios(root));
    by_files.or_else(|| is_flagged.then_some(UNKNOWN))
}

/// Detects a hypervisor by its device tree node, by qemu's `fw-cfg` node, or by the virtual board's name.
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

/// Returns the container's manager, from the files that systemd or the manager creates.
pub(super) fn container(root: &Root) -> Option<String> {
    let files = ["run/host/container-manager", "run/systemd/container"];
    let marks = [("run/.containerenv", "podman"), (".dockerenv", "docker")];
    let mark = || {
        marks
            .iter()
            .find(|(file, _)| root.exists(file))
            .map(|(_, name)| *name)
    };
    let marker = files.into_iter().find_map(|file| root.text(file));
    marker.or_else(|| mark().map(str::to_owned))
}
