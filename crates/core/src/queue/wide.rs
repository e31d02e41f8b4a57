//! Ordered trees of tasks for long queues: B+ trees.
//!
//! A search touches a few nodes of a few cache lines each, where one in a
//! [`Forest`](super::Forest) touches a line per comparison: with a million tasks that is memory
//! out of the caches two dozen times. Short queues are better off there: a node takes some 650
//! bytes, however few tasks it has.
//!
//! Source: R. Bayer, E. McCreight, Organization and Maintenance of Large Ordered Indices, Acta
//! Informatica 1, 1972; D. Comer, The Ubiquitous B-Tree, Computing Surveys 11(2), 1979.
//!
//! Tasks are in the leaves, which are linked in order. Deviations: a full node that grows at its
//! end is left full, so that a queue that only grows at its end is packed; two neighbours in one
//! parent are merged when they fill less than three quarters of a node together, whatever each of
//! them has; the first leaf is not, because it is on its way out where tasks are taken from the
//! front.

use alloc::vec::Vec;

use super::NONE;
use crate::canon::{self, Canon, Canonical};
use crate::ids::TaskId;

/// The most entries of a node.
const WIDTH: usize = 32;

/// Neighbours with at most this many entries together are merged.
const MERGED: usize = WIDTH * 3 / 4;

/// Two numbers as one, which is compared without a branch: nobody could predict those of a search.
type Key = u128;

#[inline]
fn key((first, second): (u64, u64)) -> Key {
    Key::from(first) << 64 | Key::from(second)
}

/// How many of `keys`, which ascend, are at most `key`.
#[inline]
fn count_up_to(keys: &[Key], key: Key) -> usize {
    keys.iter().map(|&other| usize::from(other <= key)).sum()
}

/// The nodes of all trees of a policy: each task is in at most one [`WideTree`] at a time.
#[derive(Clone, Debug)]
pub struct WideForest {
    nodes: Vec<Node>,
    /// The first node that is not in use; the others follow as `next`.
    free: u32,
    /// Per task, the leaf it is in.
    leaf_of: Vec<u32>,
    /// How many trees there are at most.
    trees: usize,
}

/// Entries `start .. start + len` are in use.
#[derive(Clone, Debug)]
struct Node {
    /// Of a leaf, the keys of its tasks. Of another node, keys that divide its children: what is
    /// in a child is not before its key and not behind the next one's. The first key is not used.
    keys: [Key; WIDTH],
    /// Tasks, or nodes.
    items: [u32; WIDTH],
    start: u8,
    len: u8,
    is_leaf: bool,
    parent: u32,
    /// Neighbours of a leaf.
    prev: u32,
    next: u32,
}

/// One ordered tree; its nodes are in a [`WideForest`].
#[derive(Clone, Copy, Debug)]
pub struct WideTree {
    root: u32,
    /// The first and the last leaf.
    first: u32,
    last: u32,
    len: u32,
}

impl Default for WideTree {
    fn default() -> WideTree {
        WideTree { root: NONE, first: NONE, last: NONE, len: 0 }
    }
}

impl WideTree {
    /// How many tasks are in the tree.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no task is in the tree.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Node {
    fn new(is_leaf: bool, parent: u32) -> Node {
        let keys = [0; WIDTH];
        let items = [NONE; WIDTH];
        Node { keys, items, start: 0, len: 0, is_leaf, parent, prev: NONE, next: NONE }
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    fn keys(&self) -> &[Key] {
        &self.keys[usize::from(self.start)..][..self.len()]
    }

    #[inline]
    fn items(&self) -> &[u32] {
        &self.items[usize::from(self.start)..][..self.len()]
    }

    /// How many entries of a leaf are not behind `key`.
    #[inline]
    fn rank(&self, key: Key) -> usize {
        count_up_to(self.keys(), key)
    }

    /// The child that `key` belongs to.
    #[inline]
    fn child(&self, key: Key) -> u32 {
        self.items()[count_up_to(&self.keys()[1..], key)]
    }

    /// The place of `item`, which must be here.
    fn place_of(&self, item: u32) -> usize {
        self.items().iter().position(|&other| other == item).unwrap_or(0)
    }

    /// Adds an entry to a node that is not full: the `place`-th from then on.
    fn insert(&mut self, place: usize, key: Key, item: u32) {
        let (start, len) = (usize::from(self.start), self.len());
        let at = if start > 0 && (2 * place < len || start + len == WIDTH) {
            self.keys.copy_within(start..start + place, start - 1);
            self.items.copy_within(start..start + place, start - 1);
            self.start -= 1;
            start + place - 1
        } else {
            self.keys.copy_within(start + place..start + len, start + place + 1);
            self.items.copy_within(start + place..start + len, start + place + 1);
            start + place
        };
        (self.keys[at], self.items[at]) = (key, item);
        self.len += 1;
    }

    /// Removes the `place`-th entry.
    #[inline]
    fn remove(&mut self, place: usize) {
        let (start, len) = (usize::from(self.start), self.len());
        if place == 0 {
            self.start += 1;
        } else {
            self.keys.copy_within(start + place + 1..start + len, start + place);
            self.items.copy_within(start + place + 1..start + len, start + place);
        }
        self.len -= 1;
        if self.len == 0 {
            self.start = 0;
        }
    }
}

impl WideForest {
    /// No tasks, and room for `trees` trees.
    pub fn new(trees: usize) -> WideForest {
        WideForest { nodes: Vec::new(), free: NONE, leaf_of: Vec::new(), trees }
    }

