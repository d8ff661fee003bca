//! The contract of `docs/formats/nodes.md` for single bytes, without any knowledge of copies.
//!
//! Write w is *older* than write v if, before v began, w was acknowledged on v's node, or committed
//! by any node, or decided by the recovery of its dead node. A read on a node may return any write
//! that has begun, unless it is older than a write that the node *knows*: its own acknowledged
//! ones, and those that were committed before it last acquired.

/// Number of a write, which is also the value that it writes. Write 0 made the initial bytes.
pub type Id = u8;
/// Value of a byte where a copy was never valid.
pub const GARBAGE: Id = 255;
/// Value of a punched byte.
pub const HOLE: Id = 254;
pub const WRITES_MAX: usize = 16;
pub const NODES_MAX: usize = 3;
pub const BLOCKS_MAX: usize = 4;

/// A set of writes.
pub type Set = u16;

fn only(id: Id) -> Set {
    1 << id
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Oracle {
    begun: u8,
    /// The writes that are older than each write.
    older: [Set; WRITES_MAX],
    /// The writes of each block.
    of_block: [Set; BLOCKS_MAX],
    /// The writes of each node that its present session has acknowledged.
    acknowledged: [Set; NODES_MAX],
    /// Those that the commit in progress includes.
    listed: [Set; NODES_MAX],
    /// The writes of each node since its last crash, or that of its last session.
    of_node: [Set; NODES_MAX],
    committed: Set,
    /// Writes of dead sessions that were recovered.
    decided: Set,
    /// What was committed when each node last acquired.
    acquired: [Set; NODES_MAX],
}

impl Oracle {
    pub fn new(blocks: usize) -> Self {
        let mut of_block = [0; BLOCKS_MAX];
        of_block[..blocks].fill(1);
        Self {
            begun: 1,
            older: [0; WRITES_MAX],
            of_block,
            acknowledged: [0; NODES_MAX],
            listed: [0; NODES_MAX],
            of_node: [0; NODES_MAX],
            committed: 1,
            decided: 0,
            acquired: [1; NODES_MAX],
        }
    }

    pub fn begin(&mut self, node: usize, blocks: std::ops::Range<usize>) -> Id {
        let id = self.begun;
        self.begun += 1;
        self.older[usize::from(id)] = self.acknowledged[node] | self.committed | self.decided;
        self.of_node[node] |= only(id);
        blocks.for_each(|block| self.of_block[block] |= only(id));
        id
    }

    pub fn acknowledge(&mut self, node: usize, id: Id) {
        self.acknowledged[node] |= only(id);
    }

    pub fn acquire(&mut self, node: usize) {
        self.acquired[node] = self.committed;
    }

    /// Whether the node has acknowledged writes that are not committed.
    pub fn has_uncommitted(&self, node: usize) -> bool {
        self.acknowledged[node] & !self.committed != 0
    }

    pub fn list(&mut self, node: usize) {
        self.listed[node] = self.acknowledged[node];
    }

    pub fn commit(&mut self, node: usize) {
        self.committed |= std::mem::take(&mut self.listed[node]);
    }

    /// A truncate has returned: its cuts are durable.
    pub fn commit_now(&mut self, node: usize, id: Id) {
        self.acknowledge(node, id);
        self.committed |= only(id);
    }

    /// The node has crashed or was cut off. Returns its writes, for [`Oracle::decide`].
    pub fn crash(&mut self, node: usize) -> Set {
        self.acknowledged[node] = 0;
        self.listed[node] = 0;
        std::mem::take(&mut self.of_node[node])
    }

    /// A dead session's writes were recovered.
    pub fn decide(&mut self, writes: Set) {
        self.decided |= writes;
    }

    fn superseded(&self, known: Set, block: usize) -> Set {
        let known = known & self.of_block[block];
        (0..self.begun).filter(|&id| known & only(id) != 0).fold(0, |all, id| all | self.older[usize::from(id)])
    }

    /// The writes that a read which begins on the node now must not return.
    pub fn too_old(&self, node: usize, block: usize) -> Set {
        self.superseded(self.acquired[node] | self.acknowledged[node], block)
    }

    /// The writes that must not be left after a crash of all nodes.
    pub fn too_old_for_all(&self, block: usize) -> Set {
        self.superseded(self.committed, block)
    }

    pub fn check(&self, value: Id, too_old: Set, block: usize) -> Result<(), String> {
        if value >= self.begun || self.of_block[block] & only(value) == 0 {
            return Err(format!("block {block} has {value}, which was never written there"));
        }
        if too_old & only(value) != 0 {
            return Err(format!("block {block} has {value}, which is too old"));
        }
        Ok(())
    }
}
