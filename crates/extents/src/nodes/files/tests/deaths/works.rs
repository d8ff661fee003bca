//! What a process may be doing when it dies.

use super::*;

fn ready(_: &Arc<Stage>, _: &mut Nodes) {}

fn first(process: &mut Option<NodeOf>) -> &NodeOf {
    process.as_ref().unwrap()
}

pub const WRITE: Work = Work {
    name: "write with new holds, and commit",
    begins: Begins::Shared,
    prepare: ready,
    act: |stage, process| {
        let first = first(process);
        stage.write(first, 0, 0);
        stage.write(first, HELD, 1);
        stage.write(first, 1, 1);
        stage.sync(first);
    },
};

pub const FORCED: Work = Work {
    name: "write where another node writes to another copy",
    begins: Begins::Shared,
    prepare: |stage, nodes| stage.write(nodes.other(), 0, 1),
    act: |stage, process| {
        let first = first(process);
        stage.write(first, 1, 0);
        stage.sync(first);
    },
};

pub const CLAIM: Work = Work {
    name: "write where the other node's copy cannot be used",
    begins: Begins::Shared,
    prepare: |stage, nodes| stage.write(nodes.other(), 0, 1),
    act: |stage, process| {
        let first = first(process);
        let sync = || first.copies.sync();
        first.map.announce(range_of(1), copy(0), only(0), &sync).unwrap();
        stage.write(first, 1, 0);
    },
};

pub const FULL: Work = Work {
    name: "write with a table that is full",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        let first = nodes.first();
        stage.write(first, HELD + 1, 1);
        fill_table(first);
    },
    act: |stage, process| stage.write(first(process), 0, 0),
};

pub const GIVE_UP: Work = Work {
    name: "commit, and give up holds",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        [0, 1, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, block as usize % COPIES));
        asks(nodes.other());
    },
    act: |stage, process| stage.poll(first(process)),
};

pub const REWRITE: Work = Work {
    name: "commit with a new journal, after a process has died in an append",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        [0, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        nodes.first().map.joined().unwrap().shared.set(Word::Appending, 1);
    },
    act: |stage, process| stage.sync(first(process)),
};

pub const ACQUIRE: Work = Work {
    name: "acquire",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        stage.write(nodes.first(), 0, 0);
        [1, HELD, HELD + 1]
            .into_iter()
            .for_each(|block| stage.write(nodes.other(), block, block as usize % COPIES));
        stage.act(OTHER, || stage.sync(nodes.other()));
    },
    act: |_, process| first(process).map.acquire().unwrap(),
};

pub const COPY: Work = Work {
    name: "copy",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        [0, 1, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        stage.sync(nodes.first());
        stage.write(nodes.first(), 1, 0);
    },
    act: |_, process| first(process).copy(0..BLOCKS * BLOCK, 1),
};

pub const EVICT: Work = Work {
    name: "evict",
    begins: Begins::Shared,
    prepare: |stage, nodes| stage.write(nodes.first(), 1, 0),
    act: |_, process| first(process).evict(0..HELD * BLOCK, 1),
};

pub const ACKNOWLEDGE: Work = Work {
    name: "acknowledge an eviction",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        stage.write(nodes.first(), HELD, 0);
        evicts(nodes.other());
    },
    act: |stage, process| stage.poll(first(process)),
};

pub const TRUNCATE: Work = Work {
    name: "truncate",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        [0, HELD, 2 * HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        stage.write(nodes.other(), 2 * HELD + 1, 1);
    },
    act: |stage, process| stage.truncate(first(process), HELD + 4),
};

pub const TRUNCATE_SUSPECT: Work = Work {
    name: "truncate, after a process has died in an append",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        (TRUNCATE.prepare)(stage, nodes);
        nodes.first().map.joined().unwrap().shared.set(Word::Appending, 1);
    },
    act: TRUNCATE.act,
};

pub const END_ALONE: Work = Work {
    name: "end being alone",
    begins: Begins::AloneShared,
    prepare: |stage, nodes| {
        [0, 1, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        nodes.first().copy(range_of(0), 1);
        let joining = FileEngine::join(&real(), &spec_of(&stage.bed, OTHER)).unwrap();
        *stage.joining.lock().unwrap() = Some(joining);
    },
    act: |stage, process| stage.poll(first(process)),
};

pub const BEGIN_ALONE: Work = Work {
    name: "begin to be alone",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        [0, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        stage.leave(stage.gone(nodes.other.take()));
    },
    act: |stage, process| {
        stage.poll(first(process));
        stage.write(first(process), 1, 1);
    },
};

pub const RECOVER: Work = Work {
    name: "recover a node that has died in a truncate",
    begins: Begins::Shared,
    prepare: |stage, nodes| {
        stage.write(nodes.other(), 0, 1);
        stage.write(nodes.first(), 1, 1);
        stage.dies_in_truncate(stage.gone(nodes.other.take()), 2 * HELD);
    },
    act: |stage, process| (0..2).for_each(|_| stage.poll(first(process))),
};

pub const LEAVE: Work = Work {
    name: "leave",
    begins: Begins::Last,
    prepare: |stage, nodes| {
        [0, 1, HELD].into_iter().for_each(|block| stage.write(nodes.first(), block, 0));
        stage.write(nodes.other(), 2, 0);
    },
    act: |stage, process| stage.leave(process.take().unwrap()),
};

pub const JOIN: Work = Work {
    name: "join",
    begins: Begins::Outside,
    prepare: |stage, nodes| [0, 1].into_iter().for_each(|block| stage.write(nodes.other(), block, 0)),
    act: |stage, process| {
        *process = Some(stage.process(&mortal(), NODE));
        stage.write(first(process), HELD, 1);
    },
};