    /// Makes room for `task`. Allocates; every other operation does not.
    pub fn attach(&mut self, task: TaskId) {
        if self.leaf_of.len() <= task.index() {
            self.leaf_of.resize(task.index() + 1, NONE);
            let needed = self.most_nodes();
            self.nodes.reserve(needed.saturating_sub(self.nodes.len()));
        }
    }

    /// The most nodes that there can be. Two neighbours in one parent have together at least
    /// [`MERGED`] entries if they are leaves, and more than half a node if not: the last of a level
    /// has few and the one before it may be split. So of n tasks there are at most n / 12 leaves
    /// and one for each parent; of these at most 2 / 17 of that and one for each of theirs. All
    /// levels together stay below n / 9, and the first and the last of each level.
    fn most_nodes(&self) -> usize {
        self.leaf_of.len() / 9 + 16 * self.trees
    }

    #[inline]
    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// The task with the smallest key.
    #[inline]
    pub fn first(&self, tree: &WideTree) -> Option<TaskId> {
        let leaf = self.nodes.get(tree.first as usize)?;
        Some(TaskId(leaf.items[usize::from(leaf.start)]))
    }

    /// The tasks with the smallest keys, as far as they are stored together, in order, and a number
    /// that changes with the place. Whoever takes tasks one by one can read ahead what it knows of
    /// them: misses of the caches that do not wait for each other cost little more than one.
    #[inline]
    pub fn first_together(&self, tree: &WideTree) -> (u32, &[u32]) {
        match self.nodes.get(tree.first as usize) {
            Some(leaf) => (tree.first, leaf.items()),
            None => (NONE, &[]),
        }
    }

