//! Selects the outputs of a network that an answer is made of, as the benchmark's file names them.

use regatta_types::benchmark::Model;

use crate::ModelMismatch;

/// Returns the places of the outputs of an answer, in their order, among the names of the network's outputs.
///
/// # Errors
/// The network does not have a named output.
pub(crate) fn places<N: AsRef<str>>(model: &Model, names: &[N]) -> Result<Vec<usize>, ModelMismatch> {
    let takes_all = model.response.takes_all_outputs();
    if model.outputs.is_empty() {
        let count = if takes_all {
            names.len()
        } else {
            names.len().min(1)
        };
        return Ok((0..count).collect());
    }
    let place = |requested: &String| {
        let found = names.iter().position(|name| name.as_ref() == requested);
        found.ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            format!(
                "it has no output `{requested}`, which `outputs` names; its outputs are {}",
                names.join(", ")
            )
            .into()
        })
    };
    model.outputs.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use regatta_catalogue::known;
    use regatta_types::benchmark::Response;

    use super::*;

    #[test]
    fn named_outputs_replace_the_first_or_all() {
        let mut benchmarks = known::benchmarks().unwrap().into_iter();
        let mut model = benchmarks
            .find(|benchmark| benchmark.name == "digits")
            .unwrap()
            .model;
        let mut of = |response: Response, outputs: &[&str]| {
            model.response = response;
            model.outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
            places(&model, &["a", "b", "c"]).map_err(|error| error.to_string())
        };
        assert_eq!(of(Response::Raw, &[]), Ok(vec![0]));
        assert_eq!(of(Response::AllOutputs, &[]), Ok(vec![0, 1, 2]));
        assert_eq!(of(Response::ArgmaxInt32, &["b"]), Ok(vec![1]));
        assert_eq!(of(Response::Stacked, &["c", "a"]), Ok(vec![2, 0]));
        assert_eq!(
            of(Response::Raw, &["logits"]),
            Err("it has no output `logits`, which `outputs` names; its outputs are a, b, c".to_owned())
        );
    }
}
