//! The board: module, carrier and chip, from the device tree. Recognition does not depend on tables, which only add
//! familiar names. A machine without a device tree is a PC.

use serde::Serialize;

use super::{host::DUMMY, root::Root};

const MODULES: &str = include_str!("modules.csv");
/// Chip, family, CUDA compute capability.
const CHIPS: [(&str, &str, &str); 5] = [
    ("tegra210", "Maxwell", "5.3"),
    ("tegra186", "Pascal", "6.2"),
    ("tegra194", "Xavier", "7.2"),
    ("tegra234", "Orin", "8.7"),
    ("tegra264", "Thor", "11.0"),
];
/// Directories of the device tree. On most systems, the first is a link to the second.
const DEVICE_TREES: [&str; 2] = ["proc/device-tree", "sys/firmware/devicetree/base"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Board {
    /// The kind of machine.
    pub(crate) kind: Kind,
    /// The board's name for itself. Third-party carriers write their name here.
    pub(crate) model: Option<String>,
    /// The compute module.
    pub(crate) module: Option<Part>,
    /// The carrier that the device tree was made for. Third-party carriers often keep the developer kit's.
    pub(crate) carrier: Option<Part>,
    /// The system on chip.
    pub(crate) chip: Option<Chip>,
    /// Deep-learning accelerator cores that the device tree enables.
    pub(crate) dla_cores: usize,
}

/// The kind of machine, which determines where facts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A Tegra: Jetson module, IGX or similar.
    Jetson,
    /// Another machine with a device tree.
    Board,
    /// A machine without a device tree.
    Pc,
}

/// A part that NVIDIA's device trees name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    /// The part number, for example `p3701-0005`.
    pub(crate) part: String,
    /// Its familiar name.
    pub(crate) name: Option<String>,
}

/// A system on chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Chip {
    /// Its name in the device tree, for example `tegra234` or `bcm2712`.
    pub(crate) name: String,
    /// Its family, for example Orin.
    pub(crate) family: Option<&'static str>,
    /// CUDA compute capability of its GPU.
    pub(crate) compute_capability: Option<&'static str>,
}

impl Board {
    /// Reads the board.
    pub(crate) fn read(root: &Root) -> Self {
        let Some(tree) = device_tree(root) else {
            return Self {
                kind: Kind::Pc,
                model: root.text("sys/class/dmi/id/product_name"),
                module: None,
                carrier: None,
                chip: None,
                dla_cores: 0,
            };
        };
        let compatible = root.words(&format!("{tree}/compatible"));
        let file = root
            .text(&format!("{tree}/nvidia,dtsfilename"))
            .unwrap_or_default();
        let chip = chip(&compatible);
        let is_tegra = chip.as_ref().is_some_and(|chip| chip.name.starts_with("tegra"));
        let (module, carrier) = if is_tegra {
            module_and_carrier(&compatible, &file)
        } else {
            (None, None)
        };
        Self {
            kind: if is_tegra { Kind::Jetson } else { Kind::Board },
            model: root.text(&format!("{tree}/model")),
            module,
            carrier,
            chip,
            dla_cores: count_dla(root, tree, 0),
        }
    }
}

/// Returns the directory of the device tree, if there is one.
pub(super) fn device_tree(root: &Root) -> Option<&'static str> {
    DEVICE_TREES
        .into_iter()
        .find(|tree| root.exists(&format!("{tree}/compatible")))
}

/// Returns the chip from `compatible`. The last word is the most general and names the chip. JetPack 5 also has words
/// such as `nvidia,tegra23x`.
fn chip(compatible: &[String]) -> Option<Chip> {
    let real = || compatible.iter().filter(|word| *word != DUMMY);
    let names = || real().filter_map(|word| Some(word.split_once(',')?.1));
    let is_tegra = |name: &&str| {
        name.strip_prefix("tegra")
            .is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let name = names().find(is_tegra).or_else(|| names().next_back())?;
    let known = CHIPS.iter().find(|(chip, ..)| *chip == name);
    Some(Chip {
        name: name.to_owned(),
        family: known.map(|(_, family, _)| *family),
        compute_capability: known.map(|(.., capability)| *capability),
    })
}

/// Returns module and carrier from the part numbers in the device tree. In `nvidia,CARRIER+MODULE`, the part after the
/// plus sign is the module, even if its family is not listed.
fn module_and_carrier(compatible: &[String], file: &str) -> (Option<Part>, Option<Part>) {
    let parts: Vec<String> = compatible
        .iter()
        .map(String::as_str)
        .chain([file])
        .flat_map(part_numbers)
        .collect();
    let behind_plus = || {
        let joined = compatible.iter().find_map(|word| word.split_once('+'))?;
        part_numbers(joined.1).into_iter().next()
    };
    let module = parts
        .iter()
        .find(|part| module_name(part).is_some())
        .cloned()
        .or_else(behind_plus);
    let carrier = parts
        .into_iter()
        .find(|part| module.as_ref() != Some(part) && module_name(part).is_none());
    let module = module.map(|part| Part {
        name: module_name(&part),
        part,
    });
    (module, carrier.map(|part| Part { part, name: None }))
}

/// Returns every `pNNNN-NNNN` in a text.
fn part_numbers(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.collect();
    let is_number = |word: &str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    words
        .windows(2)
        .filter(|pair| pair[0].strip_prefix('p').is_some_and(is_number) && is_number(pair[1]))
        .map(|pair| format!("{}-{}", pair[0], pair[1]))
        .collect()
}

fn module_name(part: &str) -> Option<String> {
    let rows = || {
        MODULES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(','))
    };
    let exact = rows().find(|(known, _)| *known == part);
    let family = || {
        rows().find(|(known, _)| {
            known
                .strip_suffix('*')
                .is_some_and(|family| part.starts_with(family))
        })
    };
    exact.or_else(family).map(|(_, name)| name.to_owned())
}

/// Counts the enabled `nvdla0@...` nodes below `host1x@...`, and below `bus@0` on newer trees.
fn count_dla(root: &Root, node: &str, depth: u8) -> usize {
    let children = root.names(node);
    let is_on = |name: &&String| {
        let status = root.text(&format!("{node}/{name}/status"));
        status.is_none_or(|status| status == "okay" || status == "ok")
    };
    let here = children
        .iter()
        .filter(|name| name.starts_with("nvdla") && name.contains('@'))
        .filter(is_on)
        .count();
    let inner = children
        .iter()
        .filter(|name| depth < 2 && (name.starts_with("host1x@") || name.starts_with("bus@")));
    here + inner
        .map(|name| count_dla(root, &format!("{node}/{name}"), depth + 1))
        .sum::<usize>()
}
