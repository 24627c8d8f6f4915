//! Tests of facts of a synthetic board, of an empty tree, and of the machine that runs the tests.

use super::*;

fn put(root: &Path, relative: &str, text: &str) {
    let path = root.join(relative);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_board_is_read_from_its_device_tree_and_sysfs() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root, "proc/sys/kernel/hostname", "boat-3\n");
    put(root, "proc/sys/kernel/osrelease", "5.15.148-tegra\n");
    put(
        root,
        "proc/device-tree/model",
        "NVIDIA Jetson AGX Orin Developer Kit\0",
    );
    put(root, "sys/class/dmi/id/product_name", "not asked\n");
    put(
        root,
        "etc/os-release",
        "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\n",
    );
    put(root, "sys/devices/system/cpu/online", "0-7,10\n");
    put(
        root,
        "proc/meminfo",
        "MemFree: 1 kB\nMemTotal:       65794592 kB\n",
    );
    put(
        root,
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "performance\n",
    );
    put(
        root,
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
        "2201600\n",
    );
    put(root, "sys/class/thermal/thermal_zone0/temp", "45125\n");
    put(root, "sys/class/thermal/thermal_zone9/temp", "51000\n");
    put(root, "sys/class/thermal/cooling_device0/temp", "99999\n");
    put(root, "proc/loadavg", "0.25 0.5 0.75 1/100 4242\n");
    let mut facts = FactsReader::below(root).read();
    facts.arch = "aarch64".to_owned();
    insta::assert_snapshot!(serde_json::to_string_pretty(&facts).unwrap());
}

#[test]
fn a_machine_that_tells_nothing_gives_empty_facts() {
    let dir = tempfile::tempdir().unwrap();
    let facts = FactsReader::below(dir.path()).read();
    let nothing = DeviceFacts {
        arch: std::env::consts::ARCH.to_owned(),
        ..DeviceFacts::default()
    };
    assert_eq!(facts, nothing);
}

#[test]
fn this_machine_has_processors_memory_and_a_kernel() {
    let facts = FactsReader::of_this_machine().read();
    assert!(
        facts.cpus > 0 && facts.memory_bytes > 0 && !facts.kernel.is_empty(),
        "{facts:?}"
    );
    assert!(facts.boot_id.is_some());
    assert_eq!(facts.boot_id, FactsReader::of_this_machine().boot_id());
}

#[test]
fn broken_cpu_lists_count_what_can_be_read() {
    for (list, cpus) in [
        ("0", 1),
        ("0-3", 4),
        ("0-1,4-5", 4),
        ("", 0),
        ("x,2", 1),
        ("0-4294967295", u32::MAX),
    ] {
        assert_eq!(count_cpu_list(list), cpus, "{list}");
    }
}

#[test]
fn hypervisors_and_containers_are_recognised_by_their_files() {
    let found = |files: &[(&str, &str)], cpuinfo: &str| {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            put(dir.path(), file, text);
        }
        let root = Root::new(dir.path());
        let container = host::container(&root);
        (host::hypervisor(&root, cpuinfo), container.unwrap_or_default())
    };
    let compatible = ("sys/firmware/devicetree/base/compatible", "linux,dummy-virt\0");
    let node = |text| ("sys/firmware/devicetree/base/hypervisor/compatible", text);
    let product = |text| ("sys/class/dmi/id/product_name", text);
    let amazon = ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    let version = ("sys/class/dmi/id/product_version", "Hyper-V UEFI Release v4.1\n");
    for (files, cpuinfo, hypervisor) in [
        (&[][..], "flags\t: fpu vme\n", None),
        (&[], "flags\t: fpu hypervisor\n", Some("unknown")),
        (&[compatible], "", Some("unknown")),
        (&[compatible, node("linux,kvm\0")], "", Some("KVM")),
        (&[compatible, node("xen,xen-4.17\0xen,xen\0")], "", Some("Xen")),
        (&[compatible, node("nvidia,other\0")], "", Some("unknown")),
        (&[amazon, product("c7g.xlarge\n")], "", Some("Amazon")),
        (&[amazon, product("c7g.metal\n")], "", None),
        (&[product("Virtual Machine\n"), version], "", Some("Hyper-V")),
        (&[product("Precision 3660\n")], "", None),
    ] {
        assert_eq!(
            found(files, cpuinfo),
            (hypervisor, String::new()),
            "{files:?} {cpuinfo}"
        );
    }
    for (file, text, maker) in [
        ("run/host/container-manager", "systemd-nspawn\n", "systemd-nspawn"),
        ("run/systemd/container", "lxc\n", "lxc"),
        ("run/.containerenv", "engine=\"podman-4.3.1\"\n", "podman"),
        (".dockerenv", "", "docker"),
    ] {
        assert_eq!(found(&[(file, text)], ""), (None, maker.to_owned()), "{file}");
    }
}
