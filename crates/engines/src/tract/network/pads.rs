//! `Pad` with negative pads, which cut. tract counts them as very large ones, so that they become a `Slice` before it.

use tract_onnx::{
    pb::{GraphProto, NodeProto, TensorProto, tensor_proto::DataType},
    tensor::load_tensor,
};

use super::unsupported_node::UnsupportedNode;

/// Replaces the negative constant pads of a graph. Those of inner graphs and computed ones stay, and tract refuses them.
pub(super) fn replace_negative(graph: &mut GraphProto) -> Result<(), UnsupportedNode> {
    let mut nodes = Vec::with_capacity(graph.node.len());
    for mut node in std::mem::take(&mut graph.node) {
        let pads = (node.op_type == "Pad")
            .then(|| pads(&node, graph, &nodes))
            .flatten();
        let Some(pads) = pads.filter(|pads| pads.iter().any(|&pad| pad < 0)) else {
            nodes.push(node);
            continue;
        };
        let attribute = |name: &str| node.attribute.iter().find(|attribute| attribute.name == name);
        if attribute("pads").is_some() {
            let reason = "negative pads need operator set 11 or a later one";
            return Err(UnsupportedNode::new(&node, reason));
        }
        if attribute("mode").is_some_and(|mode| mode.s != b"constant") {
            let reason = "its pads are negative, and its mode is not constant";
            return Err(UnsupportedNode::new(&node, reason));
        }
        let slice = slice(&mut node, &pads, graph);
        nodes.extend([slice, node]);
    }
    graph.node = nodes;
    Ok(())
}

/// Returns the constant pads of a node.
fn pads(node: &NodeProto, graph: &GraphProto, before: &[NodeProto]) -> Option<Vec<i64>> {
    match node.attribute.iter().find(|attribute| attribute.name == "pads") {
        Some(pads) => Some(pads.ints.clone()),
        None => constant(node.input.get(1)?, graph, before),
    }
}

/// Returns a constant of integers by its name.
fn constant(name: &str, graph: &GraphProto, before: &[NodeProto]) -> Option<Vec<i64>> {
    let of_node = || {
        let node = before
            .iter()
            .find(|node| node.output.iter().any(|output| output == name))?;
        let value = node
            .attribute
            .iter()
            .find(|attribute| attribute.name == "value")?;
        value.t.as_ref().filter(|_| node.op_type == "Constant")
    };
    let proto = graph.initializer.iter().find(|tensor| tensor.name == name);
    let tensor = load_tensor(&*tract_onnx::onnx().provider, proto.or_else(of_node)?, None).ok()?;
    let numbers = tensor.cast_to::<i64>().ok()?;
    Some(numbers.try_as_plain_ram().ok()?.as_slice::<i64>().ok()?.to_vec())
}

/// Makes the negative pads of a node 0, and returns the node that cuts instead of them.
fn slice(node: &mut NodeProto, pads: &[i64], graph: &mut GraphProto) -> NodeProto {
    let unique = format!("{}.cut", node.output.first().map_or("", String::as_str));
    let (begins, ends) = pads.split_at(pads.len() / 2);
    let starts: Vec<i64> = begins.iter().map(|&pad| (-pad).max(0)).collect();
    let stops: Vec<i64> = ends
        .iter()
        .map(|&pad| if pad < 0 { pad } else { i64::MAX })
        .collect();
    let positive: Vec<i64> = pads.iter().map(|&pad| pad.max(0)).collect();
    let mut add = |suffix: &str, values: &[i64]| {
        let name = format!("{unique}.{suffix}");
        graph.initializer.push(TensorProto {
            name: name.clone(),
            dims: vec![values.len() as i64],
            data_type: DataType::Int64.into(),
            int64_data: values.to_vec(),
            ..TensorProto::default()
        });
        name
    };
    let axes = node.input.get(3).filter(|name| !name.is_empty()).cloned();
    let mut input = vec![
        node.input.first().cloned().unwrap_or_default(),
        add("starts", &starts),
        add("ends", &stops),
    ];
    input.extend(axes);
    // It has pads, which are its second input.
    node.input[1] = add("pads", &positive);
    node.input[0].clone_from(&unique);
    NodeProto {
        name: unique.clone(),
        op_type: "Slice".to_owned(),
        input,
        output: vec![unique],
        ..NodeProto::default()
    }
}