    /// The tasks of `tree` by ascending key.
    pub fn iter<'a>(&'a self, tree: &WideTree) -> impl Iterator<Item = TaskId> + use<'a> {
        let leaves = core::iter::successors(self.nodes.get(tree.first as usize), |leaf| {
            self.nodes.get(leaf.next as usize)
        });
        leaves.flat_map(|leaf| leaf.items().iter().map(|&task| TaskId(task)))
    }

    /// The tasks of `tree` by descending key.
    pub fn iter_back<'a>(&'a self, tree: &WideTree) -> impl Iterator<Item = TaskId> + use<'a> {
        let leaves = core::iter::successors(self.nodes.get(tree.last as usize), |leaf| {
            self.nodes.get(leaf.prev as usize)
        });
        leaves.flat_map(|leaf| leaf.items().iter().rev().map(|&task| TaskId(task)))
    }

    fn take_node(&mut self, is_leaf: bool, parent: u32) -> u32 {
        let node = self.free;
        if node == NONE {
            self.nodes.push(Node::new(is_leaf, parent));
            return self.nodes.len() as u32 - 1;
        }
        let state = self.node_mut(node);
        let next = core::mem::replace(&mut state.next, NONE);
        (state.prev, state.parent, state.is_leaf) = (NONE, parent, is_leaf);
        (state.start, state.len) = (0, 0);
        self.free = next;
        node
    }

    fn give_back(&mut self, node: u32) {
        let free = self.free;
        let state = self.node_mut(node);
        (state.next, state.parent) = (free, NONE);
        self.free = node;
    }

    /// Adds `task`, which must be in no tree, in the order of the first number and then of the
    /// second; behind equal keys.
    pub fn insert(&mut self, tree: &mut WideTree, task: TaskId, numbers: (u64, u64)) {
        let key = key(numbers);
        tree.len += 1;
        if tree.root == NONE {
            let leaf = self.take_node(true, NONE);
            (tree.root, tree.first, tree.last) = (leaf, leaf, leaf);
        }
        let (node, place) = self.place_for(tree, key);
        if let Some(right) = self.add(tree, node, place, key, task.0) {
            // Two nodes have half of what one had, and their neighbours may have few.
            self.shrink(tree, right);
            self.shrink(tree, node);
        }
    }

    /// The leaf that `key` belongs to, and its place there.
    fn place_for(&self, tree: &WideTree, key: Key) -> (u32, usize) {
        let last_of = |leaf: u32| self.node(leaf).keys().last().copied();
        // Many come at an end: those that go behind all others, and short ones.
        if last_of(tree.last).is_none_or(|last| last <= key) {
            return (tree.last, self.node(tree.last).len());
        }
        let mut node = tree.first;
        if last_of(node).is_none_or(|last| last <= key) {
            node = tree.root;
            while !self.node(node).is_leaf {
                node = self.node(node).child(key);
            }
        }
        (node, self.node(node).rank(key))
    }

    /// Adds an entry to `node`, the `place`-th there, if need be after splitting it. Returns the
    /// node that has been added for that.
    fn add(
        &mut self,
        tree: &mut WideTree,
        node: u32,
        place: usize,
        key: Key,
        item: u32,
    ) -> Option<u32> {
        let (mut to, mut place, mut added) = (node, place, None);
        if self.node(node).len() == WIDTH {
            let (right, left_len) = self.split(tree, node, place, key);
            added = Some(right);
            if place > left_len || left_len == WIDTH {
                (to, place) = (right, place - left_len);
            }
        }
        self.node_mut(to).insert(place, key, item);
        if self.node(to).is_leaf {
            self.leaf_of[item as usize] = to;
        } else {
            self.node_mut(item).parent = to;
        }
        added
    }

    /// Makes room in `node`, which is full, for an entry with this key at `place`: what is behind a
    /// point goes to a new node, which is returned, with how many stay.
    fn split(&mut self, tree: &mut WideTree, node: u32, place: usize, key: Key) -> (u32, usize) {
        let parent = match self.node(node).parent {
            NONE => self.grow(tree, node),
            parent => parent,
        };
        let grows_at_end = place == WIDTH && self.is_last(node);
        let left_len = if grows_at_end { WIDTH } else { WIDTH / 2 };
        let is_leaf = self.node(node).is_leaf;
        let right = self.take_node(is_leaf, parent);
        let (keys, items) = (self.node(node).keys, self.node(node).items);
        self.node_mut(node).len = left_len as u8;
        self.append(right, &keys[left_len..], &items[left_len..]);
        if is_leaf {
            let next = core::mem::replace(&mut self.node_mut(node).next, right);
            (self.node_mut(right).prev, self.node_mut(right).next) = (node, next);
            match next {
                NONE => tree.last = right,
                next => self.node_mut(next).prev = right,
            }
        }
        let place = self.node(parent).place_of(node) + 1;
        let key = keys.get(left_len).copied().unwrap_or(key);
        self.add(tree, parent, place, key, right);
        (right, left_len)
    }

    /// Whether nothing is behind `node`.
    fn is_last(&self, mut node: u32) -> bool {
        loop {
            match self.node(node).parent {
                NONE => return true,
                parent if self.node(parent).items().last() != Some(&node) => return false,
                parent => node = parent,
            }
        }
    }

    /// A new root above `root`.
    fn grow(&mut self, tree: &mut WideTree, root: u32) -> u32 {
        let parent = self.take_node(false, NONE);
        self.node_mut(parent).insert(0, 0, root);
        self.node_mut(root).parent = parent;
        tree.root = parent;
        parent
    }

    /// Puts entries behind those of `node`.
    fn append(&mut self, node: u32, keys: &[Key], items: &[u32]) {
        let state = self.node_mut(node);
        let (start, len) = (usize::from(state.start), state.len());
        if start + len + keys.len() > WIDTH {
            state.keys.copy_within(start..start + len, 0);
            state.items.copy_within(start..start + len, 0);
            state.start = 0;
        }
        let end = usize::from(state.start) + len;
        state.keys[end..end + keys.len()].copy_from_slice(keys);
        state.items[end..end + items.len()].copy_from_slice(items);
        state.len += keys.len() as u8;
        let is_leaf = state.is_leaf;
        for &item in items {
            if is_leaf {
                self.leaf_of[item as usize] = node;
            } else {
                self.node_mut(item).parent = node;
            }
        }
    }

    /// Removes `task`, which must be in `tree`.
    pub fn remove(&mut self, tree: &mut WideTree, task: TaskId) {
        tree.len -= 1;
        let leaf = self.leaf_of[task.index()];
        let place = self.node(leaf).place_of(task.0);
        self.remove_at(tree, leaf, place);
    }

    /// Removes and returns the task with the smallest key.
    #[inline]
    pub fn pop_first(&mut self, tree: &mut WideTree) -> Option<TaskId> {
        let first = self.first(tree)?;
        tree.len -= 1;
        self.remove_at(tree, tree.first, 0);
        Some(first)
    }

    /// Removes and returns the first task of `tree` that `fits`.
    #[inline]
    pub fn pop_first_fit(
        &mut self,
        tree: &mut WideTree,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        if fits(self.first(tree)?) {
            return self.pop_first(tree);
        }
        let task = self.iter(tree).find(|&task| fits(task))?;
        self.remove(tree, task);
        Some(task)
    }

    #[inline]
    fn remove_at(&mut self, tree: &mut WideTree, node: u32, place: usize) {
        self.node_mut(node).remove(place);
        let len = self.node(node).len();
        if len == 0 || len < MERGED && node != tree.first {
            self.shrink(tree, node);
        }
    }

    /// `node` has few entries: if it can be merged with a neighbour it is, and if it has none it
    /// goes.
    fn shrink(&mut self, tree: &mut WideTree, node: u32) {
        let Node { parent, .. } = *self.node(node);
        let len = self.node(node).len();
        if parent == NONE {
            return if node == tree.root {
                self.shrink_root(tree)
            };
        }
        let siblings = self.node(parent).items();
        let place = self.node(parent).place_of(node);
        if len == 0 {
            return self.drop_node(tree, node, place);
        }
        let (left, right) = match (place.checked_sub(1), siblings.get(place + 1)) {
            (Some(left), _) if self.node(siblings[left]).len() + len <= MERGED => {
                (siblings[left], node)
            }
            (_, Some(&right)) if len + self.node(right).len() <= MERGED => (node, right),
            _ => return,
        };
        self.merge(tree, left, right);
    }

    /// Moves what is in `right` to `left`, its neighbour in the same parent.
    fn merge(&mut self, tree: &mut WideTree, left: u32, right: u32) {
        let parent = self.node(right).parent;
        let place = self.node(parent).place_of(right);
        let Node { mut keys, items, start, .. } = *self.node(right);
        let range = usize::from(start)..usize::from(start) + self.node(right).len();
        // The first key of a node is not used; in the middle of another it is.
        if !self.node(right).is_leaf {
            keys[range.start] = self.node(parent).keys()[place];
        }
        self.append(left, &keys[range.clone()], &items[range.clone()]);
        let is_leaf = self.node(right).is_leaf;
        self.drop_node(tree, right, place);
        if !is_leaf {
            // Two nodes have become neighbours, unless that has changed already.
            self.shrink(tree, items[range.start]);
        }
    }

    /// Takes `node`, the `place`-th of its parent, out of the tree.
    fn drop_node(&mut self, tree: &mut WideTree, node: u32, place: usize) {
        let Node { parent, prev, next, is_leaf, .. } = *self.node(node);
        if is_leaf {
            match prev {
                NONE => tree.first = next,
                prev => self.node_mut(prev).next = next,
            }
            match next {
                NONE => tree.last = prev,
                next => self.node_mut(next).prev = prev,
            }
        }
        self.give_back(node);
        self.remove_at(tree, parent, place);
    }

    /// The root has few entries: with a single child it goes, and so does an empty one.
    fn shrink_root(&mut self, tree: &mut WideTree) {
        let root = self.node(tree.root);
        match (root.is_leaf, root.items()) {
            (_, []) => {
                self.give_back(tree.root);
                *tree = WideTree::default();
            }
            (false, &[child]) => {
                self.give_back(tree.root);
                tree.root = child;
                self.node_mut(child).parent = NONE;
                // It may have become the root with a single child itself.
                if self.node(child).len() <= 1 {
                    self.shrink_root(tree);
                }
            }
            _ => {}
        }
    }
}

