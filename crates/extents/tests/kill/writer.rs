//! A process that writes to its own slots and to shared ones, and reads its own back.

use std::fs::File;
use std::io::Write;

use stripewise_extents::{CopyId, Map, Span};

use crate::stage::{COPIES, Copies, Random, SLOTS, Stage, owner, slot};

/// A recorded write.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub slot: usize,
    pub value: u8,
    pub acknowledged: bool,
}

/// The recorded writes in order; one that was in flight comes last.
pub fn notes(stage: &Stage, writer: usize) -> Vec<Note> {
    let text = std::fs::read_to_string(stage.notes(writer)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut notes: Vec<Note> = Vec::new();
    for line in whole.lines() {
        match line.split_once(' ') {
            Some((slot, value)) => {
                let (slot, value) = (slot.parse().unwrap(), value.parse().unwrap());
                notes.push(Note { slot, value, acknowledged: false });
            }
            None => notes.last_mut().unwrap().acknowledged = true,
        }
    }
    notes
}

/// Runs until it is killed or finds an error.
pub fn run(stage: &Stage, writer: usize, round: u64, mut random: Random) {
    let (mut map, copies) = (stage.join(), stage.open_copies());
    let mut notes = File::create(stage.notes(writer)).unwrap();
    let mut last: Vec<Option<u8>> = vec![None; SLOTS];
    loop {
        if random.index(200) == 0 {
            map.leave(|| Ok(())).unwrap();
            map = stage.join();
        }
        let slot = random.index(SLOTS);
        if owner(slot).is_some_and(|owner| owner != writer) {
            continue;
        }
        match last[slot] {
            Some(value) if random.index(3) == 0 && owner(slot).is_some() => {
                let bytes = read(&map, &copies, slot, &mut random);
                assert!(
                    bytes.iter().all(|&byte| byte == value),
                    "round {round}: slot {slot} is not {value}: {bytes:?}"
                );
            }
            _ => {
                let value = 1 + random.index(255) as u8;
                notes.write_all(format!("{slot} {value}\n").as_bytes()).unwrap();
                write(&map, &copies, slot, value, &mut random);
                notes.write_all(b"done\n").unwrap();
                last[slot] = Some(value);
            }
        }
    }
}

fn write(map: &Map, copies: &Copies, number: usize, value: u8, random: &mut Random) {
    let prefer = random.index(COPIES);
    let mut guard = map.begin_write(slot(number)).unwrap();
    for span in guard.spans().to_vec() {
        let may = |&number: &usize| !span.forbidden.contains(CopyId::new(number));
        let chosen = [prefer].into_iter().chain(0..COPIES).find(may).unwrap();
        guard.prepare(span.range(), CopyId::new(chosen)).unwrap();
        // In two halves, so that some processes are killed in between.
        let (half, bytes) = (span.len() as usize / 2, vec![value; span.len() as usize]);
        copies.write(chosen, span.start, &bytes[..half]);
        copies.write(chosen, span.start + half as u64, &bytes[half..]);
        guard.wrote(span.range(), CopyId::new(chosen)).unwrap();
    }
}

fn read(map: &Map, copies: &Copies, number: usize, random: &mut Random) -> Vec<u8> {
    let prefer = CopyId::new(random.index(COPIES));
    let chosen = |span: &Span| if span.mask.contains(prefer) { prefer } else { span.mask.lowest().unwrap() };
    loop {
        let guard = map.begin_read(slot(number)).unwrap();
        let spans = guard.spans().iter();
        let bytes = spans.flat_map(|span| copies.read(chosen(span).index(), span.range())).collect();
        if guard.still_valid(chosen).unwrap() {
            return bytes;
        }
    }
}
