//! Ordered trees of tasks: treaps with parent links.
//!
//! Keys are (policy's key, arrival number) or similar, so the order is total and ties go by
//! arrival. The smallest and the largest key are cached: taking the first and adding at either end
//! cost O(1) expected, everything else O(log n). A node's rank is a hash of the task's number, so
//! the shape of a tree is the same in every run.

use core::cmp::Ordering;

use super::NONE;
use crate::canon::{self, Canon, Canonical};
use crate::ids::TaskId;
use crate::per_task::PerTask;

/// A per-task value whose combination is kept for each subtree, for searches by something other
/// than the key (EEVDF: the least vruntime among later deadlines).
pub trait Summary: Copy + PartialEq {
    /// Whether there is anything to combine; false skips all upkeep.
    const NEEDED: bool;
    /// The combination of two values; associative and commutative.
    fn merge(self, other: Self) -> Self;
}

impl Summary for () {
    const NEEDED: bool = false;
    #[inline]
    fn merge(self, (): ()) {}
}

/// The nodes of all tasks of a policy: each task is in at most one [`Tree`] at a time.
#[derive(Clone, Debug)]
pub struct Forest<K, S = ()> {
    nodes: PerTask<Node<K, S>>,
}

#[derive(Clone, Copy, Debug)]
struct Node<K, S> {
    key: K,
    own: S,
    all: S,
    left: u32,
    right: u32,
    parent: u32,
    /// [`rank`] of the task.
    rank: u32,
}

/// One ordered tree; its nodes are in a [`Forest`].
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    root: u32,
    first: u32,
    last: u32,
    len: u32,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { root: NONE, first: NONE, last: NONE, len: 0 }
    }
}

impl Tree {
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

    /// The task with the smallest key.
    #[inline]
    pub fn first(&self) -> Option<TaskId> {
        some(self.first)
    }

    /// The task with the largest key.
    #[inline]
    pub fn last(&self) -> Option<TaskId> {
        some(self.last)
    }

    /// The root, where searches by [`Summary`] start.
    #[inline]
    pub fn root(&self) -> Option<TaskId> {
        some(self.root)
    }
}

#[inline]
fn some(node: u32) -> Option<TaskId> {
    (node != NONE).then_some(TaskId(node))
}

/// The heap order of the treap: a bijective mix of the task's number.
#[inline]
fn rank(node: u32) -> u32 {
    let mut hash = node ^ (node >> 16);
    hash = hash.wrapping_mul(0x7feb_352d);
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(0x846c_a68b);
    hash ^ (hash >> 16)
}

impl<K, S> Default for Forest<K, S> {
    fn default() -> Forest<K, S> {
        Forest { nodes: PerTask::new() }
    }
}

impl<K: Ord + Copy + Default, S: Summary + Default> Forest<K, S> {
    /// Makes room for `task`. Allocates; every other operation does not.
    pub fn attach(&mut self, task: TaskId) {
        self.nodes.grow(task, |task| Node {
            key: K::default(),
            own: S::default(),
            all: S::default(),
            left: NONE,
            right: NONE,
            parent: NONE,
            rank: rank(task.0),
        });
    }

    /// The key with which `task` was last inserted.
    #[inline]
    pub fn key(&self, task: TaskId) -> K {
        self.nodes[task].key
    }

    /// The summary of the subtree at `task`.
    #[inline]
    pub fn summary(&self, task: TaskId) -> S {
        self.nodes[task].all
    }

    /// The value with which `task` was last inserted.
    #[inline]
    pub fn own(&self, task: TaskId) -> S {
        self.nodes[task].own
    }

    /// The root of the subtree with smaller keys.
    #[inline]
    pub fn left(&self, task: TaskId) -> Option<TaskId> {
        some(self.nodes[task].left)
    }

    /// The root of the subtree with larger keys.
    #[inline]
    pub fn right(&self, task: TaskId) -> Option<TaskId> {
        some(self.nodes[task].right)
    }

