//! Forged power.

use super::{Class, Forgery, class};
use crate::{random::Random, specimen::Specimen};

fn samples(
    specimen: &Specimen,
    random: &mut Random,
    change: impl Fn(Vec<&str>) -> Vec<String>,
) -> Option<Forgery> {
    let path = specimen.any_file(random, |path| path.ends_with("run_1/spl.txt"))?;
    let text = specimen.text(&path);
    let lines = change(text.split_inclusive('\n').collect());
    let what = format!("{} samples in {path}", lines.len());
    Some(Forgery {
        what,
        edits: vec![(path, lines.concat().into_bytes())],
    })
}

pub(super) const GAP: Class = class("a gap in the samples", &["power"], |specimen, random| {
    let length = 30 + random.below(150);
    let from = random.between(0.1, 0.6);
    samples(specimen, random, |lines| {
        let from = (lines.len() as f64 * from) as usize;
        let kept = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| !(from..from + length).contains(at));
        kept.map(|(_, line)| (*line).to_owned()).collect()
    })
});

pub(super) const SAMPLES: Class = class(
    "samples of less power",
    &["power", "power-session"],
    |specimen, random| {
        let factor = random.between(0.5, 0.95);
        samples(specimen, random, |lines| {
            let less = |line: &str| {
                let mut fields: Vec<_> = line.split(',').map(str::to_owned).collect();
                if let Some(watts) = fields.get_mut(3)
                    && let Ok(number) = watts.trim().parse::<f64>()
                {
                    *watts = format!("{:.3}", number * factor);
                }
                fields.join(",")
            };
            lines.into_iter().map(less).collect()
        })
    },
);
