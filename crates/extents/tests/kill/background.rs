//! A process that copies, evicts, syncs, and leaves and joins again.

use stripewise_extents::CopyId;

use crate::stage::{COPIES, Random, SLOTS, Stage, size, slot};

/// Runs until it is killed or finds an error.
pub fn run(stage: &Stage, mut random: Random) {
    let copies = stage.open_copies();
    loop {
        let map = stage.join();
        for _ in 0..random.index(60) {
            let (from, to) = (random.index(COPIES), random.index(COPIES));
            let first = random.index(SLOTS);
            let range = slot(first).start..slot((first + random.index(5)).min(SLOTS - 1)).end;
            if random.index(20) == 0 {
                map.sync(|| Ok(())).unwrap();
            }
            let Some(mut copier) = map.copier().unwrap() else { continue };
            match random.index(3) {
                0 => {
                    let punch = |parts: &[std::ops::Range<u64>]| {
                        parts
                            .iter()
                            .try_for_each(|part| copies.punch(from, &(part.start..part.end.min(size()))))
                    };
                    copier.evict(range, CopyId::new(from), || Ok(()), punch).unwrap();
                }
                _ => {
                    let (from, to) = (CopyId::new(from), CopyId::new(to));
                    if let Some(guard) = copier.begin(range, from, to).unwrap() {
                        for part in guard.parts() {
                            copies.write(to.index(), part.start, &copies.read(from.index(), part.clone()));
                        }
                        guard.finish(|| Ok(())).unwrap();
                    }
                }
            }
        }
        if random.index(2) == 0 {
            map.leave(|| Ok(())).unwrap();
        }
    }
}