    /// Adds `task`, which must be in no tree, behind equal keys.
    pub fn insert(&mut self, tree: &mut Tree, task: TaskId, key: K, own: S) {
        let node = task.0;
        let Node { rank, .. } = self.nodes[task];
        self.nodes[task] = Node { key, own, all: own, left: NONE, right: NONE, parent: NONE, rank };
        tree.len += 1;
        if tree.root == NONE {
            (tree.root, tree.first, tree.last) = (node, node, node);
            return;
        }
        if key >= self.nodes[TaskId(tree.last)].key {
            self.nodes[TaskId(tree.last)].right = node;
            self.nodes[task].parent = tree.last;
            tree.last = node;
        } else if key < self.nodes[TaskId(tree.first)].key {
            self.nodes[TaskId(tree.first)].left = node;
            self.nodes[task].parent = tree.first;
            tree.first = node;
        } else {
            self.insert_below(tree.root, node, key);
        }
        self.rise(tree, node);
    }

    /// Adds `task`, which must be in no tree, right before `next`, which must be in `tree`; at the
    /// end if that is `None`. For orders that no key expresses: all keys must be equal.
    pub fn insert_before(&mut self, tree: &mut Tree, next: Option<TaskId>, task: TaskId, own: S) {
        let key = K::default();
        let Some(next) = next else { return self.insert(tree, task, key, own) };
        debug_assert!(self.nodes[next].key == key);
        let Node { rank, .. } = self.nodes[task];
        self.nodes[task] = Node { key, own, all: own, left: NONE, right: NONE, parent: NONE, rank };
        tree.len += 1;
        // Of two neighbours, one has no child towards the other.
        match self.nodes[next].left {
            NONE => {
                self.nodes[next].left = task.0;
                self.nodes[task].parent = next.0;
                if tree.first == next.0 {
                    tree.first = task.0;
                }
            }
            left => {
                let prev = self.rightmost(left);
                self.nodes[TaskId(prev)].right = task.0;
                self.nodes[task].parent = prev;
            }
        }
        self.rise(tree, task.0);
    }

    /// Restores summaries and the order of ranks above `node`, which has just become a leaf.
    fn rise(&mut self, tree: &mut Tree, node: u32) {
        let Node { rank, own, parent, .. } = self.nodes[TaskId(node)];
        self.merge_upwards(parent, own);
        loop {
            let parent = self.nodes[TaskId(node)].parent;
            if parent == NONE || self.nodes[TaskId(parent)].rank >= rank {
                return;
            }
            self.rotate_up(tree, node);
        }
    }

    fn insert_below(&mut self, mut at: u32, node: u32, key: K) {
        loop {
            let parent = &mut self.nodes[TaskId(at)];
            let child = if key < parent.key { &mut parent.left } else { &mut parent.right };
            if *child == NONE {
                *child = node;
                self.nodes[TaskId(node)].parent = at;
                return;
            }
            at = *child;
        }
    }

    /// Removes `task`, which must be in `tree`.
    pub fn remove(&mut self, tree: &mut Tree, task: TaskId) {
        let node = task.0;
        if tree.first == node {
            self.pop_first(tree);
            return;
        }
        if tree.last == node {
            tree.last = self.prev(task).map_or(NONE, |prev| prev.0);
        }
        tree.len -= 1;
        let (mut left, mut right) = (self.nodes[task].left, self.nodes[task].right);
        while left != NONE && right != NONE {
            self.rotate_up(tree, if self.rank(left) > self.rank(right) { left } else { right });
            (left, right) = (self.nodes[task].left, self.nodes[task].right);
        }
        let child = if left == NONE { right } else { left };
        let parent = self.nodes[task].parent;
        if child != NONE {
            self.nodes[TaskId(child)].parent = parent;
        }
        self.replace_child(tree, parent, node, child);
        self.refresh_upwards(parent);
    }