impl Canonical<WideForest> for WideTree {
    fn canon(&self, forest: &WideForest, to: &mut Canon) {
        canon::tasks(forest.iter(self), to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    /// Checks the subtree at `node`, and returns how many tasks it has and how deep it is.
    fn check(forest: &WideForest, node: u32, low: Option<Key>, high: Option<Key>) -> usize {
        let state = forest.node(node);
        assert!(state.len() > 0, "no node is empty");
        let within = |key: Key| low.is_none_or(|low| low <= key) && high.is_none_or(|h| key <= h);
        if state.is_leaf {
            assert!(state.keys().is_sorted());
            assert!(state.keys().iter().all(|&key| within(key)));
            assert!(state.items().iter().all(|&task| forest.leaf_of[task as usize] == node));
            return state.len();
        }
        let mut tasks = 0;
        for (place, &child) in state.items().iter().enumerate() {
            assert_eq!(forest.node(child).parent, node);
            let from = if place > 0 { Some(state.keys()[place]) } else { low };
            let to = state.keys().get(place + 1).copied().or(high);
            tasks += check(forest, child, from, to);
        }
        for pair in state.items().windows(2).filter(|pair| forest.node(pair[0]).prev != NONE) {
            let both = forest.node(pair[0]).len() + forest.node(pair[1]).len();
            assert!(both >= MERGED, "neighbours are merged");
        }
        tasks
    }

    proptest! {
        /// Two trees over one forest behave as two ordered maps, whatever is done in long runs of
        /// the same step.
        #[test]
        fn trees_behave_as_ordered_maps(
            runs in prop::collection::vec((0..6u8, 0..2usize, 0..3000u32, 1..900u32), 0..30)
        ) {
            let mut forest = WideForest::new(2);
            let mut trees = [WideTree::default(); 2];
            let mut model = [BTreeMap::new(), BTreeMap::new()];
            let mut place: Vec<Option<(usize, Key)>> = alloc::vec![None; 3000];
            (0..3000).for_each(|task| forest.attach(TaskId(task)));
            let room = forest.nodes.capacity();
            let mut number = 0;
            for (step, which, seed, count) in runs {
                for task in (seed..seed + count).map(|task| task * 7 % 3000) {
                    number += 1;
                    match (step, place[task as usize]) {
                        (0..3, None) => {
                            let first = match step {
                                0 => number,
                                1 => task.wrapping_mul(2_654_435_769) % 1000,
                                _ => u32::MAX - number,
                            };
                            let numbers = (first.into(), number.into());
                            forest.insert(&mut trees[which], TaskId(task), numbers);
                            let key = key(numbers);
                            model[which].insert(key, TaskId(task));
                            place[task as usize] = Some((which, key));
                        }
                        (3 | 4, Some((which, key))) => {
                            forest.remove(&mut trees[which], TaskId(task));
                            model[which].remove(&key);
                            place[task as usize] = None;
                        }
                        _ => {
                            let popped = forest.pop_first(&mut trees[which]);
                            prop_assert_eq!(popped, model[which].pop_first().map(|(_, t)| t));
                            if let Some(task) = popped {
                                place[task.index()] = None;
                            }
                        }
                    }
                }
                for (tree, map) in trees.iter().zip(&model) {
                    prop_assert!(forest.iter(tree).eq(map.values().copied()));
                    prop_assert!(forest.iter_back(tree).eq(map.values().rev().copied()));
                    prop_assert_eq!((tree.len(), tree.is_empty()), (map.len(), map.is_empty()));
                    if tree.root != NONE {
                        prop_assert_eq!(check(&forest, tree.root, None, None), map.len());
                    }
                }
                prop_assert_eq!(forest.nodes.capacity(), room, "nothing is allocated");
            }
        }
    }
}
