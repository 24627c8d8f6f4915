//! Finds a node by its path.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Node;

/// The indices of all nodes by the hash of their paths. The nodes store the paths.
#[derive(Debug)]
pub(super) struct Index {
    hasher: DefaultHashBuilder,
    numbers: HashTable<usize>,
}

impl Index {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let hasher = DefaultHashBuilder::default();
        let mut numbers = HashTable::with_capacity(nodes.len());
        let hash = |node: &Node| hasher.hash_one(node.path.as_str());
        for (number, node) in nodes.iter().enumerate() {
            // Two names that only differ in invalid UTF-8 have the same path; either node may be found.
            numbers.insert_unique(hash(node), number, |&number| nodes.get(number).map_or(0, hash));
        }
        Self { hasher, numbers }
    }

    /// Returns the index of the node at `path`.
    pub(super) fn find(&self, nodes: &[Node], path: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(path);
        let found = |&number: &usize| nodes.get(number).is_some_and(|node| node.path == path);
        self.numbers.find(hash, found).copied()
    }
}