    /// Removes and returns the task with the smallest key.
    #[inline]
    pub fn pop_first(&mut self, tree: &mut Tree) -> Option<TaskId> {
        let first = tree.first()?;
        // It has no left child, so its right child takes its place.
        let Node { right, parent, .. } = self.nodes[first];
        if right != NONE {
            self.nodes[TaskId(right)].parent = parent;
            tree.first = self.leftmost(right);
        } else {
            tree.first = parent;
            if parent == NONE {
                tree.last = NONE;
            }
        }
        match parent {
            NONE => tree.root = right,
            parent => self.nodes[TaskId(parent)].left = right,
        }
        tree.len -= 1;
        self.refresh_upwards(parent);
        Some(first)
    }

    #[inline]
    fn leftmost(&self, mut at: u32) -> u32 {
        loop {
            match self.nodes[TaskId(at)].left {
                NONE => return at,
                left => at = left,
            }
        }
    }

    #[inline]
    fn rightmost(&self, mut at: u32) -> u32 {
        loop {
            match self.nodes[TaskId(at)].right {
                NONE => return at,
                right => at = right,
            }
        }
    }

    /// The task with the next larger key.
    pub fn next(&self, task: TaskId) -> Option<TaskId> {
        let right = self.nodes[task].right;
        if right != NONE {
            return some(self.leftmost(right));
        }
        self.climb(task.0, |node| node.right)
    }

    /// The task with the next smaller key.
    pub fn prev(&self, task: TaskId) -> Option<TaskId> {
        let left = self.nodes[task].left;
        if left != NONE {
            return some(self.rightmost(left));
        }
        self.climb(task.0, |node| node.left)
    }

    /// The first ancestor of `at` that is not reached from its child on `side`.
    fn climb(&self, mut at: u32, side: impl Fn(&Node<K, S>) -> u32) -> Option<TaskId> {
        loop {
            let parent = self.nodes[TaskId(at)].parent;
            if parent == NONE || side(&self.nodes[TaskId(parent)]) != at {
                return some(parent);
            }
            at = parent;
        }
    }

