//! Selects the outputs of a network that an answer is made of, as the benchmark's file names them.

use regatta_types::benchmark::Model;

use crate::ModelMismatch;

/// Returns the places of the outputs of an answer, in their order, among the names of the network's outputs.
///
/// # Errors
/// The network does not have a named output, or the answer is made of another number of them.
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
    if !takes_all && model.outputs.len() > 1 {
        return Err(format!(
            "`outputs` names {}, but the benchmark's responses are made of one output",
            model.outputs.join(", ")
        )
        .into());
    }
    if let Some(twice) =
        (1..model.outputs.len()).find(|&last| model.outputs[..last].contains(&model.outputs[last]))
    {
        return Err(format!("`outputs` names {} twice", model.outputs[twice]).into());
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
            of(Response::Stacked, &["a", "b", "a"]),
            Err("`outputs` names a twice".to_owned())
        );
        assert_eq!(
            of(Response::Raw, &["logits"]),
            Err("it has no output `logits`, which `outputs` names; its outputs are a, b, c".to_owned())
        );
        assert_eq!(
            of(Response::Raw, &["a", "b"]),
            Err("`outputs` names a, b, but the benchmark's responses are made of one output".to_owned())
        );
    }
}