    /// The keys under which tasks are in a tree, or were last, in the order of tasks.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.nodes.values().map(|node| node.key)
    }

    /// The tasks of `tree` by ascending key.
    pub fn iter<'a>(&'a self, tree: &Tree) -> impl Iterator<Item = TaskId> + use<'a, K, S> {
        core::iter::successors(tree.first(), |&task| self.next(task))
    }

    /// The tasks of `tree` by descending key.
    pub fn iter_back<'a>(&'a self, tree: &Tree) -> impl Iterator<Item = TaskId> + use<'a, K, S> {
        core::iter::successors(tree.last(), |&task| self.prev(task))
    }

    /// Removes and returns the first task of `tree` that `fits`.
    #[inline]
    pub fn pop_first_fit(
        &mut self,
        tree: &mut Tree,
        fits: impl Fn(TaskId) -> bool,
    ) -> Option<TaskId> {
        if fits(tree.first()?) {
            return self.pop_first(tree);
        }
        let task = self.iter(tree).find(|&task| fits(task))?;
        self.remove(tree, task);
        Some(task)
    }

    /// The first task of `tree` whose value `fits`. `fits` must hold of a combination if and only
    /// if it holds of one of the values combined.
    pub fn first_that(&self, tree: &Tree, fits: impl Fn(S) -> bool) -> Option<TaskId> {
        let mut at = tree.root().filter(|&root| fits(self.summary(root)))?;
        loop {
            at = match self.left(at).filter(|&left| fits(self.summary(left))) {
                Some(left) => left,
                None if fits(self.own(at)) => return Some(at),
                None => self.right(at)?,
            };
        }
    }

    /// Changes the value of `task`, which must be in a tree, and the summaries above it.
    pub fn set_own(&mut self, task: TaskId, own: S) {
        self.nodes[task].own = own;
        self.refresh_upwards(task.0);
    }

    fn rank(&self, node: u32) -> u32 {
        self.nodes[TaskId(node)].rank
    }

    fn replace_child(&mut self, tree: &mut Tree, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            tree.root = new;
        } else if self.nodes[TaskId(parent)].left == old {
            self.nodes[TaskId(parent)].left = new;
        } else {
            self.nodes[TaskId(parent)].right = new;
        }
    }

    /// Swaps `node` with its parent, keeping the order of keys.
    fn rotate_up(&mut self, tree: &mut Tree, node: u32) {
        let parent = self.nodes[TaskId(node)].parent;
        let grandparent = self.nodes[TaskId(parent)].parent;
        let inner;
        if self.nodes[TaskId(parent)].left == node {
            inner = self.nodes[TaskId(node)].right;
            self.nodes[TaskId(parent)].left = inner;
            self.nodes[TaskId(node)].right = parent;
        } else {
            inner = self.nodes[TaskId(node)].left;
            self.nodes[TaskId(parent)].right = inner;
            self.nodes[TaskId(node)].left = parent;
        }
        if inner != NONE {
            self.nodes[TaskId(inner)].parent = parent;
        }
        self.nodes[TaskId(parent)].parent = node;
        self.nodes[TaskId(node)].parent = grandparent;
        self.replace_child(tree, grandparent, parent, node);
        if S::NEEDED {
            self.nodes[TaskId(node)].all = self.nodes[TaskId(parent)].all;
            self.nodes[TaskId(parent)].all = self.summed_up(parent);
        }
    }

    /// The summary of `at`, from its children.
    fn summed_up(&self, at: u32) -> S {
        let node = &self.nodes[TaskId(at)];
        let mut all = node.own;
        for child in [node.left, node.right] {
            if child != NONE {
                all = all.merge(self.nodes[TaskId(child)].all);
            }
        }
        all
    }

    /// Restores summaries from `at` on, below which a value has gone or changed.
    fn refresh_upwards(&mut self, mut at: u32) {
        while S::NEEDED && at != NONE {
            let all = self.summed_up(at);
            let node = &mut self.nodes[TaskId(at)];
            if node.all == all {
                return;
            }
            node.all = all;
            at = node.parent;
        }
    }

    /// Restores summaries from `at` on, below which the value `own` has come.
    fn merge_upwards(&mut self, mut at: u32, own: S) {
        while S::NEEDED && at != NONE {
            let node = &mut self.nodes[TaskId(at)];
            let all = node.all.merge(own);
            if node.all == all {
                return;
            }
            node.all = all;
            at = node.parent;
        }
    }

    /// How `key` compares with the key of `task`.
    pub fn compare(&self, key: K, task: TaskId) -> Ordering {
        key.cmp(&self.nodes[task].key)
    }
}

impl<K: Ord + Copy + Default, S: Summary + Default> Canonical<Forest<K, S>> for Tree {
    fn canon(&self, forest: &Forest<K, S>, to: &mut Canon) {
        canon::tasks(forest.iter(self), to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Least(u32);

    impl Summary for Least {
        const NEEDED: bool = true;
        fn merge(self, other: Least) -> Least {
            Least(self.0.min(other.0))
        }
    }

    fn check<K: Ord + Copy + Default>(
        forest: &Forest<K, Least>,
        at: Option<TaskId>,
    ) -> Option<u32> {
        let at = at?;
        let mut least = forest.own(at).0;
        for child in [forest.left(at), forest.right(at)].into_iter().flatten() {
            assert!(rank(child.0) < rank(at.0), "heap order of ranks");
            least = least.min(check(forest, Some(child)).unwrap());
        }
        assert_eq!(forest.summary(at), Least(least));
        Some(least)
    }

    proptest! {
        /// Two trees over one forest behave as two ordered maps, and summaries are exact.
        #[test]
        fn trees_behave_as_ordered_maps(
            steps in prop::collection::vec((0..4u8, 0..2usize, 0..40u32, 0..20u32), 0..400)
        ) {
            let mut forest = Forest::<(u32, u32), Least>::default();
            let mut trees = [Tree::default(); 2];
            let mut model = [BTreeMap::new(), BTreeMap::new()];
            (0..40).for_each(|task| forest.attach(TaskId(task)));
            for (number, (step, which, task, key)) in steps.into_iter().enumerate() {
                let task = TaskId(task);
                let queued = model.iter().position(|map| map.values().any(|&other| other == task));
                match (step, queued) {
                    (0 | 1, None) => {
                        let key = (key, number as u32);
                        forest.insert(&mut trees[which], task, key, Least(task.0 * 7 % 40));
                        model[which].insert(key, task);
                    }
                    (2, Some(which)) => {
                        forest.remove(&mut trees[which], task);
                        model[which].retain(|_, &mut other| other != task);
                    }
                    (3, Some(_)) => forest.set_own(task, Least(key)),
                    _ => {
                        let popped = forest.pop_first(&mut trees[which]);
                        prop_assert_eq!(popped, model[which].pop_first().map(|(_, task)| task));
                    }
                }
                for (tree, map) in trees.iter().zip(&model) {
                    prop_assert!(forest.iter(tree).eq(map.values().copied()));
                    prop_assert_eq!(tree.len(), map.len());
                    prop_assert_eq!(tree.last(), map.values().last().copied());
                    for task in map.values() {
                        let before = map.range(..forest.key(*task)).next_back();
                        prop_assert_eq!(forest.prev(*task), before.map(|(_, task)| *task));
                    }
                    check(&forest, tree.root());
                }
            }
        }

        /// A tree without keys behaves as a vector whose values change, searched from the front.
        #[test]
        fn trees_by_position_behave_as_vectors(
            steps in prop::collection::vec((0..4u8, 0..40u32, 0..20u32), 0..400)
        ) {
            let mut forest = Forest::<(), Least>::default();
            let mut tree = Tree::default();
            let mut model: Vec<(TaskId, u32)> = Vec::new();
            (0..40).for_each(|task| forest.attach(TaskId(task)));
            for (step, task, value) in steps {
                let task = TaskId(task);
                let queued = model.iter().position(|&(other, _)| other == task);
                match (step, queued) {
                    (0 | 1, None) => {
                        let next = forest.first_that(&tree, |least| least.0 < value);
                        let place = model.iter().position(|&(_, other)| other < value);
                        prop_assert_eq!(next, place.map(|place| model[place].0));
                        forest.insert_before(&mut tree, next, task, Least(value));
                        model.insert(place.unwrap_or(model.len()), (task, value));
                    }
                    (2, Some(place)) => {
                        forest.remove(&mut tree, task);
                        model.remove(place);
                    }
                    (3, Some(place)) => {
                        forest.set_own(task, Least(value));
                        model[place].1 = value;
                    }
                    _ => {
                        let first = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(forest.pop_first(&mut tree), first);
                    }
                }
                prop_assert!(forest.iter(&tree).eq(model.iter().map(|&(task, _)| task)));
                prop_assert_eq!(tree.last(), model.last().map(|&(task, _)| task));
                prop_assert_eq!(tree.len(), model.len());
                for pair in model.windows(2) {
                    prop_assert_eq!(forest.prev(pair[1].0), Some(pair[0].0));
                }
                check(&forest, tree.root());
            }
        }
    }

    #[test]
    fn depth_stays_logarithmic_for_sorted_keys() {
        let mut forest = Forest::<u32>::default();
        let mut tree = Tree::default();
        for task in 0..10_000 {
            forest.attach(TaskId(task));
            forest.insert(&mut tree, TaskId(task), task, ());
        }
        fn depth(forest: &Forest<u32>, at: Option<TaskId>) -> usize {
            at.map_or(0, |at| {
                1 + depth(forest, forest.left(at)).max(depth(forest, forest.right(at)))
            })
        }
        assert!(depth(&forest, tree.root()) < 45, "{}", depth(&forest, tree.root()));
    }
}
